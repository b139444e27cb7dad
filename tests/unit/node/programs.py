"""Small programs in the place of the real ones."""

from __future__ import annotations

from pathlib import Path


def program(folder: Path, name: str, output: str, code: int = 0) -> None:
    """A program that prints something and ends with a code."""
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {code}\n")
    file.chmod(0o755)
