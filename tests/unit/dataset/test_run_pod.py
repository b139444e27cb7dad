"""What the pod of a dataset's Job writes into its log, and the code with which it ends."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import run_pod

from tests.unit.dataset.host import Host


def request(tmp_path: Path, content: bytes) -> list[str]:
    path = tmp_path / "request.json.gz"
    path.write_bytes(content)
    return ["run_pod", str(path)]


def test_a_dataset_is_brought(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (host.source / "a").write_bytes(bytes(1024))
    (host.source / "b").write_bytes(bytes(512))
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run_pod.main(request(tmp_path, gzip.compress(json.dumps(host.options()).encode()))) == 0
        ends = signal.getsignal(signal.SIGTERM)
        assert callable(ends)
        with pytest.raises(SystemExit) as end:
            ends(signal.SIGTERM, None)
        # As a shell says of a program that SIGTERM ended.
        assert end.value.code == 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().out == "DATASET 2 files with 1.5 KiB are in place\n"
    assert host.names() == ["a", "b"]


@pytest.mark.parametrize(
    "content", [b"x", gzip.compress(b"x"), gzip.compress(b"{}")[:10]], ids=["text", "no JSON", "cut"]
)
def test_a_request_that_cannot_be_read(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run_pod.main(request(tmp_path, content)) == 1
    signal.signal(signal.SIGTERM, before)
    said = capsys.readouterr().out
    assert said.startswith("DATASET what is to be fetched cannot be read (")
    assert said.endswith("); run training.yml again.\n")


@pytest.mark.parametrize("error", [TrainiumError("It failed"), ValueError("It failed")])
def test_a_failure_is_the_last_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_given: Any) -> Any:
        raise error

    monkeypatch.setattr(run_pod, "run", fails)
    assert run_pod.bring({}) == 1
    assert capsys.readouterr().out == "DATASET It failed.\n"


def test_progress_is_told_where_it_is_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["a", "a", "b", "b", "a"]
    asked: list[tuple[dict[str, Any], bool]] = []

    def looks(given: dict[str, Any], check: bool) -> dict[str, Any]:
        asked.append((given, check))
        if len(asked) <= len(told):
            return {"complete": False, "progress": told[len(asked) - 1]}
        return {"complete": True, "files": [{"size": "3"}]}

    monkeypatch.setattr(run_pod, "run", looks)
    assert run_pod.bring({"source": "x"}, 7) == 0
    assert capsys.readouterr().out.splitlines() == [
        *(f"DATASET {line}" for line in "aba"),
        "DATASET 1 files with 3 B are in place",
    ]
    # One attempt is followed to its end.
    assert len({given["attempt"] for given, _check in asked}) == 1
    assert all(given["wait"] == 7 and given["source"] == "x" and not check for given, check in asked)
