"""Plain classes behind the runtime's protocols: a model that follows a plan, a fixed retriever."""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from critic import CriticScore
from flare_runtime.language_model import Forward, Message, Signal
from flare_runtime.types import Hit, Passage

PIECE = re.compile(r"</?s>|\s*[^\s<]+|\s+|\s*<")
EVIDENCE = re.compile(r"\n<evidence>\n.*?\n</evidence>", re.DOTALL)
ANSWER_OPENS = "<s>assistant\n"
END = "</s>"
UNSURE = re.compile(r"^(\s*)\?(.*)$", re.DOTALL)

Plan = Callable[[str], str]
"""From the whole sequence's text to the answer that the model means to give.

A piece written ``?word`` is the word at a probability of .05 instead of .95."""


class PlannedCache:
    def __init__(self) -> None:
        self.ids: list[int] = []

    @property
    def length(self) -> int:
        return len(self.ids)

    def crop(self, length: int) -> None:
        del self.ids[length:]


class PlannedModel:
    """Writes what a plan says, word by word. Its hidden state is the token's own id.

    ``runs`` has the number of inputs of each pass, ``prompts`` the text behind each prefill.
    """

    name = "planned"
    engine = "plan"
    layers = frozenset({0, 1, 2})
    context_window = 4096
    control_tokens = ("<s>", END)
    signals: frozenset[Signal] = frozenset({"logprob", "entropy", "hidden"})
    is_remote = False
    vocabulary_size = 2048

    def __init__(self, plan: Plan | str) -> None:
        self._plan: Plan = (lambda text: plan) if isinstance(plan, str) else plan
        self._ids: dict[str, int] = {END: 0, "<s>": 1}
        self.runs: list[int] = []
        self.prompts: list[str] = []

    @property
    def stop_ids(self) -> frozenset[int]:
        return frozenset({0, 1})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._id(piece) for piece in PIECE.findall(text))

    def token_bytes(self, token_id: int) -> bytes:
        piece = self._piece(token_id)
        return b"" if piece in self.control_tokens else piece.encode("utf-8")

    def render(self, messages: Sequence[Message]) -> str:
        turns = [f"<s>{message.role}\n{message.content}{END}\n" for message in messages]
        return "".join([*turns, ANSWER_OPENS])

    def new_cache(self) -> PlannedCache:
        return PlannedCache()

    def forward(
        self,
        token_ids: Sequence[int],
        cache: PlannedCache,
        layers: tuple[int, ...] = (),
        num_logits: int = 1,
    ) -> Forward:
        cache.ids.extend(token_ids)
        self.runs.append(len(token_ids))
        hidden = np.array(token_ids, dtype=np.float32)[:, None, None]
        return Forward(
            self._logits("".join(self._piece(token_id) for token_id in cache.ids))[np.newaxis],
            np.broadcast_to(hidden, (len(token_ids), len(layers), 1)) if layers else None,
        )

    def _logits(self, text: str) -> NDArray[np.float32]:
        if len(self.runs) == 1 or self.runs[-1] > 1:
            self.prompts.append(text)
        word, prob = self._next(text)
        rest = (1 - prob) / (self.vocabulary_size - 1)
        logits = np.full(self.vocabulary_size, np.log(rest), dtype=np.float32)
        logits[self._id(word)] = np.log(prob)
        if prob < rest * 2:
            logits[logits == logits.max()] = np.log(rest)
        return logits

    def _next(self, text: str) -> tuple[str, float]:
        written = EVIDENCE.sub("", text.rpartition(ANSWER_OPENS)[2])
        plan = PIECE.findall(self._plan(text))
        words = [UNSURE.sub(r"\1\2", piece) for piece in plan]
        for count in range(len(words), -1, -1):
            if written.endswith("".join(words[:count])):
                break
        if count == len(words):
            return END, 0.95
        return words[count], 0.05 if UNSURE.match(plan[count]) else 0.95

    def _id(self, piece: str) -> int:
        return self._ids.setdefault(piece, len(self._ids))

    def _piece(self, token_id: int) -> str:
        return next((piece for piece, known in self._ids.items() if known == token_id), "")


class FixedRetriever:
    """Finds the passages whose key word occurs in the query, in the order given."""

    is_remote = False

    def __init__(self, passages: dict[str, Passage] | None = None) -> None:
        self._passages = passages or {}
        self.queries: list[str] = []

    @property
    def num_passages(self) -> int:
        return len(self._passages)

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        self.queries.append(query)
        found = [p for word, p in self._passages.items() if word.casefold() in query.casefold()]
        return tuple(Hit(p, 1.0 / rank, rank) for rank, p in enumerate(found[:top_k], start=1))


class WordCritic:
    """Gives each token the risk of its id in a table; the sentence gets the highest."""

    name = "word-critic"
    layers = (1,)
    threshold = 0.5

    def __init__(self, risk_of_id: dict[int, float]) -> None:
        self._risk_of_id = risk_of_id

    def score(self, hidden: NDArray[np.float32], mask: NDArray[np.bool_]) -> CriticScore:
        risks = [self._risk_of_id.get(int(state), 0.1) for state in hidden[:, 0, 0]]
        token_risk = np.array(risks, dtype=np.float32)
        return CriticScore(token_risk, float(token_risk[mask].max(initial=0.0)))


def passage(id_: str, text: str, title: str = "") -> Passage:
    return Passage(id_, text, title or id_, f"{id_}.md", 0, len(text))
