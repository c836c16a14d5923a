import pytest
from assessments import assess, critic_score
from fakes import WordCritic
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.assessment import Assessment
from flare_runtime.config import TriggerConfig
from flare_runtime.errors import ConfigError
from flare_runtime.triggers import Need, Trigger
from flare_runtime.triggers.expression import build_trigger, parse_trigger
from flare_runtime.types import Decision, Span


class Fixed:
    """A trigger with a fixed answer that counts how often it was asked."""

    needs: frozenset[Need] = frozenset({"logprob"})

    def __init__(self, name: str, fires: bool) -> None:
        self.name = name
        self._fires = fires
        self.num_asked = 0

    def decide(self, assessment: Assessment) -> Decision:
        self.num_asked += 1
        span = Span(self.num_asked, self.num_asked + 1)
        reason = self.name if self._fires else "confident"
        return Decision(self._fires, reason, 1.0, 0.5, (span,) if self._fires else (), "x")


def parsed(expression: str, yes: Fixed | None = None, no: Fixed | None = None) -> Trigger:
    yes, no = yes or Fixed("yes", True), no or Fixed("no", False)
    return parse_trigger(expression, {"yes": lambda: yes, "no": lambda: no})


EXPRESSIONS = st.recursive(
    st.sampled_from(["yes", "no"]).map(lambda name: (name, name == "yes")),
    lambda inner: st.tuples(
        st.sampled_from(["any", "all"]), st.lists(inner, min_size=1, max_size=3)
    ).map(
        lambda pair: (
            f"{pair[0]}( {' , '.join(text for text, _ in pair[1])} )",
            (any if pair[0] == "any" else all)(value for _, value in pair[1]),
        )
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_an_expression_means_what_python_means(expression: tuple[str, bool]) -> None:
    text, value = expression
    assert parsed(text).decide(assess([("x", 0.0)])).fired == value


def test_asking_stops_when_the_outcome_is_known() -> None:
    yes, no = Fixed("yes", True), Fixed("no", False)
    parsed("any(yes, no)", yes, no).decide(assess([("x", 0.0)]))
    parsed("all(no, yes)", yes, no).decide(assess([("x", 0.0)]))
    assert (yes.num_asked, no.num_asked) == (1, 1)


def test_all_names_itself_and_joins_the_spans() -> None:
    decision = parsed("all(yes, yes)").decide(assess([("x", 0.0)]))
    assert decision.reason == "all(yes, yes)"
    assert decision.spans == (Span(1, 2), Span(2, 3))
    assert decision.missing == "x"


def test_any_names_the_part_that_fired() -> None:
    assert parsed("any(no, yes)").decide(assess([("x", 0.0)])).reason == "yes"
    assert parsed("any(no, no)").decide(assess([("x", 0.0)])).reason == "confident"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "a trigger is missing"),
        ("   ", "a trigger is missing"),
        ("maybe", "unknown trigger 'maybe'; known are no, yes"),
        ("any", "in brackets"),
        ("any()", "unknown trigger '\\)'"),
        ("any(yes", "closing bracket is missing"),
        ("any(yes(yes)", "closing bracket is missing"),
        ("any(" * 2000 + "yes" + ")" * 2000, "at most 50 brackets"),
        ("any(yes,)", "unknown trigger '\\)'"),
        ("yes no", "nothing may follow"),
        ("any(yes) )", "nothing may follow"),
        ("yes & no", "cannot read '& no'"),
        ("YES", "cannot read 'YES'"),
    ],
)
def test_bad_expressions_say_what_is_wrong(expression: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parsed(expression)


@pytest.mark.parametrize(
    ("when", "needs"),
    [
        ("never", set()),
        ("every_n_sentences", set()),
        ("self_check", set()),
        ("min_logprob", {"logprob"}),
        ("mean_logprob", {"logprob"}),
        ("entropy", {"entropy"}),
        ("critic", {"hidden", "critic"}),
        ("any(critic, entropy)", {"hidden", "critic", "entropy"}),
    ],
)
def test_every_trigger_is_built_and_says_what_it_needs(when: str, needs: set[str]) -> None:
    trigger = build_trigger(TriggerConfig(when=when), WordCritic({}), lambda ids, text: "")
    assert trigger.needs == needs
    assert trigger.name == when


def test_the_critic_brings_its_threshold_unless_one_is_set() -> None:
    def fires(risk: float, **settings: float) -> bool:
        config = TriggerConfig(when="critic", **settings)
        trigger = build_trigger(config, WordCritic({}), lambda ids, text: "")
        return trigger.decide(assess([("x", 0.0)], critic=critic_score([risk], risk))).fired

    assert fires(0.51)
    assert not fires(0.49)
    assert not fires(0.51, critic=0.9)


@pytest.mark.parametrize(("n", "fired"), [(1, [1, 1, 1, 1]), (2, [0, 1, 0, 1]), (3, [0, 0, 1, 0])])
def test_every_n_sentences(n: int, fired: list[int]) -> None:
    config = TriggerConfig(when="every_n_sentences", every_n_sentences=n)
    trigger = build_trigger(config, None, lambda ids, text: "")
    drafts = [assess([("x", 0.0)], sentence_index=index) for index in range(4)]
    assert [trigger.decide(draft).fired for draft in drafts] == [bool(value) for value in fired]
    assert (
        not build_trigger(TriggerConfig(when="never"), None, lambda i, t: "")
        .decide(drafts[0])
        .fired
    )
