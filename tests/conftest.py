"""Fixtures and options of the whole suite."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from flare_runtime.model_store import models_root

CASES = Path(__file__).parent / "cases" / "cases.jsonl"

settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", default=str(CASES), metavar="FILE", help="cases from public bug reports (JSONL)"
    )
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden event files anew"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs the base models fails without them: a skip would look like a pass."""
    if item.get_closest_marker("real_model") is None:
        return
    folder = models_root()
    if not folder.is_dir() or not any(folder.iterdir()):
        pytest.fail(f"base models must be in {folder}: run `flare models pull`", pytrace=False)


@pytest.fixture(autouse=True)
def seed() -> None:
    """Start every test from the same random state."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  libraries under test draw from the global state
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--update-golden"))
