import subprocess
import sys

import pytest

import critic
import flare_runtime


@pytest.mark.parametrize("package", [critic, flare_runtime], ids=lambda p: p.__name__)
def test_every_public_name_can_be_imported(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert sorted(names) == list(names)
    for name in names:
        assert getattr(package, name).__name__.endswith(name)


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Magic'"):
        flare_runtime.Magic  # noqa: B018


def test_importing_the_package_loads_no_engine() -> None:
    code = "import sys, flare_runtime; print('torch' in sys.modules or 'faiss' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
