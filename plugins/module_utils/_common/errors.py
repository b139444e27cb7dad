# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Errors that reach the user as one sentence. Only main() of a module turns them into a failure."""

from __future__ import annotations

from typing import Any


class TrainiumError(Exception):
    """What is wrong, where, and what to do, in one sentence; ``details`` go into the module's result as they are."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class AwsCallError(TrainiumError):
    """An AWS call failed. ``code`` is AWS's error code, '' where no answer came.

    ``transient`` says that the same call may succeed soon: it was throttled, or met trouble on the way or in AWS.
    """

    def __init__(self, message: str, code: str = "", reason: str = "", transient: bool = False) -> None:
        super().__init__(message, error_code=code)
        self.code = code
        self.reason = reason
        self.transient = transient


def one_line(error: BaseException) -> str:
    """An error's text on one line of a bearable length, without a page that a proxy sent."""
    text = " ".join(str(error).split()).rstrip(".")
    if "<html" in text.lower() or "<!doctype" in text.lower():
        text = "a web page came in place of an answer"
    return shortened(text, 300)


def shortened(text: str, most: int) -> str:
    """The beginning of a text up to the end of a word: what masks secrets later would not know half of one.

    >>> shortened("a token 0123456789", 10)
    'a token ...'
    """
    return text if len(text) <= most else f"{text[: most + 1].rpartition(' ')[0]} ..."


def unforeseen(error: BaseException) -> str:
    """A sentence for an error that nobody foresaw."""
    return f"an error that should not be: {type(error).__name__}: {one_line(error)}; please report it"


def sentence_of(error: BaseException) -> str:
    """What the user is told of any error."""
    return str(error) if isinstance(error, TrainiumError) else unforeseen(error)
