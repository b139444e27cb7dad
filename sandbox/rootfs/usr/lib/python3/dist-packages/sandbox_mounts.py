"""Stand-in for what a kernel with NFS and Lustre shows in /proc/self/mountinfo.

Bind mounts of file systems of EFS (sandbox-mount-nfs4) and FSx (sandbox-mount-lustre) have the type and the source
there that NFS and Lustre would have. Only programs in Python are shown that, which Ansible's modules are;
sandbox-mounts.pth imports this where there is such a mount.
"""

from __future__ import annotations

import builtins
import io
import re
from pathlib import Path
from typing import Any

MOUNTS = "/proc/self/mountinfo"
# A file for each file system that was mounted, with its type and its source.
KNOWN = Path("/run/simulated-mounts")
_FOLDER = re.compile(r"/(?:efs|fsx)/(fs-[0-9a-f]{8,40})(/.*)?$")
_open = io.open


def shown(text: str, known: Path = KNOWN) -> str:
    """The lines with the type and the source of NFS or Lustre where a folder of such a file system is mounted."""
    lines = []
    for line in text.splitlines(keepends=True):
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        match = _FOLDER.search(fields[3]) if len(fields) > 3 else None
        file = known / match.group(1) if match else None
        if match and file and file.exists():
            kind, source = file.read_text(encoding="utf-8").split()
            tail[:2] = [kind, source + (match.group(2) or "/") if kind == "nfs4" else source]
            line = left + separator + " ".join(tail)
        lines.append(line)
    return "".join(lines)


def _opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
    if str(file) != MOUNTS or "b" in mode:
        return _open(file, mode, *arguments, **options)
    with _open(file, mode, *arguments, **options) as real:
        return io.StringIO(shown(real.read()))


def install() -> None:
    """From now on files are opened by this."""
    io.open = builtins.open = _opened
