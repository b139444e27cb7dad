"""Volumes show the snapshot that they came from, empty where there was none; stock moto leaves the field out."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.elastic_block_store import Volume

_init = Volume.__init__


def _made(self: Any, *arguments: Any, **options: Any) -> None:
    _init(self, *arguments, **options)
    self.snapshot_id = self.snapshot_id or ""


def install() -> None:
    Volume.__init__ = _made
