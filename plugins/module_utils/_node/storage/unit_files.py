# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Unit files of systemd: verified before they are put in place, and put back as they were when they do not work."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.files import staged

DIRECTORY = Path("/etc/systemd/system")


class UnitError(Exception):
    """A unit that systemd refuses or cannot start; the message is one sentence for the user."""


class UnitFiles:
    """The files of some units, and what systemd makes of them. Every call of a program is one through the module."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def read(self, path: Path) -> str | None:
        """The text of a file, None where there is none."""
        return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else None

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        """Replace a file in one step, owned by root."""
        self._module.atomic_move(staged(self._module, text.encode("utf-8", "surrogateescape")), str(path))
        os.chmod(path, mode)

    def restore(self, files: Mapping[Path, str | None]) -> None:
        """Put files back as ``read`` found them."""
        for path, text in files.items():
            if text is not None:
                self.write(path, text, path.stat().st_mode & 0o777 if path.exists() else 0o644)
            elif path.exists():
                path.unlink()

    def verify(self, units: Mapping[str, str]) -> None:
        """Let systemd read the units from a directory of their own. Raises UnitError with its complaint.

        systemd ignores what it does not understand and still ends well, so any word about these units is a refusal.
        """
        if not units:
            return
        with tempfile.TemporaryDirectory(prefix="units-") as directory:
            paths = {name: Path(directory) / name for name in units}
            for name, path in paths.items():
                path.write_text(units[name], encoding="utf-8", errors="surrogateescape")
            code, out, error = self._module.run_command(
                ["systemd-analyze", "verify", *map(str, paths.values())], environ_update={"SYSTEMD_COLORS": "0"}
            )
        lines = [line.strip() for line in (out + error).splitlines()]
        about = [line for line in lines if any(name in line for name in units)]
        if about or code:
            reason = (about or lines or [f"exit code {code}"])[0].replace(directory + "/", "")
            raise UnitError(
                f"systemd refuses a unit, and nothing was changed: {reason.rstrip('.')}; correct the variables."
            )

    def show(self, units: Iterable[str]) -> dict[str, dict[str, str]]:
        """ActiveState and UnitFileState of each unit; asked with one call."""
        names = list(units)
        if not names:
            return {}
        arguments = ["--no-pager", "show", "--property=Id,ActiveState,UnitFileState,NeedDaemonReload", "--", *names]
        _code, out, _error = self._module.run_command(["systemctl", *arguments], check_rc=True)
        blocks = [block for block in out.split("\n\n") if block.strip()]
        states = [dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line) for block in blocks]
        return dict(zip(names, states))

    def dependents(self, unit: str) -> list[str]:
        """The active units that systemd stops together with a unit, such as mounts and services on top of a mount."""
        found: list[str] = []
        queue = [unit]
        while queue:
            arguments = ["--no-pager", "show", "--property=RequiredBy,BoundBy", "--", queue.pop()]
            _code, out, _error = self._module.run_command(["systemctl", *arguments], check_rc=True)
            # A name with a backslash in it comes in quotes.
            names = [name for line in out.splitlines() for name in shlex.split(line.partition("=")[2])]
            new = [name for name in dict.fromkeys(names) if name != unit and name not in found]
            found += new
            queue += new
        states = self.show(found)
        return [name for name in found if states[name].get("ActiveState") == "active"]

    def systemctl(self, *arguments: str) -> str:
        """Run systemctl; the reason why it failed, '' when it did not."""
        code, out, error = self._module.run_command(["systemctl", "--no-ask-password", *arguments])
        lines = [line.strip() for line in (error or out).splitlines() if line.strip()]
        return "" if code == 0 else (lines or [f"exit code {code}"])[0]

    def reason(self, unit: str) -> str:
        """What the journal says last about a unit that failed, '' where there is nothing."""
        _code, out, _error = self._module.run_command(
            ["journalctl", "--no-pager", "--quiet", "--output=cat", "--lines=12", f"--unit={unit}"]
        )
        skip = (unit, "Mounting ", "Failed to mount ", "Failed to start ", "Starting ", "Unmounting ", "dmesg", "(")
        lines = [line.strip() for line in out.splitlines() if line.strip() and not line.strip().startswith(skip)]
        return lines[-1].rstrip(".") if lines else ""
