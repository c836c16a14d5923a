"""Between text and UTF-8: token bytes to text as they arrive, and text that has no bytes."""

import re

_UNFINISHED = re.compile(
    rb"(?:[\xc2-\xdf]"
    rb"|\xe0[\xa0-\xbf]?|[\xe1-\xec\xee\xef][\x80-\xbf]?|\xed[\x80-\x9f]?"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]?)?|[\xf1-\xf3](?:[\x80-\xbf]{1,2})?"
    rb"|\xf4(?:[\x80-\x8f][\x80-\xbf]?)?)\Z"
)
"""The beginning of a character at the end of the bytes (Unicode 16, table 3-7). The codec's own
incremental decoder also waits for some that can never become valid, such as ``ED A0``."""

_LONGEST_TAIL = 3


def encodable(text: str) -> str:
    """Replace lone surrogates, such as half an emoji cut in JSON or bytes that are no UTF-8.

    They have no UTF-8 of their own, so no tokenizer takes them and no file can hold them.
    """
    return text.encode("utf-8", errors="replace").decode("utf-8")


class TokenText:
    """Incremental UTF-8 decoder for the byte strings of tokens. Never raises.

    What ``push`` returns, joined, is ``all_bytes.decode("utf-8", "replace")`` but for an
    unfinished character at the very end, which never reaches the text.
    """

    def __init__(self) -> None:
        self._tail = b""

    def push(self, token_bytes: bytes) -> str:
        """Return the text that these bytes complete: "" while a character is unfinished.

        Bytes that can never become valid are U+FFFD at once.
        """
        data = self._tail + token_bytes
        unfinished = _UNFINISHED.search(data, max(0, len(data) - _LONGEST_TAIL))
        cut = unfinished.start() if unfinished else len(data)
        self._tail = data[cut:]
        return data[:cut].decode("utf-8", "replace")

    @property
    def is_whole(self) -> bool:
        """Whether the bytes so far end with a whole character."""
        return not self._tail

    def flush(self) -> str:
        """End the text. An unfinished character is dropped: an answer cut short stays readable."""
        self._tail = b""
        return ""
