"""``flare ask``: a streamed answer on stdout, its lookups on stderr."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from flare_runtime.cli.console import say
from flare_runtime.cli.options import add_config, add_index, add_json, read_config
from flare_runtime.errors import ConfigError, FlareError

if TYPE_CHECKING:
    from flare_runtime.config import FlareConfig
    from flare_runtime.engine import FlareEngine
    from flare_runtime.events import Event
    from flare_runtime.turn_log import TurnLog
    from flare_runtime.types import Passage

EXIT_CODES = {"answered": 0, "failed": 1, "abstained": 3, "escalated": 4}


def add_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "ask",
        help="answer one question",
        description="Exit codes: 0 answered, 1 failed, 2 bad arguments, 3 abstained, 4 escalated.",
    )
    parser.add_argument("question", metavar="QUESTION")
    add_index(parser)
    parser.add_argument("--model", metavar="NAME", help="generator: a name, folder or hub name")
    parser.add_argument(
        "--trigger", metavar="T", help="e.g. never, min_logprob, any(mean_logprob, entropy)"
    )
    parser.add_argument("--no-lookup", action="store_true", help="answer from the first hop alone")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="append the turn to FILE as a trace to label"
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer and return the exit code of the outcome."""
    if not args.question.strip():
        raise ConfigError("the question must not be empty")
    overrides = [f"model.name={json.dumps(args.model)}"] if args.model else []
    overrides += [f"trigger.when={json.dumps(args.trigger)}"] if args.trigger else []
    engine = _open_engine(args, read_config(args, *overrides))
    display = None if args.json else _Display()
    turn: TurnLog | None = None
    passages: list[Passage] = []
    try:
        for event in engine.stream(args.question, lookups=not args.no_lookup):
            turn = _turn_of(event) or turn
            passages += _added_by(event)
            if display:  # with --json the turn log says it all
                display.show(event)
    finally:
        if turn is not None:
            _report(args, turn, passages)
    return EXIT_CODES[turn.outcome] if turn else EXIT_CODES["failed"]


def _open_engine(args: argparse.Namespace, config: "FlareConfig") -> "FlareEngine":
    from flare_runtime.engine import FlareEngine
    from flare_runtime.opening import load_model, open_retriever

    retriever = open_retriever(args.index, config)
    model = load_model(config.model.name, config.model)
    if config.model.engine == "auto" and model.engine.startswith("transformers"):
        say(
            f"flare: {config.model.name} has no {config.model.precision} graph; "
            f"`flare models build {config.model.name}` makes answers several times faster"
        )
    return FlareEngine(model, retriever, config)


def _report(args: argparse.Namespace, turn: "TurnLog", passages: "list[Passage]") -> None:
    """Record first: a full or closed stdout must not cost the trace, nor the other way round."""
    try:
        if args.record:
            _record(args.record, turn, passages)
    finally:
        if args.json:
            print(turn.to_json(), flush=True)
        elif turn.answer:
            print(flush=True)


def _record(file: Path, turn: "TurnLog", passages: "list[Passage]") -> None:
    from critic.trace import TraceError, append_trace
    from flare_runtime.tracing import trace_of_turn

    try:
        append_trace(file, trace_of_turn(turn, passages))
    except TraceError as error:
        raise FlareError(str(error)) from error


def _turn_of(event: "Event") -> "TurnLog | None":
    from flare_runtime.events import Finished

    return event.turn if isinstance(event, Finished) else None


def _added_by(event: "Event") -> "Iterable[Passage]":
    from flare_runtime.events import FirstHop, LookupFinished

    return event.added if isinstance(event, FirstHop | LookupFinished) else ()


class _Display:
    """The answer as it is committed on stdout, lookups on stderr."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, event: "Event") -> None:
        """Show one event."""
        from flare_runtime.events import Abstained, Committed, LookupFinished, LookupStarted

        match event:
            case Committed() | Abstained():
                self._last = event.text
                print(event.text, end="", flush=True)
            case LookupStarted():
                _break_line(self._last)
                say(f"Looking up… {event.query}")
            case LookupFinished(error=error) if error:
                say(f"  the search failed: {error}")
            case LookupFinished():
                say(f"  found {len(event.hits)} passages, {len(event.added)} new")
                for passage in event.added:
                    say(f"  + {passage.source}: {passage.title}")


def _break_line(shown: str) -> None:
    """Where both streams end up in one place, do not write into the middle of the answer."""
    if shown and not shown.endswith("\n") and _share_a_place():
        say("")


def _share_a_place() -> bool:
    try:
        out, err = (os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr))
    except (OSError, ValueError):
        return False
    return (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
