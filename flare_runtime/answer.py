"""The answer under construction: one token sequence that grows by commits and evidence."""

import re
from collections.abc import Sequence

from flare_runtime.config import FlareConfig
from flare_runtime.drafter import Drafter
from flare_runtime.language_model import LanguageModel, Message
from flare_runtime.session import Session
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.transcript import Transcript
from flare_runtime.types import Draft, Passage

LIST_MARKER = re.compile(r"^\s*(?:[-*+•]|\(?\w{1,3}[.)])\s+")
BARE_NUMBERS = re.compile(r"[\d\s.()]+")
UNSPACED = frozenset("。！？．」』”）】、，")
"""Sentence ends after which a script without blanks goes straight on."""


class Answer:
    """Drafts, commits and discards; keeps the counts of all three."""

    def __init__(
        self,
        model: LanguageModel,
        config: FlareConfig,
        layers: tuple[int, ...],
        question: str,
        history: Sequence[Message],
        stopwatch: Stopwatch,
    ) -> None:
        self._config = config
        self._model = model
        self.session = Session(model, layers)
        self._drafter = Drafter(model, self.session, config.decode, stopwatch)
        self._transcript = Transcript(model, config.prompt, question, history)
        self._text = ""
        self._said: set[str] = set()
        self._num_tokens = 0
        self._num_discarded = 0
        self._needs_blank = False

    @property
    def prefix(self) -> tuple[int, ...]:
        """The sequence that the next draft continues."""
        return self._transcript.token_ids

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens before the answer."""
        return self._transcript.num_prompt_tokens

    @property
    def num_tokens_around_evidence(self) -> int:
        """Tokens of the prompt that are no evidence."""
        return self._transcript.num_tokens_around_evidence()

    @property
    def num_tokens_left(self) -> int:
        """Tokens that the answer may still have."""
        return self._config.decode.max_new_tokens - self._num_tokens

    @property
    def num_decoded(self) -> int:
        """Tokens chosen for drafts so far."""
        return self._drafter.num_decoded

    @property
    def num_discarded(self) -> int:
        """Of these, tokens that did not enter the answer and did not end it."""
        return self._num_discarded + self._drafter.num_dropped

    def open(self, passages: Sequence[Passage]) -> None:
        """Lay the prompt out with the passages of the first hop."""
        self._transcript.open(passages)

    def draft(self) -> Draft:
        """Draft the next sentence."""
        return self._drafter.draft(self.prefix, self.num_tokens_left, self._needs_blank)

    def commit(self, draft: Draft) -> None:
        """Make a draft part of the answer."""
        self._transcript.commit([token.id for token in draft.tokens])
        self._num_tokens += len(draft.tokens)
        self._text += draft.text
        self._said.add(_gist(draft.text))
        self._needs_blank = False

    def is_over(self, draft: Draft) -> bool:
        """Whether a draft shows that there is no more to say, and is no part of the answer.

        It is blank, begins with a stop text, or says again what the answer says.
        """
        decode, text = self._config.decode, draft.text.strip()
        stops = tuple(filter(None, decode.stop))
        repeats = decode.stop_on_repeat and _gist(text) in self._said
        return not text or text.startswith(stops) or repeats

    def discard(self, draft: Draft) -> None:
        """Throw a draft away."""
        self._num_discarded += len(draft.tokens)

    def say(self, text: str) -> str:
        """Make words that the model did not write part of the answer; returns them as they join."""
        joined = f" {text}" if self._seam_needs_blank() else text
        self._transcript.commit(self._model.encode(joined))
        self._text += joined
        self._needs_blank = self._seam_needs_blank()
        return joined

    def place(self, new: Sequence[Passage], every: Sequence[Passage]) -> None:
        """Put new evidence where the configuration says."""
        self._transcript.place(self._config.evidence.placement, new, every)
        if self._config.evidence.placement == "inline":
            self._needs_blank = self._seam_needs_blank()

    def next_turn(self, instruction: str) -> str:
        """Text that puts ``instruction`` to the model after the answer so far."""
        return self._transcript.next_turn("user", instruction)

    def close(self) -> None:
        """Settle the counts: a token looked at for the next draft is not needed any more."""
        self._drafter.forget_ahead()

    def _seam_needs_blank(self) -> bool:
        last = self._text[-1:]
        return bool(last) and not last.isspace() and last not in UNSPACED


def _gist(text: str) -> str:
    """A sentence without case, spacing and list marker: item 5 may say what item 4 said.

    All bare numbers count as one: a model that only numbers lines says nothing more.
    """
    if BARE_NUMBERS.fullmatch(text):
        return ""
    return " ".join(LIST_MARKER.sub("", text).casefold().split())
