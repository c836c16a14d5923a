"""The command ``flare``: verbs and nothing else. Answers on stdout, everything else on stderr."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from flare_runtime.cli import ask, config, index, models, search
from flare_runtime.cli.console import say
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 gets "?"
    args = build_parser().parse_args(argv)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except FlareError as error:
        say(f"flare: {error}")
        return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
    except KeyboardInterrupt:
        say("flare: interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:
        _abandon_stdout()
        if not isinstance(error, BrokenPipeError):
            say(f"flare: {error}")
        return EXIT_FAILED


def _abandon_stdout() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain on its way out."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
