"""The generator asked for a short text beside the answer: paraphrases, queries, self-checks."""

from collections.abc import Callable, Sequence

from flare_runtime.language_model import LanguageModel, Message
from flare_runtime.prompt import neutralise
from flare_runtime.sampling import Sampler
from flare_runtime.session import Session, SessionUsage
from flare_runtime.token_text import TokenText


class Writer:
    """Writes asides greedily and counts the tokens they cost.

    ``redact`` is applied to every instruction; it keeps codenames from a remote model.
    """

    def __init__(
        self, model: LanguageModel, answer: Session, redact: Callable[[str], str] = str
    ) -> None:
        self._model = model
        self._answer = answer
        self._aside = Session(model)
        self._redact = redact
        self._sampler = Sampler()
        self.num_decoded = 0

    @property
    def usage(self) -> SessionUsage:
        """Tokens of the instructions that stand on their own; the others count in the answer."""
        return self._aside.usage

    def write(self, instruction: str, max_tokens: int) -> str:
        """Answer an instruction that stands on its own."""
        clean = neutralise(self._redact(instruction), self._model.control_tokens)
        prompt = self._model.encode(self._model.render([Message("user", clean)]))
        return self._decode(self._aside, prompt, max_tokens)

    def continue_after(self, token_ids: Sequence[int], follow_up: str, max_tokens: int) -> str:
        """Answer a turn that follows ``token_ids``, whose cache is used and left in place."""
        prompt = (*token_ids, *self._model.encode(self._redact(follow_up)))
        return self._decode(self._answer, prompt, max_tokens)

    def _decode(self, session: Session, prompt: Sequence[int], max_tokens: int) -> str:
        output = session.sync(prompt)
        decoder = TokenText()
        text = ""
        for _ in range(max_tokens):
            choice = self._sampler.choose(output.logits[-1])
            self.num_decoded += 1
            if choice.id in self._model.stop_ids:
                break
            text += decoder.push(self._model.token_bytes(choice.id))
            output = session.step(choice.id)
        return (text + decoder.flush()).strip()
