# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""User data: as an archive of several parts, and with a timer by which a node stops itself. Pure.

cloud-init takes what says its MIME version as an archive, also one within another, and finds out by the first line what
a part of plain text is (user_data.py, convert_string and UserDataProcessor). A shutdown from within stops an instance
that is launched as this collection does (EC2 user guide, "Change instance initiated shutdown behavior").
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import NamedTuple

LIMIT = 16 * 1024  # bytes, before they are encoded (RunInstances)
UNIT = "trainium-stop"
_ARCHIVE = re.compile(r"(mime-version|content-type): ", re.IGNORECASE)
_TIMER = """\
#!/bin/sh
cat > /etc/systemd/system/{unit}.service << 'END'
[Unit]
Description=Stops this instance, which was launched to run {minutes} minutes after each boot

[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl poweroff
END
cat > /etc/systemd/system/{unit}.timer << 'END'
[Timer]
OnBootSec={minutes}min

[Install]
WantedBy=timers.target
END
systemctl daemon-reload && systemctl enable --now {unit}.timer
"""


class Part(NamedTuple):
    """One part of an archive; without a kind it is one itself."""

    kind: str
    text: str


def is_archive(text: str) -> bool:
    """Whether a text is a MIME archive itself."""
    return _ARCHIVE.match(text) is not None


def archive(parts: Iterable[Part], boundary: str) -> str:
    """A MIME multi-part archive."""
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for part in parts:
        text, head = part.text.rstrip("\n"), [f'Content-Type: {part.kind}; charset="utf-8"', ""] if part.kind else []
        # Python's parser, which cloud-init has, keeps no other letters as they are; nodeadm's does not decode.
        if part.kind.startswith("text/") and not text.isascii():
            head.insert(1, "Content-Transfer-Encoding: base64")
            text = base64.encodebytes(text.encode()).decode().rstrip("\n")
        lines += [f"--{boundary}", *head, text, ""]
    return "\n".join([*lines, f"--{boundary}--", ""])


def with_stop(given: str, minutes: int) -> str:
    """What an instance is given that stops itself so many minutes after each boot; 0 leaves ``given`` as it is."""
    if not minutes:
        return given
    timer = _TIMER.format(unit=UNIT, minutes=minutes)
    if not given:
        return timer
    own = Part("" if is_archive(given) else "text/plain", given)
    return archive([Part("text/x-shellscript", timer), own], "==trainium-stop==")
