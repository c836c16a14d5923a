"""Reads ``any(mean_logprob, all(critic, entropy))`` into a trigger."""

import re
from collections.abc import Callable, Mapping

from critic import Critic
from flare_runtime.config import TriggerConfig
from flare_runtime.errors import ConfigError
from flare_runtime.triggers import Trigger
from flare_runtime.triggers.combined import CombinedTrigger
from flare_runtime.triggers.confidence import EntropyTrigger, MeanLogprobTrigger, MinLogprobTrigger
from flare_runtime.triggers.critic import CriticTrigger
from flare_runtime.triggers.schedule import EveryNSentencesTrigger, NeverTrigger
from flare_runtime.triggers.self_check import Ask, SelfCheckTrigger

Factory = Callable[[], Trigger]
"""Builds one named trigger on demand, so that only what is named is built."""

MAX_BRACKETS = 50
WORD = re.compile(r"\s*([a-z_]+|[(),])\s*")


def build_trigger(config: TriggerConfig, critic: Critic | None, ask: Ask) -> Trigger:
    """Build the trigger of ``config.when``.

    Raises:
        ConfigError: the expression does not parse or names an unknown trigger.
    """
    certified = critic.threshold if critic else 1.0
    threshold = certified if config.critic is None else config.critic
    factories: dict[str, Factory] = {
        "never": NeverTrigger,
        "min_logprob": lambda: MinLogprobTrigger(config.min_logprob),
        "mean_logprob": lambda: MeanLogprobTrigger(config.mean_logprob),
        "entropy": lambda: EntropyTrigger(config.entropy),
        "critic": lambda: CriticTrigger(threshold, config.token_risk),
        "self_check": lambda: SelfCheckTrigger(ask),
        "every_n_sentences": lambda: EveryNSentencesTrigger(config.every_n_sentences),
    }
    return parse_trigger(config.when, factories)


def parse_trigger(expression: str, factories: Mapping[str, Factory]) -> Trigger:
    """Build the trigger that ``expression`` names.

    Grammar: ``trigger = NAME | ("any" | "all") "(" trigger {"," trigger} ")"``.

    Raises:
        ConfigError: the expression does not parse or names an unknown trigger.
    """
    words = _split(expression)
    if words.count("(") > MAX_BRACKETS:
        raise _error(expression, f"it may have at most {MAX_BRACKETS} brackets")
    trigger, rest = _parse(words, expression, factories)
    if rest:
        raise _error(expression, f"nothing may follow the first trigger, was: {' '.join(rest)!r}")
    return trigger


def _split(expression: str) -> list[str]:
    words, position = [], 0
    while position < len(expression.rstrip()):
        match = WORD.match(expression, position)
        if match is None:
            raise _error(expression, f"cannot read {expression[position:]!r}")
        words.append(match[1])
        position = match.end()
    return words


def _parse(
    words: list[str], expression: str, factories: Mapping[str, Factory]
) -> tuple[Trigger, list[str]]:
    if not words:
        raise _error(expression, "a trigger is missing")
    head, rest = words[0], words[1:]
    if head == "any" or head == "all":
        parts, rest = _parse_parts(rest, expression, factories)
        return CombinedTrigger("any" if head == "any" else "all", parts), rest
    if head not in factories:
        raise _error(
            expression, f"unknown trigger {head!r}; known are {', '.join(sorted(factories))}"
        )
    return factories[head](), rest


def _parse_parts(
    words: list[str], expression: str, factories: Mapping[str, Factory]
) -> tuple[list[Trigger], list[str]]:
    if words[:1] != ["("]:
        raise _error(expression, "any and all want their triggers in brackets")
    part, rest = _parse(words[1:], expression, factories)
    parts = [part]
    while rest[:1] == [","]:
        part, rest = _parse(rest[1:], expression, factories)
        parts.append(part)
    if rest[:1] != [")"]:
        raise _error(expression, "a closing bracket is missing")
    return parts, rest[1:]


def _error(expression: str, problem: str) -> ConfigError:
    return ConfigError(
        f"trigger.when is not a trigger: {problem}; was: {expression[:80]!r}; "
        "write e.g. critic, or any(min_logprob, entropy)"
    )
