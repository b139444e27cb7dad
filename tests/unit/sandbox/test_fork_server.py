"""The interpreter that hosts have for molecule: what is forked is as what would have been started."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[3] / "sandbox/rootfs/usr/local/lib/sandbox"
SERVER = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
import fork_server
fork_server.preload(["ansible.module_utils.basic"])
fork_server.compile_once(fork_server.Path(sys.argv[3]))
parent = os.getppid()
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[2])
    os.chmod(sys.argv[2], 0o666)
    listener.listen(8)
    fork_server.serve(listener, lambda: os.getppid() == parent)
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-ES", str(CORE / "fork_client.py"), str(path), *arguments]


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The socket of a server that listens."""
    folder = Path(tempfile.mkdtemp())
    # Clients of other users reach it as well.
    folder.chmod(0o755)
    path = folder / "socket"
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(CORE), str(path), str(folder)])
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    yield path
    process.terminate()
    process.wait()
    shutil.rmtree(folder)


@pytest.fixture
def run(server: Path, tmp_path: Path) -> Run:
    def start(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        options = {"cwd": tmp_path, "timeout": 120, **options}
        argv = command(server, *arguments)
        return subprocess.run(argv, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]

    return start


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("pass", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_it_ends_as_the_process_did(run: Run, text: str, code: int, error: str) -> None:
    done = run("-c", text)
    assert done.returncode == code
    assert error in done.stderr
    assert bool(done.stderr) == bool(error)


def test_a_program_from_standard_input(run: Run) -> None:
    done = run(input="import sys\nprint(sys.argv, sys.stdin.read() == '')")
    assert done.stdout == "['-'] True\n"


def test_what_is_imported_is_there_and_nothing_of_a_client_before(run: Run) -> None:
    run("-c", "import sys; sys.modules['left'] = sys; import os; os.environ['LEFT'] = '1'")
    done = run(
        "-c",
        "import os, sys; print('ansible.module_utils.basic' in sys.modules, 'left' in sys.modules, os.getenv('LEFT'))",
    )
    assert done.stdout == "True False None\n"


def test_folder_environment_mask_limits_and_niceness_are_the_clients(run: Run, tmp_path: Path) -> None:
    def before() -> None:
        import resource

        os.umask(0o077)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (77, 88))

    text = (
        "import os, resource; mask = os.umask(0); "
        "print(os.getcwd(), dict(os.environ), oct(mask), resource.getrlimit(resource.RLIMIT_NOFILE), os.nice(0))"
    )
    niceness = os.nice(0) + 3
    done = run("-c", text, env={"A": "b"}, preexec_fn=before)
    # Python itself sets LC_CTYPE where there is no locale.
    assert done.stdout.replace(", 'LC_CTYPE': 'C.UTF-8'", "") == f"{tmp_path} {{'A': 'b'}} 0o77 (77, 88) {niceness}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")
def test_it_runs_as_the_clients_user_whoever_runs_the_server(server: Path, tmp_path: Path) -> None:
    text = "import os; print(os.getresuid(), os.getresgid(), os.getgroups(), os.readlink('/proc/self/cwd'))"
    # Nor may that user enter the folder, as after sudo in a home.
    tmp_path.chmod(0o700)
    # The client's file and the interpreter's may be where others cannot read.
    become = "import array, json, os, resource, socket; os.setgroups([])\n"
    become += "os.setresgid(*3 * [65534]); os.setresuid(*3 * [65534])\n"
    client = [sys.executable, "-c", become + (CORE / "fork_client.py").read_text().replace("from __future__", "#")]
    done = subprocess.run(
        [*client, str(server), "-c", text], cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout == f"(65534, 65534, 65534) (65534, 65534, 65534) [] {tmp_path}\n"


def test_it_dies_with_its_client(server: Path, tmp_path: Path) -> None:
    sign = tmp_path / "pid"
    text = (
        f"import os, time; from pathlib import Path; Path('new').write_text(str(os.getpid())); "
        f"os.rename('new', {str(sign)!r}); time.sleep(600)"
    )
    client = subprocess.Popen(command(server, "-c", text), cwd=tmp_path)
    until = time.monotonic() + 60
    while not sign.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    forked = int(sign.read_text())
    assert forked != client.pid
    client.send_signal(signal.SIGKILL)
    client.wait()
    while Path(f"/proc/{forked}").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_where_nobody_listens_the_interpreter_itself_runs(tmp_path: Path) -> None:
    arguments = command(tmp_path / "nothing", "-c", "import os, sys; print(os.getpid(), sys.argv)", "more")
    client = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    output, _error = client.communicate(timeout=60)
    assert output == f"{client.pid} ['-c', 'more']\n"


def test_a_zip_file_is_compiled_once_for_each_text_and_errors_name_the_right_one(run: Run, server: Path) -> None:
    def fails(name: str, source: str) -> str:
        pack = f"import zipfile; zipfile.ZipFile('{name}', 'w').writestr('packed.py', {source!r}); "
        return run("-c", pack + f"import sys; sys.path.insert(0, '{name}'); import packed").stderr

    def compiled() -> int:
        return sum(len(path.name) == 64 for path in server.parent.iterdir())

    before = compiled()
    first = fails("one.zip", "def f():\n    1 / 0\nf()\n")
    assert "one.zip/packed.py" in first
    assert compiled() == before + 1
    second = fails("two.zip", "def f():\n    1 / 0\nf()\n")
    assert second == first.replace("one.zip", "two.zip")
    assert compiled() == before + 1
    assert "KeyError" in fails("one.zip", "{}['a']\n")
    assert compiled() == before + 2


def test_one_that_asks_for_nothing_keeps_nobody_waiting(server: Path, run: Run) -> None:
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as wrong:
        silent.connect(str(server))
        wrong.connect(str(server))
        wrong.sendall((9).to_bytes(8, "big"))  # and no streams
        assert run("-c", "pass", timeout=20).returncode == 0
        assert wrong.recv(1) == b""


def test_a_process_holds_no_pipe_of_another_client(server: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(server))
        socket.send_fds(asking, [(1000).to_bytes(8, "big")], [writing, writing, writing])
        text = "import sys; print('here', flush=True); sys.stdin.read()"
        argv = command(server, "-c", text)
        other = subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout and other.stdout.readline() == "here\n"
    os.close(writing)
    assert select.select([reading], [], [], 60)[0] and os.read(reading, 1) == b""
    os.close(reading)
    assert other.poll() is None
    other.communicate("")
    assert other.returncode == 0
