"""Text to search terms: one analyser for passages and queries of the sparse index.

A passage is filed under a few more forms of a word than a query asks for, so that a query finds
what it names and no more: every term of ``analyze_query(text)`` is a term of ``analyze(text)``.
"""

import unicodedata
from functools import lru_cache
from itertools import pairwise

import regex

MAX_CACHED_LENGTH = 32

_IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
_ACCENT = regex.compile(r"(?<=[\p{Latin}\p{Greek}])[\u0300-\u036f]+")
_HYPHEN = regex.compile(r"[\u2010\u2011\u2012\u2013\u2212]")
_APOSTROPHE = regex.compile(r"[\u2018\u2019\u02bc`\u00b4]")
_POSSESSIVE = regex.compile(r"(?<=[\p{L}\p{N}.])'[sS](?![\p{L}\p{N}])")
_THOUSANDS = regex.compile(r"(?<![\p{N}.,])\d{1,3}(?:,\d{3})+(?![\p{N},])")
_CHARACTERS = regex.compile(r"\X")
_HUMP = regex.compile(
    r"(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})"
)
_BORDER = regex.compile(r"[-_'.]+")
_SEPARATOR = regex.compile(r"[-_']+")
_VERSION = regex.compile(r"v(?=\d)")
_INITIALS = regex.compile(r"\p{L}{1,2}(?:\.\p{L}{1,2})+")
_NUMBER = regex.compile(r"\d+(?:\.\d+){2,}")

# Scripts written without blanks between words, or (Korean) with endings glued on.
_UNSPACED = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Bopomofo}"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
_CHARACTER = r"[\p{L}\p{M}\p{N}]"
_WORD = regex.compile(
    rf"""
    (?P<run>{_UNSPACED}+)
    | (?P<sign>\p{{Sc}}(?=\d) | (?<![\p{{L}}\p{{N}}.])\.(?=\p{{L}}))?   # $3.50, .NET
      (?P<core>(?:(?!{_UNSPACED}){_CHARACTER})+(?:(?:[-.']|_+)(?:(?!{_UNSPACED}){_CHARACTER})+)*)
      (?P<tail>(?<=\p{{L}})(?:\+\+|\#)(?!{_CHARACTER}))?                # C++, C#
    """,
    regex.VERBOSE,
)


def analyze(text: str) -> list[str]:
    """Return all terms that a passage is filed under, in reading order, repeats kept.

    ``E-4013`` gives the whole (``e4013``) and the part ``4013``; ``maxRetries`` its humps too;
    ``v1.2.3`` also ``1.2.3`` and ``1.2``. Unspaced script gives characters and neighbouring pairs.
    """
    terms: list[str] = []
    for chunk in text.split():
        terms += _cached_terms(chunk) if len(chunk) <= MAX_CACHED_LENGTH else _chunk_terms(chunk)
    return terms


def analyze_query(text: str) -> list[str]:
    """Return the terms that a query asks for.

    As ``analyze``, but without humps and shorter versions, and a single character of unspaced
    script only where it stands alone: else every passage with one common sign would be a hit.
    """
    terms: list[str] = []
    for match in _WORD.finditer(_normalize(text)):
        if match["run"]:
            characters = _CHARACTERS.findall(match["run"])
            terms += _pairs(characters) or characters
        else:
            terms += _word_terms(match)
    return terms


def _chunk_terms(chunk: str) -> tuple[str, ...]:
    terms: list[str] = []
    for match in _WORD.finditer(_normalize(chunk)):
        if match["run"]:
            characters = _CHARACTERS.findall(match["run"])
            terms += characters + _pairs(characters)
        else:
            terms += _word_terms(match) + _passage_terms(match["core"])
    return tuple(terms)


# No rule looks across white space and a corpus repeats its words: builds get three times faster.
_cached_terms = lru_cache(maxsize=1 << 16)(_chunk_terms)


def _normalize(text: str) -> str:
    """Unify characters and punctuation; case stays, since humps need it."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text))
        text = _HYPHEN.sub("-", _APOSTROPHE.sub("'", text))
    text = _POSSESSIVE.sub("", text)
    return str(_THOUSANDS.sub(lambda match: match[0].replace(",", ""), text))


def _fold(word: str) -> str:
    """Drop case, and accents of Latin and Greek: elsewhere a mark makes another letter."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word.casefold()))
    return unicodedata.normalize("NFC", _ACCENT.sub("", folded))


def _pairs(characters: list[str]) -> list[str]:
    return [first + second for first, second in pairwise(characters)]


def _word_terms(match: regex.Match[str]) -> list[str]:
    core = _fold(match["core"])
    sign, tail = match["sign"] or "", match["tail"] or ""
    if core.isalpha() and not sign and not tail:
        return [core]
    whole = _SEPARATOR.sub("", core)
    if _INITIALS.fullmatch(whole):
        whole = whole.replace(".", "")
    wholes = [sign + whole + tail]
    if (sign or tail) and not (len(whole) == 1 and whole.isalpha()):
        wholes.append(whole)
    return wholes + _parts(core, whole)


def _parts(core: str, whole: str) -> list[str]:
    """Take an identifier apart, without single characters: they would match anything."""
    pieces = _SEPARATOR.split(core)
    parts = pieces if len(pieces) > 1 else []
    for piece in pieces:
        dotted = piece.split(".")
        parts = parts + (dotted if len(dotted) > 1 else [])
    if _VERSION.match(whole):
        parts = [*parts, whole[1:]]
    return [part for part in parts if len(part) > 1]


def _passage_terms(core: str) -> list[str]:
    """Forms under which a query may name it too: ``max retries``, ``1.2`` of ``1.2.3``."""
    terms: list[str] = []
    for piece in _BORDER.split(core):
        humps = _HUMP.split(piece)
        terms += [_fold(hump) for hump in humps if len(hump) > 1 and len(humps) > 1]
    for number in _NUMBER.findall(core):
        groups = number.split(".")
        terms += [".".join(groups[:length]) for length in range(2, len(groups))]
    return terms
