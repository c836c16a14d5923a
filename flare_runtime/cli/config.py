"""``flare config``: the effective configuration."""

import argparse
import json
from dataclasses import asdict

from flare_runtime.cli.options import add_config, add_json, read_config


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "config", help="print the effective configuration (defaults, file, environment, flags)"
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print TOML, or JSON."""
    from flare_runtime.settings import to_toml

    config = read_config(args)
    print(json.dumps(asdict(config), ensure_ascii=False) if args.json else to_toml(config).rstrip())
    return 0
