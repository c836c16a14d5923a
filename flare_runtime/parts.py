"""What an engine is made of, and what one turn makes of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from critic import Critic
from flare_runtime.answer import Answer
from flare_runtime.blocklist import Blocklist
from flare_runtime.buffer import EvidenceBuffer
from flare_runtime.config import FlareConfig
from flare_runtime.errors import ConfigError
from flare_runtime.language_model import LanguageModel
from flare_runtime.lookups import Lookups
from flare_runtime.query import ForwardQuery
from flare_runtime.retrieval import ExpandingRetriever, Retriever
from flare_runtime.stopwatch import Stopwatch
from flare_runtime.transcript import evidence_size
from flare_runtime.writer import Writer

TAG_TOKENS = 32
"""Most tokens that tags or turn marks add around the evidence of one lookup."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an engine; they outlive its turns and hold no state of one.

    Raises:
        ConfigError: a pattern of ``lookup.skip_questions`` is no regular expression.
    """

    model: LanguageModel
    retriever: Retriever
    config: FlareConfig
    critic: Critic | None
    blocklist: Blocklist
    on_escalate: Callable[[str, str], None] | None

    def __post_init__(self) -> None:
        for pattern in self.config.lookup.skip_questions:
            try:
                re.compile(pattern)
            except (re.error, OverflowError) as error:
                raise ConfigError(
                    f"lookup.skip_questions must be regular expressions, was: {pattern!r} ({error})"
                ) from error

    @property
    def redact(self) -> Callable[[str], str]:
        """What a text goes through before it leaves this machine."""
        return self.blocklist.redact if self.config.blocklist.redact else str

    def watches(self, question: str) -> bool:
        """Whether this question may be looked up for while it is answered."""
        return not any(re.search(p, question) for p in self.config.lookup.skip_questions)

    def writer(self, answer: Answer) -> Writer:
        """Make the writer of one turn."""
        return Writer(self.model, answer.session, self.redact if self.model.is_remote else str)

    def _num_other_tokens(self) -> int:
        """Room for tags around evidence, a sentence restated, and words of abstention."""
        config, copy = self.config, self.config.abstain
        if config.evidence.placement == "front":
            of_lookup = 0
        else:
            restates = config.evidence.placement == "tool"
            of_lookup = TAG_TOKENS + (config.decode.max_draft_tokens if restates else 0)
        num_lookups = min(config.lookup.max_per_answer, config.lookup.max_passages)
        words = (copy.sentence_text, copy.answer_text, copy.nothing_relevant_text)
        longest = max(len(self.model.encode(f" {text}")) for text in (*words, copy.escalate_text))
        return num_lookups * of_lookup + (copy.max_sentences + 1) * longest

    def lookups(
        self, question: str, answer: Answer, writer: Writer, stopwatch: Stopwatch
    ) -> Lookups:
        """Make the searches of one turn, with what room the prompt leaves for evidence."""
        config, retriever = self.config, self.retriever
        if isinstance(retriever, ExpandingRetriever):
            retriever = retriever.with_writer(writer)
        room = (
            self.model.context_window
            - answer.num_tokens_around_evidence
            - config.decode.max_new_tokens
            - self._num_other_tokens()
        )
        buffer = EvidenceBuffer(
            config.evidence, question, evidence_size(self.model), config.lookup.max_passages, room
        )
        leaves = retriever.is_remote or self.model.is_remote
        redact = self.redact if leaves else str
        query = ForwardQuery(
            config.query, question, writer.write, config.trigger.token_risk, redact
        )
        return Lookups(retriever, buffer, query, config, redact, stopwatch)
