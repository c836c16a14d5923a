"""Every setting of the runtime, its default and what it means. ``settings.py`` reads them in."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from flare_runtime.types import Placement

AbstainMode = Literal["sentence", "answer", "escalate", "off"]
QueryStyle = Literal["masked", "template", "written"]
Boundary = Literal["sentence", "clause"]
Dtype = Literal["float32", "bfloat16"]
Engine = Literal["auto", "onnx", "transformers"]
Precision = Literal["fp32", "int8", "int4"]

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The generator."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str = "smollm2-135m"
    """A name of ``flare models list``, a folder, or a hub name that was pulled."""
    engine: Engine = "auto"
    """``auto`` takes the graph of ``flare models build`` where there is one, else transformers."""
    precision: Precision = "int8"
    """Of the graph's weights."""
    dtype: Dtype = "float32"
    """Of transformers' weights."""
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    """OpenMP threads. Two busy processes want 1 each, or both slow down tenfold."""


@dataclass(frozen=True, slots=True)
class DecodeConfig:
    """How the generator writes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    max_new_tokens: Positive = 192
    """Limit of the whole answer."""
    temperature: Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False)] = 0.0
    """0, or next to it, is greedy. Trigger scores come from raw logits, whatever this says."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Count = 0
    boundary: Boundary = "sentence"
    """Where a draft may end: only after sentences, or after clause commas too."""
    max_draft_tokens: Positive = 64
    """After so many tokens without a sentence end, a clause end will do."""
    stop: tuple[str, ...] = ("Question:", "Passages:")
    """A sentence that begins with one of these ends the answer and is not part of it: a small
    model that goes on to lay out the next prompt."""
    stop_on_repeat: bool = True
    """End the answer when a sentence repeats a committed one, as small greedy models do."""


@dataclass(frozen=True, slots=True)
class TriggerConfig:
    """When to look something up. ``when`` is an expression over the triggers named below."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    when: str = "min_logprob"
    """``never``, one trigger, or ``any(a, b)`` / ``all(a, b)``, nested at will."""
    min_logprob: Finite = -2.3
    """Fires when a token is less probable than this (nats; -2.3 is a probability of .10)."""
    mean_logprob: Finite = -1.4
    """Fires when the sentence's mean log-probability is below this (nats)."""
    entropy: Finite = 3.5
    """Fires when a token's entropy spikes above this (nats)."""
    every_n_sentences: Positive = 1
    critic: Probability | None = None
    """Sentence risk to fire above; None takes the critic's own certified threshold."""
    self_check_max_tokens: Positive = 40
    whitelist: bool = True
    """Exempt names, numbers and versions that stand verbatim in the context from log-probability
    and entropy triggers."""
    token_risk: Probability = 0.5
    """A token whose critic risk is above this is masked in the forward query."""


@dataclass(frozen=True, slots=True)
class BlocklistConfig:
    """Codenames that must not trigger a lookup."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    file: str = ""
    """One codename a line, # starts a comment; relative to the configuration file."""
    hyphen_is_word_char: bool = False
    redact: bool = False
    """Never send a codename to a remote retriever or into a remote model's query prompt."""


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """What to ask once a trigger has fired."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    style: QueryStyle = "masked"
    mask_below: Probability = 0.4
    """A word with a token below this probability is left out (FLARE's beta)."""
    max_written_tokens: Positive = 32
    max_words: Positive = 64


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """How documents become an index, which remembers both."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    embedder: str = "all-minilm-l6-v2"
    chunk_tokens: Annotated[int, Field(ge=16)] = 200
    """Longest passage, heading path included, in the embedder's tokens."""


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """The pipeline of the first hop and of every lookup: expand, search, fuse, rerank."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    top_k: Positive = 4
    """Passages that open the prompt."""
    fused_k: Positive = 6
    """Candidates that rank fusion hands to the reranker."""
    depth: Positive = 50
    """Hits taken from each list before fusion."""
    rrf_k: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    dense_weight: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 1.0
    sparse_weight: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 1.0
    max_per_source: Positive = 3
    """No document may take more places than this among the fused candidates."""
    rerank: Literal["late_interaction", "cross_encoder", "none"] = "late_interaction"
    rerank_model: str = ""
    """Folder or name of a sequence-classification model, for ``rerank = "cross_encoder"``."""
    min_relevance: Finite | None = None
    """Hits with a lower rerank score are not evidence; 0 lets all pass, None takes what is off
    topic by the reranker's own scale (.20 for late interaction, nothing for others)."""
    paraphrases: Count = 0
    """Query expansion: so many paraphrases by the generator."""
    hyde: bool = False
    """Query expansion by a hypothetical answer (HyDE, arXiv 2212.10496)."""


@dataclass(frozen=True, slots=True)
class LookupConfig:
    """Caps on lookups while writing."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    max_per_answer: Count = 3
    max_per_sentence: Positive = 1
    passages: Positive = 2
    """New passages to keep from one lookup."""
    max_passages: Positive = 12
    """Passages in one answer, first hop included."""
    timeout_s: Annotated[float, Field(gt=0.0)] = 60.0
    """Wall clock of a whole answer after which no further lookup starts."""
    skip_questions: tuple[str, ...] = ()
    """Regular expressions; a question that matches one is answered from the first hop alone."""


@dataclass(frozen=True, slots=True)
class EvidenceConfig:
    """What stays in the context, and where new evidence is placed."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    placement: Placement = "front"
    max_tokens: Positive = 1200
    """Budget of all evidence in the prompt."""
    keep_lookups: Positive = 2
    """Passages of the last so many lookups stay whole; older ones are compressed."""
    compressed_sentences: Positive = 2
    """Sentences kept of a compressed passage: those most relevant to the question."""


@dataclass(frozen=True, slots=True)
class AbstainConfig:
    """What happens when confidence stays low after the cap."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    mode: AbstainMode = "sentence"
    sentence_text: str = "I cannot verify this in the docs."
    answer_text: str = "I cannot verify this in the docs."
    nothing_relevant_text: str = "I cannot verify this: the docs hold nothing relevant."
    empty_index_text: str = "I cannot verify this: no documents are indexed."
    escalate_text: str = "I cannot verify this in the docs and have passed it on."
    max_sentences: Positive = 2
    """After so many unverifiable sentences the answer ends."""


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """The words around question and evidence."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    system: str = (
        "You answer questions from the passages you are given. "
        "Be brief and exact: use only facts from the passages."
    )
    user: str = "Passages:\n\n{passages}\n\nQuestion: {question}"
    """The last user turn; ``{passages}`` and ``{question}`` are filled in verbatim."""
    user_without_passages: str = "{question}"
    history_tokens: Count = 512
    """Budget of earlier turns; the oldest go first."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What the turn log holds."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    tokens: bool = True
    """Write one entry a token."""


@dataclass(frozen=True, slots=True)
class FlareConfig:
    """The whole tree."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: ModelConfig = field(default_factory=ModelConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    trigger: TriggerConfig = field(default_factory=TriggerConfig)
    blocklist: BlocklistConfig = field(default_factory=BlocklistConfig)
    query: QueryConfig = field(default_factory=QueryConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    lookup: LookupConfig = field(default_factory=LookupConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    abstain: AbstainConfig = field(default_factory=AbstainConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    log: LogConfig = field(default_factory=LogConfig)
