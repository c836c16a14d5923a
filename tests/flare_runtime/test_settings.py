import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.config import FlareConfig
from flare_runtime.errors import ConfigError
from flare_runtime.settings import load_config, to_toml


def written(folder: Path, text: str) -> Path:
    path = folder / "flare.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_layer_wins_over_the_one_before(tmp_path: Path) -> None:
    path = written(tmp_path, "[decode]\nmax_new_tokens = 10\nseed = 1\ntemperature = 0.5\n")
    environment = {"FLARE_DECODE__SEED": "2", "FLARE_DECODE__TEMPERATURE": "0.7", "HOME": "/x"}
    decode = load_config(path, environment, ["decode.temperature=0.9"]).decode
    assert (decode.max_new_tokens, decode.seed, decode.temperature) == (10, 2, 0.9)
    assert decode.top_p == FlareConfig().decode.top_p


def test_without_anything_the_defaults_hold() -> None:
    assert load_config() == FlareConfig()


def test_the_printed_configuration_reads_back(tmp_path: Path) -> None:
    config = load_config(
        None,
        {},
        [
            'prompt.system=Say "no"\n\t\\ok',
            'lookup.skip_questions=["^hi", "bye$"]',
            "trigger.critic=0.25",
            "retrieval.hyde=true",
        ],
    )
    assert load_config(written(tmp_path, to_toml(config))) == config


@given(st.text())
def test_any_text_survives_printing(text: str) -> None:
    config = FlareConfig(prompt=FlareConfig().prompt.__class__(system=text))
    assert tomllib.loads(to_toml(config))["prompt"]["system"] == text


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (
            "decode.max_new_token=3",
            "unknown setting 'decode.max_new_token'; did you mean 'max_new_tokens'",
        ),
        ("decoder.seed=3", "unknown setting 'decoder'; did you mean 'decode'"),
        ("trigger.zzz=3", "unknown setting 'trigger.zzz'; known are when, "),
        ("decode.max_new_tokens=0", "decode.max_new_tokens: .*greater than or equal to 1, was: 0"),
        ("decode.temperature=nan", "decode.temperature: .*finite"),
        ("decode.temperature=warm", "decode.temperature: .*was: 'warm'"),
        ("evidence.placement=middle", "evidence.placement: .*'front', 'inline' or 'tool'"),
        ("abstain.mode=never", "abstain.mode"),
        ("retrieval.top_k=2.5", "retrieval.top_k"),
        ("decode.seed=-1", "decode.seed: .*greater than or equal to 0"),
        ("model.threads=100000000000", "model.threads: .*less than or equal to 1024"),
        ("trigger", "must be section.key=value, was: 'trigger'"),
        ("seed=3", "must be section.key=value, was: 'seed=3'"),
    ],
)
def test_a_wrong_setting_is_named(override: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(None, {}, [override])


def test_trig_011_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "[decode]\nmax_generation_length = 64\n")
    with pytest.raises(ConfigError, match="max_generation_length"):
        load_config(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seed = 3", "'seed' must stand in a section"),
        ("[decode", "is not TOML"),
        ("[decode]\nseed = 3\nseed = 4", "is not TOML"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(written(tmp_path, text))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the configuration .*No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_config(tmp_path / "binary.toml")


def test_a_blocklist_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    path = written(tmp_path, '[blocklist]\nfile = "codenames.txt"\n')
    assert load_config(path).blocklist.file == str(tmp_path / "codenames.txt")
    assert load_config(None, {}, ["blocklist.file=codenames.txt"]).blocklist.file == "codenames.txt"
