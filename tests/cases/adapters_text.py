"""Adapters of the text components: the case's words on one side, the project's on the other."""

from flare_runtime.blocklist import Blocklist
from flare_runtime.sentences import SentenceSplitter, split_sentences
from flare_runtime.token_text import TokenText


def run_utf8_stream(case_input: dict) -> dict:
    decoder = TokenText()
    deltas = [decoder.push(bytes.fromhex(piece)) for piece in case_input["token_bytes_hex"]]
    return {"deltas": deltas, "final": "".join(deltas) + decoder.flush(), "raises": False}


def run_sentence_boundary(case_input: dict) -> dict:
    if case_input["mode"] == "stream":
        return _stream_sentences(case_input["chunks"])
    text = case_input["text"]
    if case_input["mode"] == "every_two_way_cut":
        cuts = range(len(text) + 1)
        results = [_stream_sentences([text[:cut], text[cut:]])["sentences"] for cut in cuts]
        differing = [result for result in results if result != results[0]]
        return {"sentences": differing[0] if differing else results[0]}
    spans = split_sentences(text)
    return {
        "sentences": [text[span.start : span.end] for span in spans],
        "spans": [[span.start, span.end] for span in spans],
        "only_whitespace_between": not _outside(text, spans).strip(),
    }


def _stream_sentences(chunks: list[str]) -> dict:
    splitter = SentenceSplitter()
    spans, counts = [], []
    for chunk in chunks:
        spans += splitter.push(chunk)
        counts.append(len(spans))
    spans += splitter.flush()
    text = "".join(chunks)
    sentences = [text[span.start : span.end] for span in spans]
    return {"sentences": sentences, "max_complete": counts}


def _outside(text: str, spans) -> str:
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
    return "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def run_blocklist(case_input: dict) -> dict:
    blocklist = Blocklist(case_input["terms"], case_input.get("hyphen_is_word_char", False))
    chunks = case_input.get("chunks") or [case_input["text"]]
    stream = blocklist.stream()
    spans, released = [], []
    for chunk in chunks:
        spans += stream.push(chunk)
        released.append(stream.num_safe)
    spans += stream.flush()
    text = "".join(chunks)
    return {
        "spans": [[span.start, span.end] for span in spans],
        "max_released": released,
        "final_text": text[: stream.num_safe],
        "redacted": blocklist.redact(text),
    }
