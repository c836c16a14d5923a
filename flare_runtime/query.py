"""What to ask: the forward query, built from the question and the draft."""

import math
from collections.abc import Callable, Sequence

from flare_runtime.assessment import Assessment
from flare_runtime.config import QueryConfig
from flare_runtime.language_model import Message
from flare_runtime.prompt import fill
from flare_runtime.types import Decision, Span
from flare_runtime.words import word_spans

WRITE_INSTRUCTION = (
    "Write one short search query that finds the missing fact. Reply with the query only.\n"
    "Question: {question}\nSentence being written: {draft}"
)
ANAPHORA = frozenset(
    "it its they them their this that these those he she his her there one same".split()
)
Write = Callable[[str, int], str]
"""Asks the generator for a short text: instruction, most tokens."""


def risky_words(
    assessment: Assessment, decision: Decision, mask_below: float, token_risk: float
) -> tuple[Span, ...]:
    """Words of the draft that must not be searched for: one weak token masks its whole word.

    Weak is a token that the decision names, whose probability is below ``mask_below``, or whose
    critic risk is above ``token_risk``; codenames and grounded names are never weak.
    """
    draft = assessment.draft
    weak = [
        span
        for token, span, exempt in zip(
            draft.tokens, draft.token_spans, assessment.exempt, strict=True
        )
        if not exempt
        and (
            not token.logprob >= math.log(max(mask_below, 1e-12))
            or (token.risk is not None and not token.risk <= token_risk)
            or any(_overlap(span, named) for named in decision.spans)
        )
    ]
    text = draft.text
    return tuple(
        word
        for word in word_spans(text)
        if any(text[max(w.start, word.start) : min(w.end, word.end)].strip() for w in weak)
    )


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def masked(text: str, risky: Sequence[Span], hidden: Sequence[Span] = ()) -> str:
    """Leave the risky words out (FLARE's implicit query, arXiv 2305.06983, §3.2.2).

    ``hidden`` are codenames that must not leave the machine; each becomes ``[redacted]``.
    """
    return _replaced(text, risky, hidden, lambda word: "")


def with_slots(text: str, risky: Sequence[Span], hidden: Sequence[Span] = ()) -> str:
    """Name each risky word as a slot of its kind: ``[number]``, ``[name]`` or ``[detail]``."""
    return _replaced(text, risky, hidden, _slot)


def _slot(word: str) -> str:
    if any(char.isdigit() for char in word):
        return "[number]"
    return "[name]" if word[:1].isupper() else "[detail]"


def _replaced(
    text: str, risky: Sequence[Span], hidden: Sequence[Span], of_word: Callable[[str], str]
) -> str:
    """Replace before any word is dropped: a codename that lost one would no longer be known."""
    edits = [(span, "[redacted]") for span in hidden]
    edits += [
        (span, of_word(text[span.start : span.end]))
        for span in risky
        if not any(_overlap(span, codename) for codename in hidden)
    ]
    pieces, position = [], 0
    for span, replacement in sorted(edits, key=lambda edit: edit[0].start):
        pieces += [text[position : span.start], replacement]
        position = span.end
    words = "".join([*pieces, text[position:]]).split()
    return " ".join(word for word in words if any(char.isalnum() for char in word))


class ForwardQuery:
    """Builds the queries of one answer; none is asked twice.

    Always holds the question and the draft. When the wanted style leaves nothing of the draft (the
    question alone counts as asked) or was asked before, another style is taken.
    """

    def __init__(
        self,
        config: QueryConfig,
        question: str,
        write: Write,
        token_risk: float,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._config = config
        self._redact = redact
        self._question = redact(question)
        self._write = write
        self._token_risk = token_risk
        self._asked = {_key(question)}

    def build(self, assessment: Assessment, decision: Decision) -> str | None:
        """Return a query not asked before in this answer, or None when there is none."""
        risky = risky_words(assessment, decision, self._config.mask_below, self._token_risk)
        text = assessment.draft.text
        hidden = assessment.blocked_spans if self._redact is not str else ()
        slots = with_slots(text, risky, hidden)
        confident = masked(text, risky, hidden)
        variants = {
            "masked": lambda: confident,
            "template": lambda: slots,
            "written": lambda: f"{confident} {self._redact(self._written(slots))}",
        }
        order = [
            self._config.style,
            *(s for s in ("masked", "template") if s != self._config.style),
        ]
        for style in order:
            query = self._join(variants[style](), self._redact(decision.missing))
            if _key(query) not in self._asked:
                self._asked.add(_key(query))
                return query
        return None

    def mark_asked(self, query: str) -> None:
        """Remember a query that was asked by other means, such as the first hop."""
        self._asked.add(_key(query))

    def _join(self, draft: str, missing: str) -> str:
        words = f"{draft} {missing}".split()[: self._config.max_words]
        return " ".join([*self._question.split(), *words])

    def _written(self, draft: str) -> str:
        reply = self._write(
            fill(WRITE_INSTRUCTION, {"question": self._question, "draft": draft}),
            self._config.max_written_tokens,
        )
        return next((line.strip(" \"'`*-") for line in reply.splitlines() if line.strip()), "")


def _key(query: str) -> str:
    return " ".join(query.casefold().split())


def first_hop_query(question: str, history: Sequence[Message]) -> str:
    """The question, with the user's turn before it when it cannot stand alone.

    It cannot when it is very short or points back with a pronoun.
    """
    words = question.casefold().split()
    earlier = [message.content for message in history if message.role == "user"]
    points_back = len(words) < 4 or any(word.strip(".,?!;:'\"") in ANAPHORA for word in words)
    return f"{earlier[-1]} {question}" if earlier and points_back else question
