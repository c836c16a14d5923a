"""Runs the cases from public bug reports through the adapters.

A component with an adapter has cases of one shape. Cases of other components describe a behaviour;
ordinary tests with the case id in their name stand for them.
"""

import importlib.util
import json
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ADAPTER_COMPONENTS = {
    "utf8_stream", "sentence_boundary", "blocklist", "bm25", "rerank", "label_import",
    "token_alignment", "ingest_markdown", "ingest_html", "ingest_text", "ingest_pdf",
}  # fmt: skip
ADAPTERS = {
    "utf8_stream": ("adapters_text", "run_utf8_stream"),
    "sentence_boundary": ("adapters_text", "run_sentence_boundary"),
    "blocklist": ("adapters_text", "run_blocklist"),
    "bm25": ("adapters_search", "run_bm25"),
    "rerank": ("adapters_search", "run_rerank"),
    "ingest_markdown": ("adapters_ingest", "run_markdown"),
    "ingest_html": ("adapters_ingest", "run_html"),
    "ingest_text": ("adapters_ingest", "run_text"),
    "ingest_pdf": ("adapters_ingest", "run_pdf"),
}
NOT_BUILT_YET = {"label_import": "critic.formats", "token_alignment": "flare_runtime.teacher_force"}
"""Components without an adapter, and the module that will bring them."""


@cache
def load(name):
    """Import a module of this folder: the tests are no package."""
    spec = importlib.util.spec_from_file_location(f"cases_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adapter(component):
    module, function = ADAPTERS[component]
    return getattr(load(module), function)


def read_cases(path):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines if line.strip()]
    return [case for case in cases if case["component"] in ADAPTERS]


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        cases = read_cases(metafunc.config.getoption("--cases"))
        metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])


def test_case(case):
    actual = adapter(case["component"])(case["input"])
    assert load("compare").mismatches(actual, case["expected"]) == []


@pytest.mark.parametrize("component", sorted(ADAPTER_COMPONENTS))
def test_every_component_that_is_built_has_an_adapter(component):
    if component in ADAPTERS:
        assert callable(adapter(component))
    else:
        package, _, name = NOT_BUILT_YET[component].partition(".")
        folder = HERE.parents[1] / package
        assert not any((folder / tail).exists() for tail in (name, f"{name}.py"))


def test_the_comparison_can_fail():
    mismatches = load("compare").mismatches
    assert mismatches({"spans": [[0, 1]]}, {"spans": [[0, 2]]})
    assert mismatches({}, {"spans": []})
