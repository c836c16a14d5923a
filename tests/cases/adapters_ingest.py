"""Cases of the readers: Markdown, HTML, text and PDF in, what a search would see out."""

from flare_runtime.retrieval.chunking import split_document
from flare_runtime.retrieval.readers.html import read_html
from flare_runtime.retrieval.readers.markdown import headings
from flare_runtime.retrieval.readers.pdf import clean_pages, lay_out
from flare_runtime.retrieval.readers.text import read_text


def run_markdown(case_input: dict) -> dict:
    return {"headings": list(headings(case_input["markdown"]))}


def run_html(case_input: dict) -> dict:
    text = read_html(case_input["html"].encode(), "case.html").text
    return {"text": text, "lines": [line for line in text.split("\n") if line]}


def run_text(case_input: dict) -> dict:
    return {"text": read_text(bytes.fromhex(case_input["bytes_hex"]), "case.txt").text}


def run_pdf(case_input: dict) -> dict:
    pdf = clean_pages(case_input.get("pages", [case_input.get("page_text", "")]))
    document = lay_out(pdf, "case.pdf")
    return {
        "search_text": document.text,
        "text": document.text,
        "damage_reported": pdf.num_damaged > 0,
        "indexed_pages": [page.number for page in pdf.pages],
        "blank_pages": list(pdf.blank_pages),
        "status": pdf.status,
        "vectors": len(split_document(document, 200, len)),
    }
