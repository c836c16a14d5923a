"""Follows quotations, brackets and code spans through a text."""

from dataclasses import dataclass

CLOSER_OF = dict(
    zip("([{（［【〔《〈「『“‘«‹„‚\"'»›＂〝", ")]}）］】〕》〉」』”’»›“‘\"'«‹＂〟", strict=True)
)
SIGNS = frozenset(CLOSER_OF) | frozenset(CLOSER_OF.values())
_ASYMMETRIC = frozenset("([{（［【〔《〈「『“«‹„〝")
"""Signs that open wherever they stand."""
_MAX_DEPTH = 64
"""Deeper nesting is no text; its signs count as stray."""
_APOSTROPHES = frozenset("'’")
_SMILEY_EYES = frozenset(":;")


@dataclass(frozen=True, slots=True)
class _Open:
    closer: str
    position: int


class Enclosures:
    """What is open at a place in the text. A sign without its partner is simply never closed."""

    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._code: _Open | None = None

    @property
    def is_open(self) -> bool:
        """True while anything is open, a stray sign too."""
        return bool(self._stack) or self._code is not None

    def clear(self) -> None:
        """Forget everything: a paragraph has ended and what is open was stray."""
        self._stack.clear()
        self._code = None

    def ticks(self, run: str, position: int) -> int | None:
        """Read a run of back-ticks; return where the code span began that it closes, if any."""
        if self._code is None:
            self._code = _Open(run, position)
            return None
        if self._code.closer != run:
            return None
        start = self._code.position
        self._code = None
        return start

    def sign(self, sign: str, around: tuple[str, str], position: int) -> int | None:
        """Read a quotation mark or bracket between two characters ("" at the ends of the text).

        Returns where the enclosure began that it closes, None when it opens one or means nothing.
        """
        if self._code is not None:
            return None
        before, after = around
        if not (sign in _APOSTROPHES and after.isalnum()):
            start = self.close(sign)
            if start is not None:
                return start
        if len(self._stack) < _MAX_DEPTH and _opens(sign, before, after):
            self._stack.append(_Open(CLOSER_OF[sign], position))
        return None

    def close(self, sign: str) -> int | None:
        """Close the innermost enclosure that ``sign`` fits, and return where it began."""
        if self._code is not None:
            return None
        for depth in range(len(self._stack) - 1, -1, -1):
            if self._stack[depth].closer == sign:
                start = self._stack[depth].position
                del self._stack[depth:]
                return start
        return None


def _opens(sign: str, before: str, after: str) -> bool:
    if sign == "(" and before in _SMILEY_EYES:
        return False
    if sign in _ASYMMETRIC:
        return True
    if sign not in CLOSER_OF or before.isalnum() or not after or after.isspace():
        return False
    return after.isalpha() if sign in "'‘‚" else True
