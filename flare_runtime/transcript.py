"""The token sequence of one answer: prompt, committed tokens, evidence placed between them."""

from collections.abc import Callable, Sequence

from flare_runtime.config import PromptConfig
from flare_runtime.errors import ModelError
from flare_runtime.language_model import LanguageModel, Message, Role
from flare_runtime.prompt import chat_messages, neutralise, passages_text
from flare_runtime.types import Passage, Placement

MARK = "\u2042ANSWER\u2042"
"""Stands for an answer while a template is taken apart; no template and no text contains it."""


class Transcript:
    """Grows by token ids only; text that the model wrote is never tokenised again."""

    def __init__(
        self,
        model: LanguageModel,
        config: PromptConfig,
        question: str,
        history: Sequence[Message] = (),
    ) -> None:
        self._model = model
        self._config = config
        self._question = question
        self._history = tuple(history)
        self._prompt: tuple[int, ...] = ()
        self._body: list[int] = []
        self._last_sentence: tuple[int, ...] = ()

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The whole sequence, up to where the next token goes."""
        return (*self._prompt, *self._body)

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens before the answer."""
        return len(self._prompt)

    def open(self, passages: Sequence[Passage]) -> None:
        """Lay the prompt out anew with ``passages`` before the question; the answer stays."""
        self._prompt = self._lay_out(passages_text(passages) if passages else None)

    def num_tokens_around_evidence(self) -> int:
        """Tokens of the prompt that are no evidence: question, history and the words around."""
        return len(self._lay_out(""))

    def _lay_out(self, evidence: str | None) -> tuple[int, ...]:
        messages = chat_messages(
            self._config, self._question, evidence, self._history, self._model.control_tokens
        )
        return self._model.encode(self._model.render(messages))

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append a sentence of the answer."""
        self._body.extend(token_ids)
        self._last_sentence = tuple(token_ids)

    def place(
        self,
        placement: Placement,
        new: Sequence[Passage],
        every: Sequence[Passage],
    ) -> None:
        """Put evidence into the sequence.

        ``front``: before the question, which is laid out anew with ``every`` passage.
        ``inline``: right here, between tags. ``tool``: in a turn of its own, after which the last
        committed sentence is restated so that the model goes on from it.
        """
        if placement == "front":
            self.open(every)
            return
        evidence = neutralise(passages_text(new), self._model.control_tokens)
        if placement == "inline":
            self._body.extend(self._model.encode(inline_block(evidence)))
        else:
            self._body.extend(self._model.encode(self.next_turn("tool", evidence)))
            self._body.extend(self._last_sentence)

    def next_turn(self, role: Role, content: str) -> str:
        """Text that ends the answer's turn, gives a turn to ``role`` and opens the answer's again.

        Taken from the model's own template; a template without that role gets a user turn.
        """
        roles: tuple[Role, ...] = ("tool", "user") if role == "tool" else (role,)
        for candidate in roles:
            rendered = self._render_after_mark(candidate, content)
            if content.strip() in rendered:
                return rendered
        return f"\n{content}\n"

    def _render_after_mark(self, role: Role, content: str) -> str:
        conversation = [
            Message("user", "?"),
            Message("assistant", MARK),
            Message(role, content),
        ]
        try:
            rendered = self._model.render(conversation)
        except ModelError:
            return ""
        return rendered.partition(MARK)[2]


def inline_block(evidence: str) -> str:
    """Evidence as it stands inside an answer."""
    return f"\n<evidence>\n{evidence}\n</evidence>"


def evidence_size(model: LanguageModel) -> Callable[[Passage], int]:
    """Count the tokens that a passage takes in a prompt."""

    def size(passage: Passage) -> int:
        return len(model.encode(neutralise(passages_text([passage]), model.control_tokens))) + 2

    return size
