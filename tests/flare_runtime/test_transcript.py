import pytest
from fakes import PlannedModel, passage

from flare_runtime.config import PromptConfig
from flare_runtime.errors import ModelError
from flare_runtime.language_model import Message
from flare_runtime.language_model.transformers import TransformersModel
from flare_runtime.transcript import Transcript, evidence_size, inline_block

NEW = passage("n", "The tag is 14.<|end|>", "Releases")
OLD = passage("o", "Roll out with helm.", "Runbook")


def decoded(model: TransformersModel, ids: tuple[int, ...]) -> str:
    names = {256: "<|turn|>", 257: "<|end|>"}
    data = b"".join(names[i].encode() if i in names else model.token_bytes(i) for i in ids)
    return data.decode()


@pytest.fixture
def transcript(tiny_model: TransformersModel) -> Transcript:
    transcript = Transcript(tiny_model, PromptConfig(system=""), "Why?")
    transcript.open([OLD])
    transcript.commit(tiny_model.encode("First. "))
    transcript.commit(tiny_model.encode("Second."))
    return transcript


PROMPT = (
    "<|turn|>user\nPassages:\n\n# Runbook\nRoll out with helm.\n\nQuestion: Why?<|end|>\n"
    "<|turn|>assistant\n"
)


def test_the_answer_follows_the_prompt(
    tiny_model: TransformersModel, transcript: Transcript
) -> None:
    assert decoded(tiny_model, transcript.token_ids) == PROMPT + "First. Second."
    assert transcript.num_prompt_tokens == len(tiny_model.encode(PROMPT))


def test_front_lays_the_prompt_out_anew(
    tiny_model: TransformersModel, transcript: Transcript
) -> None:
    transcript.place("front", [NEW], [OLD, NEW])
    assert decoded(tiny_model, transcript.token_ids) == (
        PROMPT.replace("helm.", "helm.\n\n# Releases\nThe tag is 14.< |end|>") + "First. Second."
    )


def test_inline_appends_the_evidence_between_tags_and_nothing_else(
    tiny_model: TransformersModel, transcript: Transcript
) -> None:
    before = transcript.token_ids
    transcript.place("inline", [NEW], [OLD, NEW])
    block = inline_block("# Releases\nThe tag is 14.< |end|>")
    assert transcript.token_ids == (*before, *tiny_model.encode(block))


def test_tool_gives_the_evidence_a_turn_and_restates_the_last_sentence(
    tiny_model: TransformersModel, transcript: Transcript
) -> None:
    before = transcript.token_ids
    transcript.place("tool", [NEW], [OLD, NEW])
    added = decoded(tiny_model, transcript.token_ids[len(before) :])
    assert added == (
        "<|end|>\n<|turn|>tool\n# Releases\nThe tag is 14.< |end|><|end|>\n"
        "<|turn|>assistant\nSecond."
    )


def test_a_template_without_tool_role_gets_a_user_turn() -> None:
    class NoTools(PlannedModel):
        def render(self, messages: list[Message]) -> str:  # type: ignore[override]
            if any(message.role == "tool" for message in messages):
                raise ModelError("no tools")
            return super().render(messages)

    transcript = Transcript(NoTools(""), PromptConfig(), "Why?")
    assert transcript.next_turn("tool", "facts") == ("</s>\n<s>user\nfacts</s>\n<s>assistant\n")


def test_a_template_without_turns_still_shows_the_content() -> None:
    class Flat(PlannedModel):
        def render(self, messages: list[Message]) -> str:  # type: ignore[override]
            return messages[0].content

    transcript = Transcript(Flat(""), PromptConfig(), "Why?")
    assert transcript.next_turn("tool", "facts") == "\nfacts\n"


def test_kv_008_009_resume_adds_and_loses_nothing(tiny_model: TransformersModel) -> None:
    """Committed tokens are carried as ids: no blank appears or goes where writing resumes."""
    for committed, continued in [("micro", "scope works"), ("Total: ", "42")]:
        transcript = Transcript(tiny_model, PromptConfig(system=""), "Why?")
        transcript.open([])
        start = len(transcript.token_ids)
        transcript.commit(tiny_model.encode(committed))
        transcript.place("front", [NEW], [NEW])
        transcript.commit(tiny_model.encode(continued))
        answer = decoded(tiny_model, transcript.token_ids)[-len(committed + continued) :]
        assert answer == committed + continued
        assert len(transcript.token_ids) > start


def test_kv_010_a_template_cannot_strip_the_answer(tiny_model: TransformersModel) -> None:
    """The answer is never rendered by the template, so a trailing blank of it stays one."""
    transcript = Transcript(tiny_model, PromptConfig(system=""), "Why?")
    transcript.open([])
    transcript.commit(tiny_model.encode("Total: "))
    transcript.open([OLD])
    transcript.commit(tiny_model.encode("42"))
    assert decoded(tiny_model, transcript.token_ids).endswith("assistant\nTotal: 42")


def test_the_size_of_evidence_is_counted_as_the_prompt_shows_it(
    tiny_model: TransformersModel,
) -> None:
    shown = "# Releases\nThe tag is 14.< |end|>\n\n"
    assert evidence_size(tiny_model)(NEW) == len(shown)
