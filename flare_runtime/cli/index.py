"""``flare index``: documents in, an index folder out."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from flare_runtime.cli.console import progress, say
from flare_runtime.cli.options import add_config, add_json, read_config

MAX_SHOWN = 20


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "index", help="index Markdown, HTML, text and PDF documents; incremental"
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="documents")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="INDEX", help="folder to write"
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build or refresh an index and report what was skipped."""
    from flare_runtime.retrieval.embedder import open_embedder
    from flare_runtime.retrieval.indexing import build_index

    config = read_config(args)
    embedder = open_embedder(config.index.embedder, config.model.threads)
    with progress() as report:
        result = build_index(
            args.folders,
            args.output,
            embedder,
            config.index.chunk_tokens,
            progress=report,
        )
    for skipped in result.skipped[:MAX_SHOWN]:
        say(f"skipped {skipped.source}: {skipped.reason}")
    if len(result.skipped) > MAX_SHOWN:
        say(f"skipped {len(result.skipped) - MAX_SHOWN} more; --json lists all")
    for warning in result.warnings:
        say(f"warning: {warning}")
    if args.json:
        print(json.dumps(asdict(result), ensure_ascii=False))
        return 0
    print(
        f"{result.num_passages} passages from {result.num_files} files in {args.output} "
        f"({result.num_embedded} embedded, {result.num_reused} files unchanged, "
        f"{len(result.skipped)} skipped)"
    )
    return 0
