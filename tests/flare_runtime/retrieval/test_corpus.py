import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare_runtime.errors import CorpusIndexError
from flare_runtime.retrieval.corpus import indexed_text, read_passages, write_passages
from flare_runtime.types import Passage

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
passages = st.builds(
    Passage,
    id=texts,
    text=texts,
    title=texts,
    source=texts,
    start=st.integers(0, 99),
    end=st.integers(0, 99),
    location=texts,
)


@given(st.lists(passages, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("corpus") / "passages.jsonl"
    write_passages(path, written)
    assert list(read_passages(path)) == written


def test_line_separators_of_unicode_do_not_end_a_record(tmp_path):
    passage = Passage("1", "a\u2028b\x85c\nd", "", "a.md", 0, 7)
    write_passages(tmp_path / "p", [passage, passage])
    assert read_passages(tmp_path / "p") == (passage, passage)
    assert (tmp_path / "p").read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("bad", [b'{"id": "1"}\n', b'{"id": 1, "te', b"\xff\n", b"[]\n"])
def test_a_bad_line_is_named(tmp_path, bad):
    path = tmp_path / "p.jsonl"
    write_passages(path, [Passage("1", "a", "", "s", 0, 1)])
    path.write_bytes(path.read_bytes() + bad)
    with pytest.raises(CorpusIndexError, match="not a passage: .*p.jsonl line 2"):
        read_passages(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CorpusIndexError, match="cannot read passages: .*nowhere"):
        read_passages(tmp_path / "nowhere")


def test_the_title_is_indexed_on_a_line_of_its_own():
    assert indexed_text(Passage("1", "text", "A > B", "s", 0, 4)) == "A > B\ntext"
    assert indexed_text(Passage("1", "text", "", "s", 0, 4)) == "text"
