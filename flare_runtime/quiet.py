"""Keeps transformers from writing on a terminal that belongs to the answer."""


def silence_transformers() -> None:
    """Turn off its progress bars, and its advice below errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
