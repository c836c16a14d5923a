"""Small models to convert, and a graph of one."""

import shutil
from pathlib import Path

import pytest

from flare_runtime.export import build


@pytest.fixture(scope="session")
def built(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with an fp32 graph inside; tests copy it."""
    folder = tmp_path_factory.mktemp("built") / "tiny"
    shutil.copytree(tiny_model_folder, folder)
    build(str(folder), "fp32")
    return folder


@pytest.fixture
def model_folder(built: Path, tmp_path: Path) -> Path:
    """A copy of the built folder that a test may spoil; its graph is as current as before."""
    return shutil.copytree(built, tmp_path / "model")


@pytest.fixture
def plain_folder(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the model without a graph."""
    return shutil.copytree(tiny_model_folder, tmp_path / "plain")
