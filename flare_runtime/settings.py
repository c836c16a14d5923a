"""Reads the configuration: defaults ← TOML file ← environment ← flags, each over the one before.

An unknown key is an error that names it, never silently dropped.
"""

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flare_runtime.config import FlareConfig
from flare_runtime.errors import ConfigError

ENVIRONMENT_PREFIX = "FLARE_"
SECTION_SEPARATOR = "__"
"""``FLARE_TRIGGER__WHEN=critic`` sets ``when`` in ``[trigger]``."""

Layer = dict[str, dict[str, Any]]


def load_config(
    path: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> FlareConfig:
    """Build the effective configuration.

    Args:
        path: a TOML file, or None for the defaults.
        environment: usually ``os.environ``; only ``FLARE_SECTION__KEY`` names are read.
        overrides: ``section.key=value`` from the command line.

    Raises:
        ConfigError: a file cannot be read, or a setting is unknown or out of range.
    """
    merged: Layer = {}
    for layer in (
        _from_file(Path(path)) if path else {},
        _from_environment(environment or {}),
        _from_overrides(overrides),
    ):
        for section, values in layer.items():
            merged.setdefault(section, {}).update(values)
    return _validate(merged)


def to_toml(config: FlareConfig) -> str:
    """Write a configuration as TOML that ``load_config`` reads back; None is left out."""
    lines: list[str] = []
    for section, values in asdict(config).items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_literal(v)}" for key, v in values.items() if v is not None]
        lines.append("")
    return "\n".join(lines)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, str):  # JSON's escapes are TOML's, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _from_file(path: Path) -> Layer:
    try:
        layer = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    for section, values in layer.items():
        if not isinstance(values, dict):
            raise ConfigError(
                f"{path}: {section!r} must stand in a section such as [trigger], was at the top"
            )
    blocklist = layer.get("blocklist", {})
    if blocklist.get("file"):
        blocklist["file"] = str(path.parent / str(blocklist["file"]))
    return layer


def _from_environment(environment: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for name, value in environment.items():
        if name.startswith(ENVIRONMENT_PREFIX) and SECTION_SEPARATOR in name:
            section, _, key = name.removeprefix(ENVIRONMENT_PREFIX).partition(SECTION_SEPARATOR)
            layer.setdefault(section.lower(), {})[key.lower()] = _value(value)
    return layer


def _from_overrides(overrides: Sequence[str]) -> Layer:
    layer: Layer = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        section, dot, key = name.strip().partition(".")
        if not equals or not dot:
            raise ConfigError(f"an override must be section.key=value, was: {override!r}")
        layer.setdefault(section, {})[key] = _value(value)
    return layer


def _value(text: str) -> object:
    """Read a value as TOML would, or take it as a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _validate(values: Layer) -> FlareConfig:
    try:
        return TypeAdapter(FlareConfig).validate_python(values)
    except ValidationError as error:
        raise ConfigError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = [str(part) for part in problem["loc"]]
    if problem["type"] != "unexpected_keyword_argument":
        return f"{'.'.join(place)}: {problem['msg'].lower()}, was: {problem['input']!r}"
    sections = {f.name: f for f in fields(FlareConfig)}
    known = list(sections)
    if len(place) > 1:
        known = list(asdict(FlareConfig())[place[0]])
    close = difflib.get_close_matches(place[-1], known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    return f"unknown setting {'.'.join(place)!r}; {hint}"
