"""``flare models pull|build|list``: the base models."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from flare_runtime.cli.console import progress, say
from flare_runtime.cli.options import add_json
from flare_runtime.cli.units import readable_size
from flare_runtime.errors import ConfigError


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser("models", help="fetch and list base models")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    pull = actions.add_parser("pull", help="fetch base models, pinned by SHA-256")
    pull.add_argument(
        "names", nargs="*", metavar="NAME", help="default: every model that the registry pins"
    )
    pull.set_defaults(run=run_pull)
    build = actions.add_parser(
        "build",
        help="make a graph that plain onnxruntime runs several times as fast as transformers",
        description="Needs the extra: pip install 'flare-runtime[export]'. A graph lies in the "
        "model's own folder, where flare ask finds it, and is built anew only when the model "
        "has changed.",
    )
    build.add_argument(
        "names", nargs="+", metavar="NAME", help="a name of flare models list, a folder or hub name"
    )
    build.add_argument("--engine", choices=("onnx",), default="onnx", help="what is to run it")
    build.add_argument(
        "--precision",
        choices=("fp32", "int8", "int4"),
        help="of the weights; default: int8 for a generator, fp32 for an embedder",
    )
    build.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="write the graph to DIR; use it by --model"
    )
    add_json(build)
    build.set_defaults(run=run_build)
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


def run_build(args: argparse.Namespace) -> int:
    """Build graphs; those that are current are skipped."""
    from flare_runtime.export import build
    from flare_runtime.model_store import read_graph_manifest

    if args.output and len(args.names) > 1:
        raise ConfigError(f"--output takes one model, was: {len(args.names)}")
    for name in args.names:
        with progress(name) as report:
            folder = build(name, args.precision, args.output, report)
        manifest = read_graph_manifest(folder)
        if args.json and manifest:
            print(json.dumps({"folder": str(folder), **asdict(manifest)}), flush=True)
        elif manifest:
            agreement = "" if manifest.agreement is None else f", agreement {manifest.agreement}"
            say(f"{name}: {manifest.precision} graph ready in {folder}{agreement}")
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
