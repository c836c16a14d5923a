r"""Everything this package raises on purpose.

FlareError
├── ConfigError      a setting is unknown, out of range or contradicts another
├── ModelError       a model folder is missing, incomplete or unsuitable
├── CorpusIndexError      an index is missing, empty or damaged
├── DocumentError    a document cannot be read
├── ContextError     the prompt does not fit the context window
└── SignalError      a trigger needs a signal that this engine does not give

A message says what was wrong, what it was and what to do, in one line.
"""


class FlareError(Exception):
    """Base of all errors a caller may want to catch."""


class ConfigError(FlareError):
    """A setting is unknown, out of range or contradicts another."""


class ModelError(FlareError):
    """A model folder is missing, incomplete or unsuitable."""


class CorpusIndexError(FlareError):
    """An index is missing, empty or damaged."""


class DocumentError(FlareError):
    """A document cannot be read."""


class ContextError(FlareError):
    """The prompt does not fit the context window."""


class SignalError(FlareError):
    """A trigger needs a signal that this engine does not give."""


def first_line(error: Exception) -> str:
    """What another library's error says, short enough for a message of ours."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
