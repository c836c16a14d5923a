"""Lays out question, history and evidence as the text of a prompt. Evidence is data."""

import re
from collections.abc import Callable, Mapping, Sequence

from flare_runtime.config import PromptConfig
from flare_runtime.errors import ContextError
from flare_runtime.language_model import Message
from flare_runtime.types import Passage

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
CHAT_MARKER = re.compile(
    r"<\|[^|<>\s]{1,40}\|>"  # ChatML and its relatives
    r"|</?s>|<<\s*/?SYS\s*>>|\[/?INST\]"  # Llama 2, Mistral
    r"|<(?:start|end)_of_turn>|<[be]os>"  # Gemma
    r"|\[/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|</?(?:evidence|tool_call|tool_response)>",
    re.IGNORECASE,
)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put ``values`` into ``{name}`` placeholders, verbatim and exactly once.

    A brace or placeholder inside a value is text, not a template.
    """
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def neutralise(text: str, control_tokens: Sequence[str]) -> str:
    """Break up everything that a tokenizer or chat template could read as control.

    A blank goes behind the first character of each marker: people still read it, and no turn can
    be opened with it.
    """
    broken = CHAT_MARKER.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
    for token in control_tokens:
        if len(token) > 1 and not token.isspace():
            broken = broken.replace(token, f"{token[0]} {token[1:]}")
    return broken


def passages_text(passages: Sequence[Passage]) -> str:
    """Passages as the prompt shows them: a heading line each, a blank line between."""
    return "\n\n".join(f"# {p.title or p.source}\n{p.text}" for p in passages)


def recent_history(
    history: Sequence[Message], count_tokens: Callable[[str], int], max_tokens: int
) -> tuple[Message, ...]:
    """The latest turns that fit ``max_tokens``; a turn is kept whole or dropped.

    What is kept begins with a turn of the user, as most chat templates demand.
    """
    kept: list[Message] = []
    left = max_tokens
    for message in reversed(history):
        left -= count_tokens(message.content)
        if left < 0:
            break
        kept.append(message)
    while kept and kept[-1].role != "user":
        kept.pop()
    return tuple(reversed(kept))


def chat_messages(
    config: PromptConfig,
    question: str,
    evidence: str | None,
    history: Sequence[Message],
    control_tokens: Sequence[str],
) -> tuple[Message, ...]:
    """Messages of one turn: system, history, then evidence and question in the last user turn.

    Everything but the configured words is data and neutralised. ``evidence`` None lays the turn
    out without passages.
    """

    def clean(text: str) -> str:
        return neutralise(text, control_tokens)

    template = config.user_without_passages if evidence is None else config.user
    last = fill(template, {"passages": clean(evidence or ""), "question": clean(question)})
    system = (Message("system", config.system),) if config.system else ()
    earlier = tuple(Message(m.role, clean(m.content)) for m in history)
    return (*system, *earlier, Message("user", last))


def choose_within_budget(sizes: Sequence[int], budget: int) -> tuple[int, ...]:
    """Indices, by rank, of what fits ``budget`` tokens: whole or not at all, smaller may follow.

    Raises:
        ContextError: the budget is negative, so not even the prompt without evidence fits.
    """
    if budget < 0:
        raise ContextError(
            f"the prompt alone exceeds the budget by {-budget} tokens; shorten the question or the"
            " history, or lower decode.max_new_tokens"
        )
    chosen = []
    for index, size in enumerate(sizes):
        if size <= budget:
            chosen.append(index)
            budget -= size
    return tuple(chosen)
