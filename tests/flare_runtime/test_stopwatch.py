import pytest

from flare_runtime.stopwatch import Stopwatch


class Clock:
    """A clock that is set by hand."""

    now = 10.0

    def __call__(self) -> float:
        return self.now


def test_time_is_added_up_by_stage() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    for seconds in (1.0, 0.5):
        with watch.stage("decode"):
            clock.now += seconds
    clock.now += 0.25
    assert watch.spent_ms("decode") == 1500
    assert watch.spent_ms("resume") == 0
    assert watch.elapsed_ms == 1750


def test_a_stage_that_fails_is_timed_too() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    with pytest.raises(RuntimeError), watch.stage("retrieval"):
        clock.now += 2
        raise RuntimeError
    assert watch.spent_ms("retrieval") == 2000
