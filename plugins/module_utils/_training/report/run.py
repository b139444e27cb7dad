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


def write_report(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Write what differs, unless in check mode, and return the module's result. Raises TrainiumError."""
    directory, running = Path(params["directory"]), params["running"]
    try:
        metrics = parse(map(_log, params["logs"]), running)
        record = record_of(metrics, params["report"] or {}, params["price_per_hour"] or {}, running)
    except ValueError as error:
        raise TrainiumError(str(error)) from error
    events, content = as_events(record)
    files = {"json": "metrics.json", "csv": "metrics.csv", "events": events, "html": "report.html"}
    wanted = dict(zip(files.values(), (as_json(record), as_csv(record), content, page(record))))
    # An older run's curve in the same folder would be drawn into this one's.
    stale = [
        str(path.relative_to(directory))
        for path in sorted((directory / events).parent.glob(f"*{EVENT_SUFFIX}"))
        if path.name != Path(events).name
    ]
    before = {name: _read(directory / name) for name in [*wanted, *stale]}
    changed = {name: content for name, content in wanted.items() if before[name] != content}
    if not check_mode:
        for name, content in changed.items():
            _write(directory / name, content)
        for name in stale:
            (directory / name).unlink()
    return {
        "changed": bool(changed or stale),
        "diff": [
            {
                "before_header": name,
                "after_header": name,
                "before": _shown(name, before[name]),
                "after": _shown(name, wanted.get(name)),
            }
            for name in [*changed, *stale]
        ],
        "files": {kind: str(directory / name) for kind, name in files.items()},
        "summary": plain(record["summary"]),
    }


def _log(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TrainiumError(
            f"The log {path} cannot be read ({error.strerror}); give the path of a training's log on this host."
        ) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainiumError(f"{path} cannot be read ({error.strerror}); set another directory.") from error


def _write(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that a browser or TensorBoard never reads half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content)
    except OSError as error:
        raise TrainiumError(f"{path} cannot be written ({error.strerror}); set another directory.") from error


def _shown(name: str, content: bytes | None) -> str:
    """For diff mode: the summary of metrics.json, and of the other files how long they are."""
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
