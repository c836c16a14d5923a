"""Decodes one look-ahead draft, up to a safe boundary."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flare_runtime.config import DecodeConfig
from flare_runtime.language_model import LanguageModel
from flare_runtime.sampling import Choice, Sampler
from flare_runtime.sentences import first_boundary
from flare_runtime.session import Session
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.token_text import TokenText
from flare_runtime.types import Draft, DraftFinish, Token


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What was written beyond a boundary before it was certain; the next draft begins with it.

    ``tokens`` have run, with their ``states``; ``choice`` has not.
    """

    after: tuple[int, ...]
    tokens: tuple[Token, ...]
    states: tuple[NDArray[np.float32], ...]
    choice: Choice


class Drafter:
    """Continues a sequence until its text reaches a boundary that is safe to commit at.

    Counts ``num_decoded`` tokens chosen and ``num_dropped`` of them that entered no draft: a
    boundary is certain only when the text behind it is known, and that is lost if evidence comes
    between.
    """

    def __init__(
        self,
        model: LanguageModel,
        session: Session,
        config: DecodeConfig,
        stopwatch: Stopwatch,
    ) -> None:
        self._model = model
        self._session = session
        self._config = config
        self._stopwatch = stopwatch
        self._sampler = Sampler(config.temperature, config.top_p, config.seed)
        self._ahead: _Ahead | None = None
        self._openers: NDArray[np.bool_] | None = None
        self.num_decoded = 0
        self.num_dropped = 0

    def draft(
        self, prefix: Sequence[int], max_tokens: int, must_open_with_blank: bool = False
    ) -> Draft:
        """Draft what follows ``prefix``.

        Every token of the draft is run, the last one too: its logits choose the token behind the
        boundary, and its states are the critic's.

        Args:
            prefix: the committed sequence.
            max_tokens: tokens left in the answer, at least 1.
            must_open_with_blank: the text before does not end in white space and the model does
                not see it end there, so the first token must bring a blank (or end the answer).
        """
        ahead = self._take_ahead(tuple(prefix))
        tokens = list(ahead.tokens) if ahead else []
        states = list(ahead.states) if ahead else []
        with self._stopwatch.stage("resume"):
            output = self._session.sync([*prefix, *(token.id for token in tokens)])
        with self._stopwatch.stage("decode"):
            if ahead:
                choice = ahead.choice
            elif must_open_with_blank:
                choice = self._choose(
                    output.logits[-1], self._blank_openers(output.logits.shape[-1])
                )
            else:
                choice = self._choose(output.logits[-1])
            return self._decode(tuple(prefix), tokens, states, choice, max_tokens)

    def forget_ahead(self) -> None:
        """Drop what was written beyond the last draft: the sequence it belonged to is gone."""
        if self._ahead is not None:
            self.num_dropped += len(self._ahead.tokens) + 1
            self._ahead = None

    def _take_ahead(self, prefix: tuple[int, ...]) -> _Ahead | None:
        ahead = self._ahead
        if ahead is not None and ahead.after == prefix:
            self._ahead = None
            return ahead
        self.forget_ahead()
        return None

    def _decode(
        self,
        prefix: tuple[int, ...],
        tokens: list[Token],
        states: list[NDArray[np.float32]],
        choice: Choice,
        max_tokens: int,
    ) -> Draft:
        decoder = TokenText()
        for token in tokens:
            decoder.push(self._model.token_bytes(token.id))
        finish: DraftFinish = "length"
        keep = None
        while keep is None and len(tokens) < max_tokens:
            if choice.id in self._model.stop_ids:
                return _draft(tokens, "eos", states)
            piece = decoder.push(self._model.token_bytes(choice.id))
            cut = self._cut(tokens, piece)
            if cut is not None:
                keep, finish = cut
                break
            tokens.append(Token(choice.id, piece, choice.logprob, choice.entropy))
            output = self._session.step(choice.id)
            if output.hidden is not None:
                states.append(output.hidden[-1])
            choice = self._choose(output.logits[-1])
        if keep is None:
            following = self._model.token_bytes(choice.id).decode("utf-8", "replace")
            keep = _whole_words(tokens, following or " ")
        self._ahead = _Ahead(
            (*prefix, *(token.id for token in tokens[:keep])),
            tuple(tokens[keep:]),
            tuple(states[keep:]),
            choice,
        )
        return _draft(tokens[:keep], finish, states[:keep])

    def _choose(
        self, logits: NDArray[np.float32], allowed: NDArray[np.bool_] | None = None
    ) -> Choice:
        self.num_decoded += 1
        return self._sampler.choose(logits, allowed)

    def _cut(self, tokens: list[Token], piece: str) -> tuple[int, DraftFinish] | None:
        """Where to cut, in tokens, once ``piece`` has made a boundary behind one of them certain.

        A boundary that lies inside a token, or behind one that also begins the next character,
        cannot be cut at; the draft then goes on to the next.
        """
        clauses = self._config.boundary == "clause" or len(tokens) >= self._config.max_draft_tokens
        text = "".join(token.text for token in tokens)
        start = 0
        while (boundary := first_boundary(text + piece, start, clauses=clauses)) is not None:
            if boundary.end > len(text):
                return None
            keep = _token_at(tokens, boundary.end)
            if self._ends_at(tokens[:keep], boundary.end):
                return keep, boundary.kind
            start = boundary.end
        return None

    def _ends_at(self, tokens: list[Token], offset: int) -> bool:
        """Whether nothing but white space stands in ``tokens`` behind ``offset`` characters."""
        decoder = TokenText()
        text = "".join(decoder.push(self._model.token_bytes(token.id)) for token in tokens)
        return decoder.is_whole and not text[offset:].strip()

    def _blank_openers(self, num_logits: int) -> NDArray[np.bool_]:
        """Tokens that begin with a blank, and those that end the answer. *Shape:* ``[V]``."""
        if self._openers is None or len(self._openers) != num_logits:
            first = [self._model.token_bytes(token_id)[:1] for token_id in range(num_logits)]
            self._openers = np.array([byte in (b" ", b"\n") for byte in first])
            self._openers[[i for i in self._model.stop_ids if i < num_logits]] = True
        return self._openers


def _token_at(tokens: list[Token], offset: int) -> int:
    """How many leading tokens it takes to reach ``offset`` characters."""
    length = 0
    for count, token in enumerate(tokens, start=1):
        length += len(token.text)
        if length >= offset:
            return count
    return len(tokens)


def _whole_words(tokens: list[Token], following: str) -> int:
    """How many leading tokens do not end inside a word, given the text that would follow.

    A token without text is part of a character and no place to cut.
    """
    after = [*(token.text for token in tokens[1:]), following]
    whole = [index for index, text in enumerate(after) if text[:1].isspace()]
    return whole[-1] + 1 if whole else len(tokens)


def _draft(tokens: list[Token], finish: DraftFinish, states: list[NDArray[np.float32]]) -> Draft:
    return Draft(tuple(tokens), finish, np.stack(states) if states else None)
