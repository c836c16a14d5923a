import json

import pytest
from assessments import assess
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.triggers.self_check import SelfCheck, SelfCheckTrigger, parse_self_check


@given(st.booleans(), st.text(), st.text(alphabet=st.characters(blacklist_characters="{")))
def test_good_json_is_read_wherever_it_stands(flag: bool, missing: str, noise: str) -> None:
    reply = f"{noise}{json.dumps({'needs_fact': flag, 'missing': missing})}{noise}"
    assert parse_self_check(reply) == SelfCheck(flag, missing.strip())


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ('{"needs_fact": "yes", "missing": "the tag"}', SelfCheck(True, "the tag")),
        ('{"needs_fact": "False"}', SelfCheck(False, "")),
        ('{"needs_fact": 1, "missing": null}', SelfCheck(True, "")),
        ('{"needs_fact": 0, "missing": 7}', SelfCheck(False, "")),
        ('{"x": {}} then {"needs_fact": true}', SelfCheck(True, "")),
        ("{'needs_fact': True, 'missing': 'tag'}", SelfCheck(True, "")),
        ('{"needs_fact": false, "missing": "cut o', SelfCheck(False, "")),
        ("needs_fact: yes", SelfCheck(True, "")),
        ('{"missing": "the tag"}', None),
        ('{"needs_fact": "perhaps"}', None),
        ('{"needs_fact": null}', None),
        ("[true]", None),
        ("I am sure.", None),
        ("", None),
        ("{" * 5000, None),
        ('{"a":' * 5000, None),
    ],
)
def test_replies_are_read_defensively(reply: str, wanted: SelfCheck | None) -> None:
    assert parse_self_check(reply) == wanted


@given(st.text())
def test_no_reply_raises(reply: str) -> None:
    parse_self_check(reply)


def test_the_model_is_asked_after_its_own_sentence() -> None:
    asked = []

    def ask(token_ids: tuple[int, ...], instruction: str) -> str:
        asked.append(token_ids)
        return '{"needs_fact": true, "missing": "the image tag"}'

    decision = SelfCheckTrigger(ask).decide(assess([("a", 0.0), ("b", 0.0)]))
    assert asked == [(1, 2, 0, 1)]
    assert (decision.fired, decision.reason) == (True, "self_check")
    assert decision.missing == "the image tag"


@pytest.mark.parametrize(
    ("reply", "fired", "reason"),
    [
        ('{"needs_fact": false, "missing": "x"}', False, "confident"),
        ("no idea", True, "self_check_unreadable"),
    ],
)
def test_an_unknown_verdict_is_never_clean(reply: str, fired: bool, reason: str) -> None:
    decision = SelfCheckTrigger(lambda ids, text: reply).decide(assess([("a", 0.0)]))
    assert (decision.fired, decision.reason, decision.missing) == (fired, reason, "")
