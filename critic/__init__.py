"""Scores a generator's hidden states; knows no language model and no retrieval."""

from critic.scorer import Critic, CriticScore
from critic.trace import Span, Trace, TraceError, TracePassage

__all__ = ["Critic", "CriticScore", "Span", "Trace", "TraceError", "TracePassage"]
