"""The command ``flare-train``: verbs and nothing else. Results on stdout, the rest on stderr."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from critic import TraceError
from flare_runtime.errors import ConfigError, FlareError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    parser = argparse.ArgumentParser(
        prog="flare-train", description="Make a critic from labelled traces."
    )
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    validate = verbs.add_parser("validate", help="check files of traces and count what they hold")
    validate.add_argument("traces", nargs="+", metavar="TRACES", help="JSONL, plain or gzipped")
    validate.add_argument("--json", action="store_true", help="print one JSON object")
    validate.set_defaults(run=run_validate)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; a failure is one line on stderr."""
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (FlareError, TraceError) as error:
        print(f"flare-train: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
    except KeyboardInterrupt:
        print("flare-train: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def run_validate(args: argparse.Namespace) -> int:
    """Print counts a file; every problem is a line on stderr and makes it fail."""
    from training.validate import validate_traces

    report = validate_traces(args.traces)
    if args.json:
        print(json.dumps(asdict(report), ensure_ascii=False))
    else:
        for file in report.files:
            print(
                f"{file.path}: {file.traces} traces ({file.labelled} labelled) "
                f"in {file.groups} groups, {file.sentences} sentences "
                f"({file.unsupported_sentences} unsupported), {file.spans} spans "
                f"({file.merged_overlaps} merged)"
            )
    for problem in report.problems:
        print(problem, file=sys.stderr)
    return EXIT_FAILED if report.problems else 0
