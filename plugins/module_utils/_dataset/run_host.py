# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module dataset: is the dataset there, else start the process that brings it, or follow the one that does."""

from __future__ import annotations

import grp
import math
import os
import pwd
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import open_file
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import background
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.background import StatusFile
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import File
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.progress import line
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.run import Job, Place, Telling

SECONDS_BETWEEN_LOOKS = 0.2
MOST_CONNECTIONS = 64
Record = dict[str, Any]


def run(params: Mapping[str, Any], check_mode: bool) -> Record:
    """The module's result. Raises TrainiumError and ValueError, each with one sentence."""
    request = _request(params)
    place = Place(request["destination"], request["name"])
    attempt = params["attempt"] or uuid.uuid4().hex
    digest = planner.digest(request)
    status = None if check_mode else StatusFile(attempt)
    if status and status.read() is not None:
        return _follow(status, attempt, place, digest, params["wait"])
    marker = place.complete(digest)
    if marker is not None:
        return {"changed": False, **_completed(marker)}
    if planner.source_kind(request["source"]) == "s3" and params["files"] is None:
        return {"changed": False, "complete": False, "running": False}
    files = planner.files_of(list(_items(request, params["files"])), request["checksum"], request["checksums"])
    if not files:
        raise TrainiumError(f"{planner.shown(request['source'])} has no files; check the source")
    planner.to_extract(files, request["extract"])
    if status is None:
        return {"changed": True, "complete": False, "running": False}
    new = place.make(request["owner_ids"])
    tell = Telling(status)
    tell("starting", 0, 0)
    background.detach(lambda: _work(request, files, place, tell, new))
    return _follow(status, attempt, place, digest, params["wait"])


def _work(request: Record, files: list[File], place: Place, tell: Telling, new: bool) -> None:
    tell.claim_process()
    Job(request, files, place, tell).run(new)


def _request(params: Mapping[str, Any]) -> Record:
    planner.source_kind(params["source"])
    if not 1 <= params["connections"] <= MOST_CONNECTIONS:
        raise ValueError(f"connections is {params['connections']}; take 1 to {MOST_CONNECTIONS}")
    if not os.path.isabs(params["destination"]) or os.path.realpath(params["destination"]) == "/":
        raise ValueError(f"The destination {params['destination']!r} is not valid; use the absolute path of a folder")
    checksums = {path: planner.checksum(str(text)) for path, text in params["checksums"].items()}
    chunk = planner.parse_size(params["chunk_size"])
    if chunk < 1:
        raise ValueError(f"chunk_size is {params['chunk_size']!r}; take more than 0")
    return {
        **params,
        "name": planner.checked_name(params["name"] or planner.default_name(params["source"])),
        "checksum": planner.checksum(params["checksum"]),
        "checksums": checksums,
        "extracted_size": planner.parse_size(params["extracted_size"]),
        "owner_ids": _owner(params["owner"], params["group"]),
        "chunk_size": chunk,
        "timeout": max(params["timeout"], 1),
    }


def _owner(owner: str | None, group: str | None) -> tuple[int, int]:
    """User and group id, -1 where it stays that of this process."""
    uid = gid = -1
    try:
        if owner:
            known = pwd.getpwuid(int(owner)) if owner.isdigit() else pwd.getpwnam(owner)
            uid, gid = known.pw_uid, known.pw_gid
        if group:
            gid = (grp.getgrgid(int(group)) if group.isdigit() else grp.getgrnam(group)).gr_gid
    except KeyError as error:
        raise TrainiumError(f"The host has no such owner ({error.args[0]}); check owner and group") from error
    if os.geteuid() and uid not in (-1, os.geteuid()):
        raise TrainiumError(f"Only root can give files to {owner}; use become, or leave owner out")
    return uid, gid


def _items(request: Record, files: list[Record] | None) -> Iterator[Record]:
    """The files of the source as the plan wants them."""
    source = request["source"]
    kind = planner.source_kind(source)
    if files is not None:
        # The address of a file may be a secret, the source is none.
        base = source if source.endswith("/") else source.rpartition("/")[0] + "/"
        yield from (
            {**item, "url": planner.unwrapped(item["url"]), "name": planner.shown(base) + item["path"]}
            for item in files
        )
    elif kind == "http":
        name = unquote(urlsplit(source).path.rpartition("/")[2])
        if not name:
            raise TrainiumError(
                f"{planner.shown(source)} ends with a slash, so it names no file; give the URL of a file"
            )
        yield {"path": name, "url": source, "name": planner.shown(source)}
    elif os.path.isfile(source):
        yield _local(os.path.basename(source), source)
    elif os.path.isdir(source):
        if (os.path.realpath(request["destination"]) + "/").startswith(os.path.realpath(source) + "/"):
            raise TrainiumError(
                f"The destination {request['destination']} lies in the source {source}; take another one"
            )
        for folder, _folders, names in os.walk(source):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    yield _local(os.path.relpath(path, source), path)
    else:
        raise TrainiumError(f"There is no {source} on this host; check the source")


def _local(path: str, file: str) -> Record:
    with open(open_file(os.path.abspath(file)), "rb") as stream:
        found = os.fstat(stream.fileno())
    # Stands for an ETag: a file that was changed is copied anew.
    return {"path": path, "url": file, "name": file, "size": found.st_size, "tag": f"{found.st_mtime_ns}"}


def _completed(marker: Record) -> Record:
    return {
        "complete": True,
        "running": False,
        "files": marker.get("files", []),
        "completed_at": marker.get("completed_at", ""),
    }


def _follow(status: StatusFile, attempt: str, place: Place, digest: str, wait: int) -> Record:
    """Wait for the end of an attempt, or for ``wait`` seconds."""
    for _passed in looks(wait or math.inf, every(SECONDS_BETWEEN_LOOKS)):
        state = status.read()
        if state is None:
            raise TrainiumError(f"The state of the transfer {attempt} is gone from this host; run again to go on")
        if state.get("ended"):
            break
        if not background.alive(state):
            # It may have said its last word just now.
            state = status.read() or state
            if state.get("ended"):
                break
            status.remove()
            raise TrainiumError(
                "The process that fetched the dataset was killed; run again, which goes on where it stopped"
            )
        progress = line(state["progress"])
    else:
        return {"changed": True, "complete": False, "running": True, "attempt": attempt, "progress": progress}
    status.remove()
    if state.get("error"):
        raise TrainiumError(str(state["error"]))
    marker = place.complete(digest)
    if marker is None:
        raise TrainiumError(f"The dataset in {place.destination} was deleted right after it was made; run again")
    return {
        "changed": True,
        **_completed(marker),
        "attempt": attempt,
        "progress": line(state["progress"]),
        "fetched": int(state.get("fetched", 0)),
    }
