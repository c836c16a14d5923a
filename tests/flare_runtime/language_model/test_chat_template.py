"""Chat templates rendered by ours and by transformers, character for character."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from flare_runtime.errors import ModelError
from flare_runtime.language_model import Message
from flare_runtime.language_model.chat_template import PLAIN_TEMPLATE, ChatTemplate

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
CONVERSATIONS = [
    [Message("user", "Why?")],
    [Message("system", "Be brief."), Message("user", "Größe <b>&amp;</b>\n\n  indented?\n")],
    [Message("user", "a"), Message("assistant", " b "), Message("user", "c 🦊")],
    [Message("user", "{{ 7 * 7 }} {% if x %}"), Message("tool", '{"found": "ü"}')],
]
TEMPLATES = {
    "plain": PLAIN_TEMPLATE,
    "blocks are trimmed": (
        "{% for m in messages %}\n    {% if loop.first %}\n{{ bos_token }}\n    {% endif %}\n"
        "[{{ m.role }}]{{ m.content | trim }}{{ eos_token }}\n{% endfor %}\n"
        "{% if add_generation_prompt %}\n[assistant]\n{% endif %}"
    ),
    "loop control": (
        "{% for m in messages %}{% if m.role == 'tool' %}{% continue %}{% endif %}"
        "{{ m.content }}{% if loop.index > 1 %}{% break %}{% endif %}{% endfor %}"
    ),
    "generation marks": (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    ),
    "json": "{{ messages | tojson }}{{ messages | tojson(indent=2) }}",
    "namespace": (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
        "{{ ns.n }}{{ messages[0]['content'] }}"
    ),
    "optional variables": (
        "{% if tools %}T{% endif %}{% if documents is defined and documents %}D{% endif %}"
        "{% if enable_thinking is defined %}E{% endif %}{{ messages[0].content }}"
    ),
}


@pytest.mark.parametrize("messages", CONVERSATIONS)
@pytest.mark.parametrize("source", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_text_is_that_of_transformers(
    tiny_model_folder: Path, source: str, messages: list[Message]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_folder)
    tokenizer.bos_token, tokenizer.eos_token = "<s>", "</s>"
    wanted = tokenizer.apply_chat_template(
        [{"role": message.role, "content": message.content} for message in messages],
        chat_template=source,
        tokenize=False,
        add_generation_prompt=True,
    )
    assert ChatTemplate(source, TOKENS, "m").render(messages) == wanted


def test_without_a_template_roles_are_written_out() -> None:
    text = ChatTemplate(None, {}, "base").render([Message("user", "Why?")])
    assert text == "user: Why?\n\nassistant:"


def test_a_template_that_refuses_roles_says_which() -> None:
    template = ChatTemplate("{{ raise_exception('only user') }}", {}, "strict")
    with pytest.raises(ModelError, match=r"'strict' does not take the roles \['tool'\]: only user"):
        template.render([Message("tool", "x")])


@pytest.mark.parametrize("source", ["{% for %}", "{{ unclosed", "{% unknown_tag %}"])
def test_a_template_that_cannot_be_read_is_refused(source: str) -> None:
    with pytest.raises(ModelError, match="chat template of 'm' cannot be read: .*chat_template"):
        ChatTemplate(source, {}, "m")


@pytest.mark.parametrize(
    "source", ["{{ messages.append(1) }}", "{{ ''.__class__.__mro__ }}", "{{ messages[9].x.y }}"]
)
def test_a_template_stays_in_its_sandbox(source: str) -> None:
    with pytest.raises(ModelError, match="does not take the roles"):
        ChatTemplate(source, {}, "m").render([Message("user", "x")])
