"""Finding passages: documents in, ranked hits out."""

from typing import Protocol, runtime_checkable

from flare_runtime.types import Hit


class Retriever(Protocol):
    """What the engine asks of a retrieval backend. Any object with these members will do."""

    @property
    def num_passages(self) -> int:
        """How many passages can be found at all; 0 means an empty index."""
        ...

    @property
    def is_remote(self) -> bool:
        """True when a query leaves this machine; codenames are then redacted if so configured."""
        ...

    def search(self, query: str, top_k: int) -> tuple[Hit, ...]:
        """Return at most ``top_k`` hits, best first, ranks from 1; an empty tuple when none.

        Raises:
            FlareError: the search failed. A lookup then finds nothing and the answer goes on; any
                other exception ends the turn.
        """
        ...


class QueryWriter(Protocol):
    """Something that can phrase a query anew: the generator."""

    def write(self, instruction: str, max_tokens: int) -> str:
        """Answer ``instruction`` in at most ``max_tokens`` tokens."""
        ...


@runtime_checkable
class ExpandingRetriever(Retriever, Protocol):
    """A retriever that can expand queries when it is given someone to write them."""

    def with_writer(self, writer: QueryWriter) -> Retriever:
        """Return the same retriever, expanding queries through ``writer``."""
        ...
