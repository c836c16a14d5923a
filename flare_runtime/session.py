"""One token sequence and its KV cache: ``sync`` is the whole of resume."""

from collections.abc import Sequence
from dataclasses import dataclass

from flare_runtime.errors import ContextError
from flare_runtime.language_model import Forward, LanguageModel


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """Tokens of one session so far.

    ``prefilled``: run as input of a sync. ``reused``: found in the cache by a sync.
    ``stepped``: run one by one while decoding.
    """

    prefilled: int = 0
    reused: int = 0
    stepped: int = 0

    def __sub__(self, other: "SessionUsage") -> "SessionUsage":
        return SessionUsage(
            self.prefilled - other.prefilled,
            self.reused - other.reused,
            self.stepped - other.stepped,
        )


def reusable_length(held: Sequence[int], wanted: Sequence[int]) -> int:
    """How many leading tokens of ``held`` a pass over ``wanted`` can keep.

    The longest common prefix, short of the last wanted token: one must run to give logits.
    """
    limit = min(len(held), len(wanted) - 1)
    for index in range(limit):
        if held[index] != wanted[index]:
            return index
    return max(limit, 0)


class Session:
    """A sequence that can be moved to any other sequence at the price of what differs."""

    def __init__(self, model: LanguageModel, layers: tuple[int, ...] = ()) -> None:
        self._model = model
        self._layers = layers
        self._cache = model.new_cache()
        self._ids: list[int] = []
        self._last: Forward | None = None
        self._prefilled = 0
        self._reused = 0
        self._stepped = 0

    @property
    def token_ids(self) -> tuple[int, ...]:
        """What the cache holds."""
        return tuple(self._ids)

    @property
    def usage(self) -> SessionUsage:
        """Counters since the session began."""
        return SessionUsage(self._prefilled, self._reused, self._stepped)

    def sync(self, token_ids: Sequence[int]) -> Forward:
        """Make the sequence ``token_ids`` and return the pass over its last token.

        Keeps the longest common prefix, crops the cache there and prefills the rest. A sequence
        that the session already stands at runs nothing: its last pass is remembered.
        For each call, reused + prefilled = ``len(token_ids)``.

        Raises:
            ContextError: the sequence is empty or longer than the context window.
        """
        self._check_length(len(token_ids))
        if self._last is not None and self._ids == list(token_ids):
            self._reused += len(token_ids)
            return self._last
        keep = reusable_length(self._ids, token_ids)
        self._cache.crop(keep)
        del self._ids[keep:]
        self._reused += keep
        self._prefilled += len(token_ids) - keep
        return self._run(token_ids[keep:])

    def step(self, token_id: int) -> Forward:
        """Append one decoded token.

        Raises:
            ContextError: the sequence fills the context window.
        """
        self._check_length(len(self._ids) + 1)
        self._stepped += 1
        return self._run((token_id,))

    def _run(self, token_ids: Sequence[int]) -> Forward:
        self._last = None
        self._last = self._model.forward(token_ids, self._cache, self._layers)
        self._ids.extend(token_ids)
        return self._last

    def _check_length(self, length: int) -> None:
        if not 1 <= length <= self._model.context_window:
            raise ContextError(
                f"a sequence must have 1 to {self._model.context_window} tokens (the context window"
                f" of {self._model.name}), was: {length}; shorten the question, the history or"
                " evidence.max_tokens"
            )
