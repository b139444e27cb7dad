# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a training's report: what they should hold, and which of them have to be written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import parse
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import page
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import (
    EVENT_SUFFIX,
    as_csv,
    as_events,
    as_json,
    plain,
    record_of,
)


class TrainingReport:
    """The report of one training in one directory."""

    def __init__(self, module: Any, directory: str) -> None:
        self._module = module
        self.directory = Path(directory)

    def run(
        self, logs: list[str], report: Mapping[str, Any], prices: Mapping[str, Any], running: bool
    ) -> dict[str, Any]:
        """Write what differs, unless in check mode, and return the module's result. Raises TrainiumError."""
        try:
            record = record_of(parse(map(self._log, logs), running), report, prices, running)
        except ValueError as error:
            raise TrainiumError(str(error)) from error
        events, content = as_events(record)
        wanted = {
            "metrics.json": as_json(record),
            "metrics.csv": as_csv(record),
            events: content,
            "report.html": page(record),
        }
        # An older run's curve in the same folder would be drawn into this one's.
        stale = [
            str(path.relative_to(self.directory))
            for path in sorted((self.directory / events).parent.glob(f"*{EVENT_SUFFIX}"))
            if path.name != Path(events).name
        ]
        before = {name: self._read(self.directory / name) for name in [*wanted, *stale]}
        changed = {name: content for name, content in wanted.items() if before[name] != content}
        diff = [_difference(name, before[name], wanted.get(name)) for name in [*changed, *stale]]
        if not self._module.check_mode:
            for name, content in changed.items():
                self._write(self.directory / name, content)
            for name in stale:
                (self.directory / name).unlink()
        return {
            "changed": bool(changed or stale),
            "diff": diff,
            "files": {
                "json": str(self.directory / "metrics.json"),
                "csv": str(self.directory / "metrics.csv"),
                "events": str(self.directory / events),
                "html": str(self.directory / "report.html"),
            },
            "summary": plain(record["summary"]),
        }

    def _log(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise TrainiumError(
                f"The log {path} cannot be read ({error.strerror}); give the path of a training's log on this host."
            ) from error

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TrainiumError(f"{path} cannot be read ({error.strerror}); set another directory.") from error

    def _write(self, path: Path, content: bytes) -> None:
        """Replace a file in one step, so that a browser or TensorBoard never reads half of it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, content)
        except OSError as error:
            raise TrainiumError(f"{path} cannot be written ({error.strerror}); set another directory.") from error


def _difference(name: str, before: bytes | None, after: bytes | None) -> dict[str, str]:
    """For diff mode: the summary of metrics.json, and of the other files how long they are."""
    return {"before_header": name, "after_header": name, "before": _shown(name, before), "after": _shown(name, after)}


def _shown(name: str, content: bytes | None) -> str:
    if content is None:
        return ""
    if name.endswith(".json"):
        try:
            known = json.loads(content)
            known.pop("steps", None)
            return json.dumps(known, indent=2) + "\n"
        except (ValueError, AttributeError):
            pass
    return f"{len(content)} bytes\n"
