import os
import subprocess
from io import BytesIO

import pypdfium2
import pytest

from flare_runtime.errors import CorpusIndexError, DocumentError
from flare_runtime.retrieval.documents import Skipped, find_documents, read_document


def write(path, data=b"text"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def sources(*paths, exclude=None):
    return [file.source for file in find_documents(paths, exclude=exclude)[0]]


def reasons(*paths):
    return {file.source: file.reason for file in find_documents(paths)[1]}


def test_documents_are_found_by_suffix_and_sorted(tmp_path):
    for name in ("b.md", "a/x.HTML", "a/y.pdf", "c.txt", "d.rst", "e.htm", "f.xhtml", "g.markdown"):
        write(tmp_path / name)
    found = ["a/x.HTML", "a/y.pdf", "b.md", "c.txt", "d.rst", "e.htm", "f.xhtml", "g.markdown"]
    assert sources(tmp_path) == found


def test_other_files_are_told_and_hidden_ones_are_not(tmp_path):
    for name in ("a.py", "Makefile", ".hidden.md", ".git/a.md", "ok.md"):
        write(tmp_path / name)
    assert sources(tmp_path) == ["ok.md"]
    assert reasons(tmp_path) == {
        "a.py": "not a document: .py",
        "Makefile": "not a document: no suffix",
    }


def test_a_folder_given_by_name_may_be_hidden(tmp_path):
    write(tmp_path / ".notes" / "a.md")
    assert sources(tmp_path / ".notes") == ["a.md"]


def test_several_folders_have_their_names_as_prefix(tmp_path):
    for name in ("x/docs/a.md", "y/docs/a.md", "z/wiki/a.md"):
        write(tmp_path / name)
    folders = [tmp_path / "x/docs", tmp_path / "y/docs", tmp_path / "z/wiki"]
    assert sources(*folders) == ["docs-2/a.md", "docs/a.md", "wiki/a.md"]


def test_single_files_may_be_given(tmp_path):
    one, two = write(tmp_path / "x/a.md"), write(tmp_path / "y/a.md")
    assert sources(one) == ["a.md"]
    assert sources(one, two) == ["x/a.md", "y/a.md"]
    assert sources(one, write(tmp_path / "x/b.md")) == ["a.md", "b.md"]
    assert sources(tmp_path / "x", one) == ["a.md", "b.md"]
    assert reasons(write(tmp_path / "a.py")) == {"a.py": "not a document: .py"}


def test_relative_folders_are_named_by_what_they_are(tmp_path, monkeypatch):
    write(tmp_path / "docs/a.md")
    write(tmp_path / "wiki/a.md")
    monkeypatch.chdir(tmp_path / "docs")
    here, there = tmp_path.__class__("."), tmp_path.__class__("../wiki")
    assert sources(here, there) == ["docs/a.md", "wiki/a.md"]


def test_links_that_lead_in_circles_end(tmp_path):
    write(tmp_path / "docs/sub/a.md")
    (tmp_path / "docs/sub/up").symlink_to(tmp_path / "docs")
    (tmp_path / "docs/self").symlink_to("self")
    assert sources(tmp_path / "docs") == ["sub/a.md"]
    assert reasons(tmp_path / "docs")["self"].startswith("cannot be opened: Too many levels")


def test_a_folder_reached_twice_is_read_once(tmp_path):
    write(tmp_path / "docs/sub/a.md")
    assert sources(tmp_path / "docs", tmp_path / "docs/sub") == ["docs/sub/a.md"]
    assert sources(tmp_path / "docs", tmp_path / "docs") == ["sub/a.md"]


def test_linked_folders_outside_are_followed(tmp_path):
    write(tmp_path / "else/a.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/linked").symlink_to(tmp_path / "else")
    assert sources(tmp_path / "docs") == ["linked/a.md"]


def test_what_cannot_be_opened_is_told(tmp_path):
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x")
    assert sources(tmp_path) == []
    assert reasons(tmp_path) == {
        "gone.md": "cannot be opened: No such file or directory",
        "pipe.md": "not a regular file",
        "caf\ufffd.md": "its path is not valid UTF-8",
    }


def test_a_folder_that_cannot_be_listed_is_told(tmp_path, monkeypatch):
    write(tmp_path / "docs/locked/a.md")
    write(tmp_path / "docs/b.md")
    cls = type(tmp_path)
    iterdir = cls.iterdir

    def refuse(self):
        if self.name == "locked":
            raise PermissionError(13, "Permission denied")
        return iterdir(self)

    # Tests may run as root, whom no permission stops.
    monkeypatch.setattr(cls, "iterdir", refuse)
    files, skipped = find_documents([tmp_path / "docs"])
    assert [file.source for file in files] == ["b.md"]
    assert skipped == (Skipped("locked", "the folder cannot be listed"),)


def test_the_index_itself_is_passed_over(tmp_path):
    write(tmp_path / "a.md")
    write(tmp_path / "index/b.md")
    assert sources(tmp_path, exclude=tmp_path / "index") == ["a.md"]
    assert sources(tmp_path, exclude=tmp_path / "no-such") == ["a.md", "index/b.md"]


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(CorpusIndexError, match="no such folder or file: .*nowhere"):
        find_documents([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("source", "data", "text"),
    [
        ("a.md", b"# A\ntext", "# A\ntext"),
        ("a.MARKDOWN", b"---\ntitle: x\n---\ntext", "text"),
        ("a.html", b"<p>text", "text"),
        ("a.htm", b"<p>text", "text"),
        ("a.xhtml", b"<p>text</p>", "text"),
        ("a.txt", b"# text", "# text"),
        ("a.rst", b"A\n===\ntext", "A\n===\ntext"),
    ],
)
def test_the_suffix_says_how_a_file_is_read(source, data, text):
    assert read_document(data, source).text == text


@pytest.mark.parametrize(
    ("source", "data", "message"),
    [
        ("a.md", b"", "a.md: the file is empty"),
        ("a.md", b" \n\t", "a.md: holds no text"),
        ("a.md", b"\x89PNG\0\0\0\0", "a.md: looks binary"),
        ("a.md", b"# A\n\n## B\n", "a.md: holds nothing but headings"),
        ("a.html", b"<p></p>", "a.html: holds no text"),
        ("a.txt", b"%PDF-1.7", "a.txt: cannot read the PDF"),
        ("a.pdf", b"no pdf", "a.pdf: cannot read the PDF"),
    ],
)
def test_a_file_without_text_is_refused_with_the_reason(source, data, message):
    with pytest.raises(DocumentError, match=f"^{message}"):
        read_document(data, source)


def test_a_scanned_pdf_is_refused_with_a_hint():
    pdf = pypdfium2.PdfDocument.new()
    pdf.new_page(100, 100)
    buffer = BytesIO()
    pdf.save(buffer)
    pdf.close()
    with pytest.raises(DocumentError, match="a.pdf: holds no text: scanned pages need"):
        read_document(buffer.getvalue(), "a.pdf")


def test_a_folder_whose_name_is_no_text_is_told(tmp_path):
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    (folder / "a.md").write_text("x")
    (tmp_path / "b.md").write_text("x")
    assert sources(tmp_path) == ["b.md"]
    assert list(reasons(tmp_path).values()) == ["its path is not valid UTF-8"]


def test_folders_may_be_nested_deeper_than_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(1300):
        os.mkdir("d")  # noqa: PTH102  a path object would be as long as the tree is deep
        os.chdir("d")
    os.chdir(tmp_path)
    (tmp_path / "a.md").write_text("x")
    try:
        assert sources(tmp_path) == ["a.md"]
    finally:  # Python's own way to delete a tree calls itself and would not get to its end
        subprocess.run(["rm", "-rf", "d"], check=True)


@pytest.mark.parametrize(
    ("source", "data"),
    [
        ("a.html", b'<meta charset="unicode_escape"><p>x \\ud800</p>'),
        ("a.html", b'<meta charset="utf-7"><p>x +2AA-</p>'),
        ("a.html", "<h²>x</h²><p>y</p>".encode()),
    ],
)
def test_pages_that_lie_about_themselves_are_read_or_refused(source, data):
    try:
        text = read_document(data, source).text
    except (DocumentError, ValueError):
        return  # a ValueError is what the index run skips the file for
    assert text.encode("utf-8")
