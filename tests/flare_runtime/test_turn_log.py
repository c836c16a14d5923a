import json
import math

from flare_runtime.turn_log import (
    SentenceRecord,
    Timings,
    TokenRecord,
    TurnLog,
    Usage,
)

KEYS = [
    "format",
    "id",
    "time",
    "question",
    "history",
    "answer",
    "outcome",
    "first_hop",
    "iterations",
    "lookups",
    "sentences",
    "tokens",
    "usage",
    "timings_ms",
    "model",
    "engine",
    "critic",
    "config",
]


def turn(tokens: tuple[TokenRecord, ...] | None) -> TurnLog:
    return TurnLog(
        id="1",
        time="2026-01-01T00:00:00.000+00:00",
        question="Why?",
        history=({"role": "user", "content": "Hi"},),
        answer="Größe 🦊",
        outcome="answered",
        first_hop=(),
        iterations=1,
        lookups=(),
        sentences=(SentenceRecord("Größe 🦊", 0, 7, math.nan, True, (), ("p1",), False),),
        tokens=tokens,
        usage=Usage(1, 2, 3, 4, 5),
        timings_ms=Timings(total=1.5),
        model="m",
        engine="onnx int8",
        critic=None,
        config={"decode": {"seed": 0}},
    )


def strict(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def test_the_record_is_strict_json_with_the_keys_of_the_format() -> None:
    record = turn((TokenRecord(0, 5, -math.inf, math.inf, None, False),))
    line = record.to_json()
    values = json.loads(line, parse_constant=strict)
    assert "\n" not in line
    assert list(values) == KEYS
    assert values["format"] == "flare-turn/1"
    assert values["answer"] == "Größe 🦊"
    assert values["tokens"] == [
        {"start": 0, "end": 5, "logprob": None, "entropy": None, "risk": None, "blocked": False}
    ]
    assert values["sentences"][0]["risk"] is None
    assert values["usage"] == {
        "prompt_tokens": 1,
        "prefilled_tokens": 2,
        "reused_tokens": 3,
        "decoded_tokens": 4,
        "discarded_tokens": 5,
    }
    assert list(values["timings_ms"]) == [
        "total", "first_token", "first_hop", "decode", "critic", "retrieval", "resume",
    ]  # fmt: skip


def test_tokens_can_be_left_out() -> None:
    assert "tokens" not in json.loads(turn(None).to_json())
    assert list(json.loads(turn(None).to_json())) == [key for key in KEYS if key != "tokens"]
