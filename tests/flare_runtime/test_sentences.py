import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.sentences import Boundary, SentenceSplitter, first_boundary, split_sentences


def sentences(text):
    return [text[span.start : span.end] for span in split_sentences(text)]


def streamed(chunks):
    splitter = SentenceSplitter()
    found = [span for chunk in chunks for span in splitter.push(chunk)]
    return tuple(found) + splitter.flush()


FRAGMENTS = [
    *"3.!?…。！．」「“”„\"'‘’()[]`*\n\r\t,:;—«»",
    *["Dr. ", "a.m. ", "etc. ", "No. ", "Fig. ", "U.S. ", "A. ", "1. ", "5.", "...", "?!", "[1]"],
    *[
        "\n\n",
        "\r\n",
        "  ",
        "```\n",
        "~~~",
        "\n- ",
        "\n# ",
        "\n| ",
        "---",
        "🎉",
        "\u200d",
        "\ufe0f",
    ],
    *[
        "e\u0301",
        "Word",
        "word",
        "iPhone",
        "The ",
        "He",
        "她说",
        "と",
        "。」",
        "\u2029",
        "\x1c",
        ":(",
    ],
    *["http://x.y/z?a=b", "٣", "؟", "w" * 70, " " * 70, "1" * 300],
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)


@given(st.one_of(TEXTS, st.text()), st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_any_chunking_gives_the_same_sentences(text, sizes):
    chunks, position = [], 0
    while position < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(text[position : position + size])
        position += size
    assert streamed(chunks) == split_sentences(text)


@given(st.one_of(TEXTS, st.text()))
def test_only_white_space_lies_between_sentences(text):
    position = 0
    for span in split_sentences(text):
        assert not text[position : span.start].strip()
        sentence = text[span.start : span.end]
        assert sentence and sentence == sentence.strip()
        position = span.end
    assert not text[position:].strip()


@given(TEXTS, st.integers(0, 60), st.booleans())
def test_a_boundary_once_given_holds_for_every_longer_text(text, length, clauses):
    early = first_boundary(text[:length], clauses=clauses)
    assert early in (None, first_boundary(text, clauses=clauses, final=True))


@given(TEXTS)
def test_the_first_boundary_is_the_end_of_the_first_sentence(text):
    boundary = first_boundary(text, final=True)
    spans = split_sentences(text)
    assert boundary is None or boundary.end == spans[0].end
    assert boundary is not None or len(spans) <= 1


@pytest.mark.parametrize(
    "joined",
    [
        # numbers, names and addresses
        "It is 10.0.0.7 now.|Use v1.2.3 or 2026-Q2.14 first.|It costs $3.50.|Pay it.",
        "Pi is 3.14.|Then 1,000.5 follows.",
        "Docs are at https://x.org/a?b!c.d.|Write to a.b@c.org.|Open main.py.|Done.",
        "Run `a. b`.|Then ``c. `d. e``.|End.",
        "Use Node.js.|It runs.",
        # abbreviations
        "Dr. Lindqvist met Mr. and Mrs. Orr.|They talked.",
        "Okafor et al. [2019] measured.|So did Orr et al.|The rest did not.",
        "He came at 9 a.m. on Monday.|He left at 5 p.m.|The door was shut.",
        "See Fig. 3.|The answer is no.|Then see No. 5 and Sec. B.",
        "See No. 5.|Then read p. 7.|It is short.",
        "See fig. A2 and vol. C-1.|The answer is no.|A new one came.",
        "Bring screws, nails, etc. and go.|Parts, screws, etc.|Nails too.",
        "Acme Inc. Berlin grew.|So did Orr Ltd.|The rest fell.",
        "The U.S. Senate met.|He left the U.S.|It was late.",
        "J. R. Smith wrote plan B.|Then he left.|So did I.|We stayed.",
        "She is a Ph.D. now, e.g. in law.|He holds a B.Sc. in it.",
        "It is the Ph.D.'s duty.|She agreed.",
        "On Jan. 5 it rained.|On Sat. Anna came.|He sat.|Anna came.",
        # lists and headings
        "1. First do this.|2. Then that.|3. End",
        "(1) One.|(2) Two.|Three.",
        "Steps: 1. Do it.|2. Go on.|The answer: 42.|Q. What is it?|A. This.",
        "**1.** First.|**Bold.**|_It._|Next.",
        "Chapter 1.|It starts.",
        # small letters
        "It is out. get it.|Yahoo! is old.|iPhone sales rose.",
        "Wait... what?|Wait...|What?!|So…|Hm.",
        "One . . . two . . . .|Three.",
        "He left. — Anon",
        # quotations and brackets
        "“Stop. Wait.” he said.|“Go.”|She went.|He said: “No. Yes.”|Fine.",
        "“Stop. Wait.” he said.|“It's late.”|We left.",
        'He said "Stop. Wait." and left.|"Go. Now."|He went.',
        "'Stop. Wait.' he said.|It's the dogs' home.|In the '90s it grew.|Yes.",
        "‘It’s late. Go.’ he said.|‘Now.’|We went.",
        "« Bon. Oui. »|Il part.|»Ja. Gut.«|Sie geht.|„Nein. Doch.“|Er auch.",
        "He asked (why? when?) twice.|(See it. Here.)|Next [a. b].|End.",
        'A 5" disk.|3" too.|End.',
        "Sorry :( It failed.|Next.",
        # what follows a terminator
        "It drifted.[1][2]|It rose.^[3]|It is blue. [3]|It is so.¹|Is it [4]?|Yes.",
        "It is so.|[See below] [1, 2] is next.|It [1 is.",
        "Great!🎉|Good. 👩‍👩‍👧 🇫🇷|Fine 🎉 it is.|Ok!‼️|End.",
        # other scripts
        "はい。|３．５です！？|次へ（詳細。）進む。|Ａ．Ｂです。",
        "「もう。遅い。」と彼は言った。|「はい。」|「いいえ。」|彼は去った。",
        "他说：“走吧。”|她点头。|“走。”他说。|好",
        "はい!|次です?|いや…まだです。",
        "هل هذا؟|نعم.|यह है।|वह है।|अब ठीक",
        "Это т.е. так.|Да.",
        "これは．|次です。、続く。|終わり",
    ],
)
def test_sentences_end_where_the_bars_stand(joined):
    text = joined.replace("|", " ")
    for sign in "。！？":
        text = text.replace(f"{sign} ", sign).replace(f"{sign}」 ", f"{sign}」")
    assert sentences(text) == joined.split("|")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("No end", ["No end"]),
        ("Title\n\nText goes\non here. More.", ["Title", "Text goes\non here.", "More."]),
        ("Title\r\n \r\nText.\r\nMore.\r", ["Title", "Text.", "More."]),
        ("# 1. Head. Line\nText.", ["# 1. Head. Line", "Text."]),
        ("Items:\n- one\n* two. three\n2) four\n", ["Items:", "- one", "* two. three", "2) four"]),
        ("a\n| b. C | d |\n|---|\n| e |\nEnd", ["a", "| b. C | d |", "|---|", "| e |", "End"]),
        ("One\n---\nTwo", ["One", "---", "Two"]),
        ("One\n--- two", ["One\n--- two"]),
        (
            "See:\n```py\nA. B\n\n# C\n```\nEnd. It.",
            ["See:", "```py\nA. B\n\n# C\n```", "End.", "It."],
        ),
        ("~~~~\nA. B\n~~~\nC. D", ["~~~~\nA. B\n~~~\nC. D"]),
        ("```\nA. B\n````  \nOne. Two", ["```\nA. B\n````", "One.", "Two"]),
        ("- x:\n  ```\n  A. B\n  ```\n- y", ["- x:", "```\n  A. B\n  ```", "- y"]),
        ("```a``` b. C", ["```a``` b.", "C"]),
        ("1.\n\nFirst. 2.\nSecond.", ["1.\n\nFirst.", "2.\nSecond."]),
        ("A stray “ sign. Here. There.\n\nNext.", ["A stray “ sign.", "Here.", "There.", "Next."]),
        ("A stray ` sign. Here.\n\nNext. It.", ["A stray ` sign.", "Here.", "Next.", "It."]),
        ("An ) odd ” sign. Here. ", ["An ) odd ” sign.", "Here."]),
        ("(a [b. C) d. E] f. G", ["(a [b. C) d.", "E] f.", "G"]),
        ("One.\u2029two", ["One.", "two"]),
        ("Ends here.Next? Yes. (", ["Ends here.Next?", "Yes.", "("]),
        ("(" * 100 + "a. B. C" + ")" * 100, ["(" * 100 + "a. B. C" + ")" * 100]),
        ("# " + "x" * 300 + "\nend", ["# " + "x" * 300, "end"]),
        ("One\n" + "-" * 300 + "\ntwo", ["One\n" + "-" * 300 + "\ntwo"]),
        ("```\na\n" + "`" * 300 + "\nb", ["```\na\n" + "`" * 300 + "\nb"]),
        ("x" * 30 + ". " + "y" * 30, ["x" * 30 + ". " + "y" * 30]),
    ],
)
def test_lines_paragraphs_and_strays(text, expected):
    assert sentences(text) == expected
    assert streamed(list(text)) == split_sentences(text)


@pytest.mark.parametrize(
    ("chunks", "complete"),
    [
        (["Ask Dr", ". Lind", "qvist. H", "e"], [0, 0, 1, 1]),
        (["It is $3", ".", "5", ". ", "B"], [0, 0, 0, 0, 1]),
        (["At 9 a.m. T", "he", " door"], [0, 0, 1]),
        (["Done.\n", "\n"], [0, 1]),
        (["Title\n", "\n"], [0, 1]),
        (["# Title\n"], [1]),
        (["Done.", " 🎉", " N"], [0, 0, 1]),
        (["Done. [", "1", "]", " N"], [0, 0, 0, 1]),
        (["“One. Two", ".", "”", " N"], [0, 0, 0, 1]),
        (["A “b. See. It", "\n\n"], [0, 3]),
        (["終わり。", "次"], [0, 1]),
        (["“走。”", "他", "们说"], [0, 0, 0]),
        (["Fig. A", "t"], [0, 1]),
        (["Items\n", "-", " "], [0, 0, 1]),
        (["Items\n1", "2", ".", " "], [0, 0, 0, 1]),
        (["`a", "`", "`. B"], [0, 0, 0]),
        (["Ok. i", "P"], [0, 1]),
        (["```\na. B\n", "``", "`", "\n"], [0, 0, 0, 1]),
        (["", "One. ", "", "T", ""], [0, 0, 0, 1, 1]),
    ],
)
def test_a_sentence_is_complete_as_soon_as_it_is_safe(chunks, complete):
    splitter, counts, total = SentenceSplitter(), [], 0
    for chunk in chunks:
        total += len(splitter.push(chunk))
        counts.append(total)
    assert counts == complete


def test_a_long_stream_is_not_kept():
    splitter = SentenceSplitter()
    text = "word, " * 20000 + "end. Next one. "
    spans = [span for i in range(0, len(text), 7) for span in splitter.push(text[i : i + 7])]
    assert len(splitter._scanner._text) < 20000
    assert (*spans, *splitter.flush()) == split_sentences(text)


def test_more_of_the_same_is_read_once():
    splitter = SentenceSplitter()
    assert all(splitter.push(".") == () for _ in range(50000))
    assert [(span.start, span.end) for span in splitter.flush()] == [(0, 50000)]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("He left. T", {}, Boundary(8, "sentence")),
        ("He left. ", {}, None),
        ("He left.", {"final": True}, Boundary(8, "sentence")),
        ("He left", {"final": True}, None),
        ("", {"final": True}, None),
        (" \n\n He left.” N", {}, Boundary(13, "sentence")),
        ("# Title\n", {}, Boundary(7, "paragraph")),
        ("He left \n\n", {}, Boundary(7, "paragraph")),
        ("One. Two. T", {"start": 4}, Boundary(9, "sentence")),
        ("So # is. T", {"start": 2}, Boundary(8, "sentence")),
        ("So\n# is. T\n", {"start": 3}, Boundary(10, "paragraph")),
        ("In 2019, we", {}, None),
        ("In 2019, we", {"clauses": True}, Boundary(8, "clause")),
        ("“Stop,” he", {"clauses": True}, Boundary(7, "clause")),
        ("It (a, b) is 1,000; o", {"clauses": True}, Boundary(19, "clause")),
        ("a `b, c` d", {"clauses": True}, None),
        ("At 10:30,", {"clauses": True}, None),
        ("At 10:30,", {"clauses": True, "final": True}, None),
        ("一、二", {"clauses": True}, Boundary(2, "clause")),
        ("１，０００", {"clauses": True}, None),
        ("He left. So, we", {"clauses": True}, Boundary(8, "sentence")),
        ("A “stray. One", {"final": True}, Boundary(9, "sentence")),
    ],
)
def test_the_first_safe_boundary(text, options, expected):
    assert first_boundary(text, **options) == expected


def test_a_list_marker_on_a_new_line_is_no_reference() -> None:
    """ "c." could be an initial and "No. 2" a reference, but not across a line."""
    assert sentences("1. Use `a b` c.\n2. **Then** rest.") == [
        "1. Use `a b` c.",
        "2. **Then** rest.",
    ]
