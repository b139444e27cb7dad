"""The one exception of the sandbox: its text is the sentence the user reads."""

from __future__ import annotations


class SandboxError(Exception):
    """Something the user can act on; shown without a traceback."""
