# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checkpoints that are whole or do not count, and how the nodes of a job agree on one.

A checkpoint is ``ckpt_<step>.pt``, written under another name first, and a marker ``ckpt_<step>.json`` with its size
and checksum, written last. On shared storage the first process writes it; else the first process of each node keeps
a copy of its own. To resume, the newest step that is whole on any node is taken; a node that lacks it, because it
has replaced another, is sent a copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from bert_backend import say

CHUNK = 64 << 20  # bytes sent between nodes at once


def on_cpu(value: Any) -> Any:
    """The same with all tensors on the CPU, at whatever depth."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: on_cpu(inner) for key, inner in value.items()}
    return [on_cpu(inner) for inner in value] if isinstance(value, (list, tuple)) else value


class _Counted:
    """A file that knows the checksum of what was written to it."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.digest = hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        self.digest.update(data)
        try:
            return self.file.write(data)
        except OSError as error:
            # PyTorch makes one of its own of it, which does not say why.
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        """On the disk, not just on its way there."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class Store:
    """The checkpoints of one training in one folder, as one process sees them."""

    def __init__(self, folder: Path, identity: str, keep: int) -> None:
        self.folder, self.identity, self.keep = folder, identity, max(1, keep)

    def path(self, step: int) -> Path:
        return self.folder / f"ckpt_{step}.pt"

    def _marker(self, step: int) -> Path:
        return self.folder / f"ckpt_{step}.json"

    def _part(self, path: Path) -> Path:
        # Nodes that share the folder do not write into each other's files.
        return path.with_name(f"{path.name}.{socket.gethostname()}.part")

    def markers(self) -> dict[int, dict[str, Any]]:
        """The markers of this training, by step; those of another one in the same folder do not count."""
        found = {}
        for path in self.folder.glob("ckpt_*.json"):
            try:
                marker = json.loads(path.read_text(encoding="utf-8"))
                if marker["identity"] == self.identity:
                    found[int(marker["step"])] = marker
            except (OSError, ValueError, TypeError, KeyError):
                say(f"training: warning: {path} is no marker of a checkpoint and passed over")
        return found

    def is_whole(self, step: int) -> bool:
        """Whether size and checksum are those that were written."""
        marker = self.markers().get(step)
        try:
            if marker is None or self.path(step).stat().st_size != marker["size"]:
                return False
            digest = hashlib.sha256()
            with self.path(step).open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError:
            return False
        return digest.hexdigest() == marker["sha256"]

    def write(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, then take away the oldest beyond those to keep."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # What a killed process left half done; the space may be needed.
        for left in self.folder.glob(f"ckpt_*.{socket.gethostname()}.part"):
            left.unlink()
        path = self.path(step)
        part = self._part(path)
        file = _Counted(part)
        try:
            torch.save(state, file)
            file.close()
        except (OSError, RuntimeError) as error:
            part.unlink(missing_ok=True)
            raise file.error or error from None
        self._marker(step).unlink(missing_ok=True)
        part.rename(path)
        size = path.stat().st_size
        self.mark({"step": step, "size": size, "sha256": file.digest.hexdigest(), "identity": self.identity})
        for old in sorted(self.markers(), reverse=True)[self.keep :]:
            # The marker first: a file without one is none.
            self._marker(old).unlink(missing_ok=True)
            self.path(old).unlink(missing_ok=True)

    def mark(self, marker: dict[str, Any]) -> None:
        path = self._marker(marker["step"])
        part = self._part(path)
        part.write_text(json.dumps(marker) + "\n", encoding="utf-8")
        part.rename(path)

    def set_aside(self) -> None:
        """Let the checkpoints there are no longer count; a finished run's last one stays until it is overwritten."""
        for step in self.markers():
            path = self._marker(step)
            path.rename(path.with_name(f"{path.name}.earlier"))

    def read(self, step: int) -> dict[str, Any]:
        # Mapped, so that the processes of a node share the memory.
        state: dict[str, Any] = torch.load(self.path(step), map_location="cpu", weights_only=True, mmap=True)
        return state


class Nodes:
    """What the processes of a job do together about checkpoints. Every process calls every method."""

    def __init__(self, store: Store, control: Any, writes: bool = True) -> None:
        self.store, self.control = store, control
        self.rank = dist.get_rank()
        self.first = int(os.environ.get("LOCAL_RANK", "0")) == 0
        # Whether this process writes checkpoints; those of a compile run would be another's.
        self.writes = False
        if writes:
            seen = self._sees_the_first()
            self.writes = self.rank == 0 or (self.first and not seen)

    def _all(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(found, value, group=self.control)
        return found

    def _sees_the_first(self) -> bool:
        """Whether this process sees what the first one writes: then they share the folder."""
        name = self._all(f".shared-{uuid.uuid4().hex}")[0]
        path = self.store.folder / name
        if self.rank == 0:
            try:
                self.store.folder.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError as error:
                folder = self.store.folder
                raise SystemExit(f"{folder}, the --output_dir, cannot be written: {error.strerror}.") from None
        dist.barrier(group=self.control)
        seen = path.exists()
        dist.barrier(group=self.control)
        if self.rank == 0:
            path.unlink()
        return seen

    def save(self, step: int, state: dict[str, Any]) -> bool:
        """Write the checkpoint where it belongs; all go on when it is there. Whether it could be written everywhere."""
        failed = False
        if self.writes:
            try:
                self.store.write(step, state)
            except OSError as error:
                failed = True
                where = f"{socket.gethostname()}:{self.store.path(step)}"
                say(f"training: warning: {where} could not be written: {error.strerror}")
        return not self.any(failed)

    def newest(self) -> int:
        """The newest whole step, which all nodes can read from then on; 0 where there is none."""
        steps: set[int] = set().union(*self._all(set(self.store.markers()) if self.first else set()))
        for step in sorted(steps, reverse=True):
            holders = [rank for rank, whole in enumerate(self._all(self.first and self.store.is_whole(step))) if whole]
            lacking = self._all(self.first and self.rank not in holders)
            if not holders:
                if self.rank == 0:
                    say(f"training: warning: {self.store.path(step)} is not whole and passed over")
                continue
            if any(lacking):
                self._send(step, holders[0], lacking[self.rank])
            return step
        return 0

    def _send(self, step: int, source: int, wanted: bool) -> None:
        """Bring a checkpoint from the process ``source`` to the nodes that lack it."""
        marker = self._all(self.store.markers()[step] if self.rank == source else None)[source]
        path = self.store.path(step)
        part = self.store._part(path)
        if self.rank == source:
            say(f"training: sending {path} to the nodes that lack it")
        if wanted:
            self.store.folder.mkdir(parents=True, exist_ok=True)
        file = path.open("rb") if self.rank == source else part.open("wb") if wanted else None
        for start in range(0, marker["size"], CHUNK):
            count = min(CHUNK, marker["size"] - start)
            if self.rank == source:
                block = torch.frombuffer(bytearray(file.read(count)), dtype=torch.uint8)
            else:
                block = torch.empty(count, dtype=torch.uint8)
            dist.broadcast(block, source, group=self.control)
            if wanted:
                file.write(block.numpy().tobytes())
        if file:
            file.close()
        if wanted:
            part.rename(path)
            self.store.mark(marker)
        dist.barrier(group=self.control)

    def any(self, flag: bool) -> bool:
        """Whether one process says yes."""
        word = torch.tensor([int(flag)])
        dist.all_reduce(word, op=dist.ReduceOp.MAX, group=self.control)
        return bool(word.item())

    def set_aside(self) -> None:
        if self.writes:
            self.store.set_aside()
        dist.barrier(group=self.control)
