"""Wall clock by stage."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Stage = Literal["first_hop", "decode", "critic", "retrieval", "resume"]


class Stopwatch:
    """Adds up the time spent in each stage since it was made. Stages do not nest."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._spent: dict[str, float] = defaultdict(float)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the start."""
        return (self._clock() - self._began) * 1000

    def spent_ms(self, stage: Stage) -> float:
        """Milliseconds spent in a stage so far."""
        return self._spent[stage] * 1000

    @contextmanager
    def stage(self, name: Stage) -> Iterator[None]:
        """Time what runs inside."""
        began = self._clock()
        try:
            yield
        finally:
            self._spent[name] += self._clock() - began
