"""The command ``flare``: verbs and nothing else. Answers on stdout, everything else on stderr."""

import argparse
import sys
from collections.abc import Sequence

from flare_runtime.cli import ask, config, index, models, search
from flare_runtime.errors import ConfigError, FlareError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    parser = argparse.ArgumentParser(
        prog="flare",
        description="Answer questions from your documents, looking up more while writing.",
    )
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for module in (models, index, search, ask, config):
        module.add_verb(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; a failure is one line on stderr."""
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except FlareError as error:
        print(f"flare: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
    except KeyboardInterrupt:
        print("flare: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED
