"""What a pod brings for a job before it runs: its files, those that are fetched, and what its image has to have."""

from __future__ import annotations

import hashlib
import http.server
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.pod.test_pod_script import World


class Origin(http.server.BaseHTTPRequestHandler):
    """Gives every path's own name, and counts; only what is called gone is not there."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(404 if "gone" in self.path else 200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_words: Any) -> None:
        """Nothing on the screen."""


@pytest.fixture
def origin() -> Iterator[tuple[str, list[str]]]:
    """An address that files are fetched from, and what was asked for."""
    asked: list[str] = []
    handler = type("Handler", (Origin,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def pod(world: World, word: str = "stage", **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{world.folder}/bin:{os.environ['PATH']}", "WORLD": str(world.folder), **environment}
    command = ["bash", str(world.folder / "root/job/pod.sh"), word]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def fetched(url: str, path: str, content: str = "") -> dict[str, str]:
    checksum = hashlib.sha256((content or f"/{path}").encode()).hexdigest().upper()
    return {"url": f"{url}/{path}", "checksum": f"sha256:{checksum}", "dest": path}


def test_the_jobs_files_are_put_into_its_folder(tmp_path: Path) -> None:
    world = World(tmp_path, {"tensorboard": "/output/events"})
    (tmp_path / "root/job/.neuron_ls.py").write_text("listed")
    (tmp_path / "root/environment/environment.sh").write_text("export B=2")
    assert pod(world).returncode == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in world.output.iterdir() if not path.is_symlink()}
    files = ("a.py", "job.sh", "pod.sh", "restart.sh", ".neuron_ls.py")
    assert modes == {**dict.fromkeys(files, 0o755), "environment.sh": 0o600}
    assert (world.output / ".neuron_ls.py").read_text() == "listed"
    assert (world.output / "environment.json").resolve() == (tmp_path / "root/environment/environment.json").resolve()
    assert os.readlink(world.output / "tensorboard") == "/output/events"
    assert (tmp_path / "shared/data").is_dir() and (tmp_path / "shared/output").is_dir()
    # Again, over what is there; a link in its place is not followed.
    (world.output / "a.py").unlink()
    (world.output / "a.py").symlink_to(tmp_path / "other")
    assert pod(world).returncode == 0
    assert not (world.output / "a.py").is_symlink() and not (tmp_path / "other").exists()
    assert pod(world, "clean").returncode == 0
    assert not (world.output / "environment.sh").exists()


def test_a_job_without_secrets_and_events_has_neither(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    assert pod(world).returncode == 0
    names = {path.name for path in world.output.iterdir()}
    assert {"environment.sh", "tensorboard"}.isdisjoint(names) and "job.sh" in names


def test_files_are_fetched_once_and_may_be_run(tmp_path: Path, origin: tuple[str, list[str]]) -> None:
    url, asked = origin
    world = World(tmp_path, {"fetch": [fetched(url, "one.py"), fetched(url, "below/two.json")]})
    done = pod(world)
    assert done.returncode == 0, done.stderr
    assert (world.output / "one.py").read_text() == "/one.py"
    assert (world.output / "below/two.json").read_text() == "/below/two.json"
    assert stat.S_IMODE((world.output / "one.py").stat().st_mode) == 0o755
    assert asked == ["/one.py", "/below/two.json"]
    (world.output / "one.py").write_text("another")
    assert pod(world).returncode == 0
    assert ((world.output / "one.py").read_text(), asked[2:]) == ("/one.py", ["/one.py"])
    assert not list(world.output.rglob("*.new"))


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("gone.py", "", "gone.py cannot be fetched (HTTP Error 404"),
        ("one.py", "what was published", "one.py has not the checksum that the job names."),
    ],
)
def test_what_cannot_be_fetched_or_is_another_is_refused(
    tmp_path: Path, origin: tuple[str, list[str]], path: str, content: str, said: str
) -> None:
    world = World(tmp_path, {"fetch": [fetched(origin[0], path, content)]})
    done = pod(world)
    assert (done.returncode != 0, said in done.stderr) == (True, True)
    assert not (world.output / path).exists()


@pytest.mark.parametrize(
    ("missing", "code"), [("print('a'); print('b')", 1), ("print()", 0), ("raise SystemExit(3)", 3)]
)
def test_an_image_that_lacks_something_is_named(tmp_path: Path, missing: str, code: int) -> None:
    world = World(tmp_path, {"requirements": ["a", "b==1"], "image": "example.com/a:1"})
    script = (tmp_path / "root/job/pod.sh").read_text()
    assert "print()" in script
    (tmp_path / "root/job/pod.sh").write_text(
        script.replace("print()", f"import sys; print(*sys.argv[1:], file=sys.stderr); {missing}".replace("'", '"'))
    )
    done = pod(world)
    assert done.returncode == code
    assert done.stderr.splitlines()[0] == "a b==1"
    said = "The image example.com/a:1 lacks what the job requires, a,b; build it anew, or name another."
    assert (said in done.stdout) is (code == 1)


@pytest.mark.parametrize("code", [0, 4])
def test_what_all_share_is_prepared_by_the_jobs_own_script(tmp_path: Path, code: int) -> None:
    world = World(tmp_path, {"files": ["a.py", "p.py"], "prepare": {"script": "p.py", "args": {"out": "x"}}})
    (tmp_path / "root/job/p.py").write_text(
        f"import sys; print(sys.argv[1:], file=open('{tmp_path}/p', 'w')); exit({code})"
    )
    assert pod(world).returncode == code
    assert (tmp_path / "p").read_text() == "['--out', 'x']\n"


def test_it_takes_no_other_word(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    for word in ("", "stages"):
        done = pod(world, word)
        assert (done.returncode, done.stderr) == (2, "pod.sh takes node, stage or clean.\n")
    assert not world.output.exists()
