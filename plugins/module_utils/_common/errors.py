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
    """An AWS call failed. ``code`` is AWS's error code, '' where no answer came."""

    def __init__(self, message: str, code: str = "", reason: str = "") -> None:
        super().__init__(message, error_code=code)
        self.code = code
        self.reason = reason
