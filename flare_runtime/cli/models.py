"""``flare models pull|list``: the base models."""

import argparse
import json
from dataclasses import asdict

from flare_runtime.cli.console import progress, say
from flare_runtime.cli.options import add_json
from flare_runtime.cli.units import readable_size


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser("models", help="fetch and list base models")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    pull = actions.add_parser("pull", help="fetch base models, pinned by SHA-256")
    pull.add_argument(
        "names", nargs="*", metavar="NAME", help="default: every model that the registry pins"
    )
    pull.set_defaults(run=run_pull)
    listing = actions.add_parser("list", help="show base models and where they are")
    add_json(listing)
    listing.set_defaults(run=run_list)


def run_pull(args: argparse.Namespace) -> int:
    """Fetch models; those that are complete are skipped."""
    from flare_runtime.model_store import list_models, pull

    for name in args.names or [status.name for status in list_models()]:
        with progress(name, in_bytes=True) as report:
            folder = pull(name, report)
        say(f"{name}: ready in {folder}")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print one line a model."""
    from flare_runtime.model_store import list_models

    statuses = list_models()
    if args.json:
        print(json.dumps([{**asdict(s), "folder": str(s.folder)} for s in statuses]))
        return 0
    for status in statuses:
        state = "pulled" if status.pulled else "not pulled"
        size = readable_size(status.size)
        print(f"{status.name:20} {status.kind:10} {size:>9} {status.license:12} {state}")
    return 0
