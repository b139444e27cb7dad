"""Run the scripts in the instance's user data once, in their order, as cloud-init does."""

from __future__ import annotations

import email
import subprocess
import sys
from pathlib import Path
from typing import Any

SEED, DONE, PARTS = Path("/seed/user-data"), Path("/var/lib/sandbox-user-data.done"), Path("/var/lib/sandbox-user-data")


def parts(text: str) -> list[str]:
    """What user data consists of. An archive is known by its MIME version (cloud-init, convert_string)."""
    if "mime-version:" not in text[:4096].lower():
        return [text]
    walked: Any = email.message_from_string(text).walk()
    return [part.get_payload(decode=True).decode() for part in walked if not part.is_multipart()]


def main() -> int:
    if DONE.exists() or not SEED.exists():
        return 0
    DONE.touch()
    PARTS.mkdir(mode=0o700, exist_ok=True)
    codes = []
    for number, part in enumerate(parts(SEED.read_text(encoding="utf-8")), start=1):
        if not part.startswith("#!"):
            print(f"part {number} of the user data is not a script: ignored", file=sys.stderr)
            continue
        script = PARTS / f"part-{number:03}"
        script.write_text(part, encoding="utf-8")
        script.chmod(0o700)
        codes.append(subprocess.run([str(script)], check=False).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
