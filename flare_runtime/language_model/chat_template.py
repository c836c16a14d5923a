"""A model's chat template: from messages to the text of a prompt, by jinja2 alone."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from flare_runtime.errors import ModelError, first_line
from flare_runtime.language_model import Message

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
"""For base models, which bring no chat template."""


class _Generation(Extension):
    """``{% generation %}`` marks what the assistant wrote, for training; here it only passes."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """Renders messages as Hugging Face chat templates define it: sandboxed, blocks trimmed."""

    def __init__(self, source: str | None, tokens: Mapping[str, str], name: str) -> None:
        """Compile a template.

        Args:
            source: the template; None for the plain one.
            tokens: texts of the model's special tokens, such as ``bos_token``.
            name: what errors call the model.

        Raises:
            ModelError: the template cannot be compiled.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _now
        self._name = name
        self._tokens = dict(tokens)
        try:
            self._template = environment.from_string(source or PLAIN_TEMPLATE)
        except TemplateError as error:
            raise ModelError(
                f"the chat template of {name!r} cannot be read: {first_line(error)}; "
                "mend chat_template.jinja in its folder"
            ) from error

    def render(self, messages: Sequence[Message]) -> str:
        """Lay the messages out, up to where the assistant's answer begins.

        Raises:
            ModelError: the template does not take these roles in this order.
        """
        conversation = [{"role": m.role, "content": m.content} for m in messages]
        try:
            return self._template.render(
                messages=conversation, add_generation_prompt=True, **self._tokens
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise ModelError(
                f"the chat template of {self._name!r} does not take the roles "
                f"{[m.role for m in messages]}: {first_line(error)}"
            ) from error


def _to_json(value: Any, ensure_ascii: bool = False, **layout: Any) -> str:  # noqa: ANN401
    """Jinja's own filter escapes for HTML, which no prompt wants."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **layout)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
