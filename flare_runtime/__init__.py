"""Answers a question one checked sentence at a time."""
