import pytest

from flare_runtime.errors import DocumentError
from flare_runtime.retrieval.readers.pdf import clean_pages, lay_out, read_pdf


def make_pdf(pages: list[list[str]], trailer: str = "") -> bytes:
    """Write a PDF by hand: one list of lines a page, in Helvetica."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        body = f"BT /F1 12 Tf 14 TL 50 700 Td {shown} ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(body)} >>\nstream\n{body}\nendstream",
        ]
    out, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R"
    return out + f"{end} {trailer} >>\nstartxref\n{len(out)}\n%%EOF".encode()


def clean(*texts: str) -> list[str]:
    return [page.text for page in clean_pages(texts).pages]


def test_pages_of_a_file_become_sections_with_page_numbers():
    document = read_pdf(make_pdf([["First page", "two lines"], [], ["Third page"]]), "a.pdf")
    found = [(document.text[s.start : s.end], s.location) for s in document.sections]
    assert found == [("First page\ntwo lines", "page 1"), ("Third page", "page 3")]
    assert document.warnings == ("no text on page 2 (scanned?)",)
    assert document.first_line is None


def test_words_broken_by_the_page_layout_are_joined():
    data = make_pdf(
        [["Take the exam-", "ple and part E-", "4013 of the well-", "known well-known"]]
    )
    assert read_pdf(data, "a.pdf").text == (
        "Take the example and part E-4013 of the well-known well-known"
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("exam-\nple", "example"),
        ("exam-  \r\n  ple", "example"),
        ("exam\u00ad\nple", "example"),
        ("exam\u00adple", "example"),
        ("exam\x02\r\nple", "example"),
        ("exam\ufffeple", "example"),
        ("Trans-\nAtlantic", "Trans-Atlantic"),
        ("2026-\n2027", "2026-2027"),
        ("a -\nb", "a -\nb"),
        ("end-\n\nNext", "end-\n\nNext"),
        ("trailing-", "trailing-"),
        ("trailing\u00ad", "trailing"),
        ("a  \nb\t\n", "a\nb"),
        ("\ufb01lter e\ufb03ciency \ufb05ep", "filter efficiency step"),
        ("x² ½ ① ﹏ Ａ", "x² ½ ① ﹏ Ａ"),
    ],
)
def test_text_is_cleaned_for_search(raw, expected):
    assert clean(raw) == [expected]


def test_lost_characters_are_counted_and_made_visible():
    found = clean_pages(["shut o\0 valve", "fine", "\ue001\ufffd\x01 x"])
    assert [page.num_damaged for page in found.pages] == [1, 0, 3]
    assert found.num_damaged == 4
    assert found.pages[0].text == "shut o\ufffd valve"
    assert lay_out(found, "a").warnings == ("4 characters lost on pages 1, 3",)


def test_ordinary_control_characters_are_no_damage():
    assert clean_pages(["a\tb\nc\fd\r\n"]).num_damaged == 0


@pytest.mark.parametrize(
    ("pages", "status", "blank"),
    [
        (["a", "b"], "ok", ()),
        (["a", " ", "\r\n"], "partial", (2, 3)),
        (["", ""], "no_text", (1, 2)),
        ([], "no_text", ()),
    ],
)
def test_status_tells_how_much_there_is(pages, status, blank):
    found = clean_pages(pages)
    assert (found.status, found.blank_pages) == (status, blank)


def test_a_long_list_of_blank_pages_is_cut():
    warning = lay_out(clean_pages(["text"] + [""] * 15), "a").warnings[0]
    assert warning == "no text on pages 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 5 more (scanned?)"


def test_nothing_is_warned_of_where_nothing_is_read():
    assert lay_out(clean_pages(["", ""]), "a").warnings == ()


@pytest.mark.parametrize("data", [b"%PDF-1.4 garbage", b"hello", make_pdf([["x"]])[:200]])
def test_a_damaged_file_is_refused_by_name(data):
    with pytest.raises(DocumentError, match="^docs/a.pdf: cannot read the PDF: "):
        read_pdf(data, "docs/a.pdf")


def test_a_locked_file_is_refused_by_name():
    key = "00" * 32
    locked = (
        f"/Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{key}> /U <{key}> >>"
        " /ID [<00> <00>]"
    )
    with pytest.raises(DocumentError, match="a.pdf: .*locked by a password"):
        read_pdf(make_pdf([["secret"]], locked), "a.pdf")
