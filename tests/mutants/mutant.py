"""A mutant: one small change of a source that a test of its subject should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """``text[start:end]`` of a file becomes ``new``; lines ``first`` to ``last`` are the statement that it lies in."""

    path: str
    start: int
    end: int
    new: str
    what: str
    line: int
    first: int
    last: int

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


def line_of(text: str, offset: int) -> int:
    """The number of the line, from 1, in which an offset lies."""
    return text.count("\n", 0, offset) + 1
