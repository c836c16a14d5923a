"""Options that several verbs share."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flare_runtime.config import FlareConfig


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add ``--index``."""
    parser.add_argument(
        "--index", "-i", type=Path, required=True, metavar="INDEX", help="folder of `flare index`"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` and ``--set``."""
    parser.add_argument("--config", "-c", type=Path, metavar="FILE", help="a TOML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="override one setting; may be given several times",
    )


def read_config(args: argparse.Namespace, *overrides: str) -> "FlareConfig":
    """Build the effective configuration of a verb that has ``add_config``."""
    from flare_runtime.settings import load_config

    return load_config(args.config, os.environ, [*args.set, *overrides])
