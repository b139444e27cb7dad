"""The module dataset as a process, against a real HTTP server that counts bytes and cuts connections."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.dataset.range_server import RangeServer

MODULE = "ansible_collections.trainium.cluster.plugins.modules.dataset"
STATES = Path(f"/var/tmp/trainium-dataset-{os.geteuid()}")  # noqa: S108
MIB = 1024 * 1024
SIZE = 12 * MIB
CHUNK = 2 * MIB
CONTENT = random.Random(1).randbytes(SIZE)  # noqa: S311
SHA256 = hashlib.sha256(CONTENT).hexdigest()
Result = dict[str, Any]


@pytest.fixture
def server() -> Iterator[RangeServer]:
    made = RangeServer()
    made.files["data.bin"] = CONTENT
    yield made
    made.stop()


class Host:
    """Runs the module with a destination of its own."""

    def __init__(self, folder: Path) -> None:
        self.destination = folder / "destination"
        self._number = 0

    def start(self, source: str, check: bool = False, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        arguments = {"source": source, "destination": str(self.destination), "chunk_size": str(CHUNK), **options}
        assert process.stdin
        process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": check, **arguments}}))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, source: str, check: bool = False, **options: Any) -> Result:
        output, errors = self.start(source, check, **options).communicate(timeout=600)
        assert "Traceback" not in output + errors, output + errors
        result: Result = json.loads(output)
        return result

    def done(self, source: str, **options: Any) -> Result:
        result = self.run(source, **options)
        assert not result.get("failed"), result["msg"]
        assert result["complete"]
        return result

    def refused(self, source: str, **options: Any) -> str:
        result = self.run(source, **options)
        assert result.get("failed"), result
        return str(result["msg"])

    def names(self) -> list[str]:
        """What is in the destination for a reader of the dataset."""
        return sorted(path.name for path in self.destination.iterdir() if path.name != ".trainium-dataset")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def worker(attempt: str) -> int:
    """The number of the process that does the work of an attempt."""
    state = STATES / f"{attempt}.json"
    wait_until(
        lambda: state.exists() and json.loads(state.read_text(encoding="utf-8"))["progress"]["phase"] != "starting"
    )
    return int(json.loads(state.read_text(encoding="utf-8"))["pid"])


# --- transfers that are cut ---


def test_a_dataset_comes_once(server: RangeServer, host: Host) -> None:
    assert host.run(f"{server.url}/data.bin", check=True)["changed"]
    assert not host.destination.exists()
    first = host.done(f"{server.url}/data.bin", checksum=f"sha256:{SHA256}")
    assert first["changed"]
    assert first["fetched"] == SIZE == server.total()
    assert first["files"] == [{"path": "data.bin", "size": SIZE, "tag": f'"{SIZE}"', "sha256": SHA256}]
    assert (host.destination / "data.bin").read_bytes() == CONTENT
    asked = len(server.requests)
    second = host.done(f"{server.url}/data.bin", checksum=f"sha256:{SHA256}")
    assert not second["changed"]
    assert len(server.requests) == asked


def test_connections_that_are_cut_three_times_cost_no_byte(server: RangeServer, host: Host) -> None:
    server.cuts = [SIZE // 4, SIZE // 2, SIZE * 3 // 4]
    host.done(f"{server.url}/data.bin", checksum=SHA256)
    assert not server.cuts
    assert (host.destination / "data.bin").read_bytes() == CONTENT
    assert server.total() == SIZE


def test_a_process_that_is_killed_three_times_fetches_at_most_a_chunk_again_each_time(
    server: RangeServer, host: Host
) -> None:
    server.pause = 0.02
    for number in (1, 2, 3):
        attempt = f"killed-{number}-{os.getpid()}"
        process = host.start(f"{server.url}/data.bin", checksum=SHA256, attempt=attempt)
        victim = worker(attempt)
        enough = SIZE * number // 4
        wait_until(lambda enough=enough: server.total() >= enough)
        os.kill(victim, signal.SIGKILL)
        output, _errors = process.communicate(timeout=300)
        assert "was killed; run again" in json.loads(output)["msg"]
        assert host.names() == []
    server.pause = 0.0
    result = host.done(f"{server.url}/data.bin", checksum=SHA256)
    assert (host.destination / "data.bin").read_bytes() == CONTENT
    # Three quarters had left the server, of which each kill lost a chunk at most.
    assert result["fetched"] <= SIZE // 4 + 3 * CHUNK
    assert SIZE <= server.total() <= SIZE + 3 * CHUNK
    # No byte of all more than once beyond the pieces that were under way.
    assert (
        max(
            sum(1 for _path, start, end in server.sent if start <= at < end and end - start > 1)
            for at in range(0, SIZE, 64 * 1024)
        )
        <= 4
    )


def test_the_transfer_goes_on_without_its_module(server: RangeServer, host: Host) -> None:
    server.pause = 0.01
    attempt = f"alone-{os.getpid()}"
    process = host.start(f"{server.url}/data.bin", attempt=attempt)
    worker(attempt)
    process.kill()
    process.communicate()
    result = host.done(f"{server.url}/data.bin", attempt=attempt)
    assert result["changed"]
    assert server.total() == SIZE


def test_one_that_comes_later_waits_and_fetches_nothing(server: RangeServer, host: Host) -> None:
    # Not done before the pause ends, however slow the machine is.
    server.pause = 1.0
    attempt = f"first-{os.getpid()}"
    first = host.start(f"{server.url}/data.bin", attempt=attempt)
    worker(attempt)

    def look() -> dict[str, Any]:
        return host.run(f"{server.url}/data.bin", attempt=f"second-{os.getpid()}", wait=1)

    wait_until(lambda: look()["progress"].startswith("waiting for "))
    assert look()["running"]
    server.pause = 0.0
    second = host.done(f"{server.url}/data.bin", attempt=f"second-{os.getpid()}")
    assert second["fetched"] == 0
    assert not json.loads(first.communicate(timeout=300)[0]).get("failed")
    assert server.total() == SIZE


def test_progress_is_told_with_rate_and_time_left(server: RangeServer, host: Host) -> None:
    server.pause = 0.1
    attempt = f"told-{os.getpid()}"

    def look() -> dict[str, Any]:
        return host.run(f"{server.url}/data.bin", attempt=attempt, wait=1)

    seen = look()
    assert seen["running"]
    # The first piece has to be there before there is a rate.
    wait_until(lambda: "/s, " in look()["progress"])
    seen = look()
    assert " of 12.0 MiB (" in seen["progress"]
    assert seen["progress"].endswith("left")
    server.pause = 0.0
    host.done(f"{server.url}/data.bin", attempt=attempt)


def test_an_address_that_expired_is_replaced_by_the_next_run(server: RangeServer, host: Host) -> None:
    def files(url: str) -> list[dict[str, Any]]:
        return [{"path": "data.bin", "url": url, "size": SIZE, "tag": f'"{SIZE}"'}]

    server.pause = 0.01
    attempt = f"expiring-{os.getpid()}"
    process = host.start(
        "s3://bucket/data.bin", files=files(f"{server.url}/data.bin?X-Amz-Signature=one"), attempt=attempt
    )
    victim = worker(attempt)
    wait_until(lambda: server.total() > SIZE // 2)
    os.kill(victim, signal.SIGKILL)
    process.communicate()
    server.pause = 0.0
    before = server.total()
    message = host.refused("s3://bucket/data.bin", files=files(f"{server.url}/data.bin?X-Amz-Signature=two&expired=1"))
    assert "has expired; run again" in message
    assert "Signature" not in message
    output = json.dumps(host.done("s3://bucket/data.bin", files=files(f"{server.url}/data.bin?X-Amz-Signature=three")))
    assert "three" not in output
    assert server.total() - before < SIZE // 2 + CHUNK
    kept = [path.read_text(errors="replace") for path in host.destination.rglob("*.json")]
    assert kept
    assert "Signature" not in "".join(kept)


def test_without_addresses_s3_is_only_looked_at(host: Host) -> None:
    assert host.run("s3://bucket/data.bin")["complete"] is False
    assert not host.destination.exists()


def test_a_server_without_ranges(server: RangeServer, host: Host) -> None:
    server.ranges = False
    # The question for the size takes some of it as well.
    server.cuts = [SIZE // 2 * number for number in (1, 2, 3, 4)]
    host.done(f"{server.url}/data.bin", checksum=SHA256)
    assert not server.cuts
    assert (host.destination / "data.bin").read_bytes() == CONTENT


def test_a_server_that_is_busy_is_asked_again(server: RangeServer, host: Host) -> None:
    server.refusals = [(503, b""), (429, b"")]
    host.done(f"{server.url}/data.bin", checksum=SHA256)


# --- what is refused ---


@pytest.mark.parametrize(
    ("path", "options", "sentence"),
    [
        ("data.bin", {"checksum": "0" * 64}, "it was deleted, check the checksum"),
        ("missing.bin", {}, "missing.bin (HTTP 404); check the source"),
        ("data.bin", {"checksum": "md5:1"}, "use sha256: and 64"),
        ("data.bin", {"checksums": {"other": SHA256}}, "A checksum was given for 'other'"),
        ("data.bin", {"extract": "always"}, "data.bin is no archive"),
        ("data.bin", {"extracted_size": "9000T"}, "make room or take a larger volume"),
        ("data.bin", {"extracted_size": "much"}, "The size 'much' is not valid"),
        ("data.bin", {"name": "../x"}, "The name '../x' is not valid"),
        ("data.bin", {"owner": "nobody-at-all"}, "no such owner"),
        ("", {}, "so it names no file"),
    ],
)
def test_refusals(server: RangeServer, host: Host, path: str, options: dict[str, Any], sentence: str) -> None:
    message = host.refused(f"{server.url}/{path}", **options)
    assert sentence in message
    assert message.count(". ") == 0
    assert not host.destination.exists()
    if "0000" not in str(options):
        assert server.total() == 0


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("ftp://host/file", "not valid"),
        ("relative/path", "not valid"),
        ("s3://", "no bucket"),
        ("s3://UPPER/key", "no bucket"),
        ("/no/such/path", "/no/such/path"),
    ],
)
def test_sources_that_are_none(host: Host, source: str, sentence: str) -> None:
    assert sentence in host.refused(source)
    assert not host.destination.exists()


def test_content_that_changes_while_it_is_fetched(server: RangeServer, host: Host) -> None:
    item = {"path": "data.bin", "url": f"{server.url}/data.bin", "size": SIZE, "tag": '"another"'}
    assert "is not what it was" in host.refused("s3://bucket/data.bin", files=[item])


def test_the_md5_of_an_object(server: RangeServer, host: Host) -> None:
    server.headers = {"ETag": f'"{"0" * 32}"'}
    item = {"path": "data.bin", "url": f"{server.url}/data.bin", "size": SIZE, "tag": f'"{"0" * 32}"'}
    assert "has the MD5" in host.refused("s3://bucket/data.bin", files=[item], md5_tags=True)
    server.headers["x-amz-server-side-encryption"] = "aws:kms"
    host.done("s3://bucket/data.bin", files=[item], md5_tags=True)


# --- archives ---


def packed(kind: str, members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=stream, mode="w:gz" if kind == "tar.gz" else "w:") as tar:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(content), 0o4777
                tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_archives_are_unpacked(server: RangeServer, host: Host, kind: str) -> None:
    members = {f"set/part-{number}/shard.h5": CONTENT[: 1000 * number] for number in range(1, 200)}
    server.files[f"set.{kind}"] = packed(kind, {**members, "set/large": CONTENT})
    host.done(f"{server.url}/set.{kind}")
    assert host.names() == ["set"]
    found = {
        str(path.relative_to(host.destination)): path
        for path in (host.destination / "set").rglob("*")
        if path.is_file()
    }
    assert found.keys() == {*members, "set/large"}
    assert all(found[name].read_bytes() == content for name, content in members.items())
    assert found["set/large"].stat().st_mode & 0o7022 == 0
    assert not host.done(f"{server.url}/set.{kind}")["changed"]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
@pytest.mark.parametrize("name", ["../outside", "/outside", "set/../../outside"])
def test_archives_that_lead_out_are_refused_as_a_whole(server: RangeServer, host: Host, kind: str, name: str) -> None:
    server.files[f"bad.{kind}"] = packed(kind, {"set/good": b"good", name: b"bad"})
    message = host.refused(f"{server.url}/bad.{kind}")
    assert "is refused: the member" in message
    assert not host.destination.exists()
    assert not (host.destination.parent / "outside").exists()


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_damaged_archives_are_refused(server: RangeServer, host: Host, kind: str) -> None:
    whole = packed(kind, {f"set/{number}": CONTENT[:100000] for number in range(10)})
    server.files[f"half.{kind}"] = whole[: len(whole) // 2]
    assert "is damaged" in host.refused(f"{server.url}/half.{kind}")
    assert not host.destination.exists()


@pytest.mark.parametrize("rebooted", [False, True])
def test_killed_while_it_unpacks(server: RangeServer, host: Host, rebooted: bool) -> None:
    server.files["many.zip"] = packed("zip", {f"set/{number:05}": b"x" * 100 for number in range(8000)})
    attempt = f"unpacking-{os.getpid()}"
    process = host.start(f"{server.url}/many.zip", attempt=attempt)
    stage = host.destination / ".trainium-dataset" / "many.zip" / "stage" / "set"
    wait_until(lambda: stage.is_dir() and len(list(stage.iterdir())) > 100)
    state = json.loads((STATES / f"{attempt}.json").read_text(encoding="utf-8"))
    os.kill(state["pid"], signal.SIGKILL)
    process.communicate()
    assert host.names() == []
    if rebooted:
        # What an earlier boot unpacked may be there in name only.
        (stage / "00000").write_bytes(b"\0" * 100)
        file = stage.parent.parent / "state.json"
        file.write_text(
            json.dumps({**json.loads(file.read_text(encoding="utf-8")), "host": "before"}), encoding="utf-8"
        )
    fetched = server.total()
    assert host.done(f"{server.url}/many.zip")["fetched"] == 0
    assert server.total() == fetched
    found = [path.read_bytes() for path in (host.destination / "set").iterdir()]
    assert found == [b"x" * 100] * 8000


def test_a_folder_of_the_host(host: Host, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a" / "plain.txt").write_bytes(b"plain")
    (source / "a" / "set.tar").write_bytes(packed("tar", {"one": b"1"}))
    assert host.done(str(source))["changed"]
    assert {str(path.relative_to(host.destination)) for path in host.destination.rglob("a/*")} == {
        "a/plain.txt",
        "a/one",
    }
    assert (source / "a" / "set.tar").exists()
    assert not host.done(str(source))["changed"]
    assert "lies in the source" in Host(source).refused(str(source))
