"""``flare search``: what the retrieval pipeline finds, and why."""

import argparse
import json

from flare_runtime.cli.options import add_config, add_index, add_json, read_config
from flare_runtime.errors import ConfigError

EXCERPT = 160


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser("search", help="search an index")
    parser.add_argument("query", metavar="QUERY")
    add_index(parser)
    parser.add_argument("-k", "--top-k", type=int, metavar="K", help="default: retrieval.top_k")
    parser.add_argument(
        "--explain", action="store_true", help="show the ranks in each list, fusion and rerank"
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print hits, best first; exit code 3 when there are none."""
    from flare_runtime.opening import open_retriever

    config = read_config(args)
    top_k = config.retrieval.top_k if args.top_k is None else args.top_k
    if top_k < 1:
        raise ConfigError(f"--top-k must be at least 1, was: {top_k}")
    retriever = open_retriever(args.index, config)
    explanation = retriever.explain(args.query, top_k)
    if args.json:
        print(json.dumps(explanation.to_dict(), ensure_ascii=False))
        return 0 if explanation.hits else 3
    for line in explanation.lines(EXCERPT) if args.explain else explanation.hit_lines(EXCERPT):
        print(line)
    return 0 if explanation.hits else 3
