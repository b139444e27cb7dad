"""A virtual environment with PyTorch, a small dataset, and torchrun on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

import pytest

from sandbox import store
from tests.training import xla_environment
from tests.training.warm_torchrun import Launched, Launcher

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / "roles" / "training_job" / "files" / "bert"
REQUIREMENTS = REPOSITORY / "sandbox" / "mirror" / "requirements-nodes.txt"
LINE = re.compile(r"^LOG .* - \((\d+), (\d+)\) step_loss : (\S+) learning_rate : (\S+) ", re.MULTILINE)
# A model that learns within seconds, on one core a process.
MODEL = ["--batch_size=8", "--lr=0.005", "--warmup_steps=5", "--hidden_size=32", "--layers=1", "--heads=2"]


@dataclass
class Run:
    """A training that has ended, or been ended."""

    code: int
    text: str
    losses: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.losses = {int(step): float(loss) for _epoch, step, loss, _rate in LINE.findall(self.text)}


Train = Callable[..., Run]
Process = Union["subprocess.Popen[str]", Launched]
Once = Callable[[str, Callable[[Path], "Run | None"]], tuple[Path, Run]]


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of an environment with PyTorch: that of TRAINIUM_TORCH_VENV, or one that is made once."""
    given = os.environ.get("TRAINIUM_TORCH_VENV")
    if given:
        return Path(given).absolute() / "bin" / "python"

    def install(python: Path) -> None:
        """What hosts of the sandbox have; the sandbox has downloaded the wheels already, where it is up."""
        wheels = ["--find-links", str(REPOSITORY / ".sandbox" / "cache" / "mirror" / "wheels")]
        further = shlex.split(os.environ.get("TRAINIUM_SANDBOX_PIP_ARGS", ""))
        # Of PyTorch a tenth is ever imported.
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *wheels, *further]
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)

    return environment("torch-venv", REQUIREMENTS.read_text(encoding="utf-8"), install)


@pytest.fixture(scope="session")
def xla_python() -> Path:
    """The Python of an environment with torch_xla: that of TRAINIUM_XLA_VENV, or one that is made once."""
    given = os.environ.get("TRAINIUM_XLA_VENV")
    if given:
        return Path(given).absolute() / "bin" / "python"
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if not line.startswith(("#", "torch=="))]

    def install(python: Path) -> None:
        xla_environment.install(python, wanted, os.environ.get("TRAINIUM_SANDBOX_PIP_ARGS", ""))

    source = Path(xla_environment.__file__).read_text(encoding="utf-8")
    return environment("xla-venv", "\n".join([*wanted, source]), install)


def environment(name: str, wanted: str, install: Callable[[Path], None]) -> Path:
    """The Python of an environment that has what is ``wanted``, made once for all checkouts of this machine.

    It is moved after it was made, so that only its ``bin/python`` can be used.
    """

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install(folder / "bin" / "python")

    # Also from where it comes, and how.
    given = os.environ.get("TRAINIUM_SANDBOX_PIP_ARGS", "")
    recipe = [str(Path(sys.executable).resolve()), sys.version, given, inspect.getsource(install), wanted]
    key = hashlib.sha256(repr(recipe).encode()).hexdigest()[:16]
    return store.entry(name, key, make) / "bin" / "python"


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Fill a folder once for all tests, also where several processes test at once; what its maker returned, too."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], Run | None]) -> tuple[Path, Run]:
        folder, kept = base / f"once-{name}", base / f"once-{name}.json"
        with (base / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                # Of a process that failed here before.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                run = make(folder) or Run(0, "")
                kept.write_text(json.dumps([run.code, run.text]), encoding="utf-8")
        return folder, Run(*json.loads(kept.read_text(encoding="utf-8")))

    return made


@pytest.fixture(scope="session")
def data(python: Path, once: Once) -> Path:
    """Shards as the training reads them, made from a text with some order in it."""
    return once("data", lambda folder: make_data(python, folder))[0] / "shards"


def make_data(python: Path, folder: Path) -> None:
    words = [
        f"{one}{two}" for one in ("ba", "ke", "li", "mo", "nu", "ra") for two in ("den", "lor", "mis", "tak", "vu")
    ]
    sentences = (" ".join(words[(3 * line + 7 * place) % 30] for place in range(9)) for line in range(2500))
    (folder / "text").write_text("".join(f"{sentence}.\n" for sentence in sentences), encoding="utf-8")
    prepare = [str(python), str(SCRIPTS / "bert_prepare.py"), "--corpus", str(folder / "text")]
    size = ["--vocabulary_size=200", "--sequence_length=32", "--predictions=5", "--shards=2"]
    subprocess.run([*prepare, "--output", str(folder / "shards"), *size], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def signal_all(process: int, with_signal: signal.Signals) -> None:
    """Give the signal to a process and all below it, as Slurm does: torchrun's processes have groups of their own."""
    children = Path(f"/proc/{process}/task/{process}/children")
    for child in children.read_text(encoding="ascii").split() if children.exists() else ():
        signal_all(int(child), with_signal)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, with_signal)


def watch(process: Process, until: str, with_signal: signal.Signals | None, target: int, hang_up: bool) -> str:
    """What a process writes to its end; once it has written ``until``, ``target`` gets the signal.

    With ``hang_up`` nobody reads on then.
    """
    lines = []
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if with_signal and until in line:
            signal_all(target, with_signal)
            with_signal = None
            if hang_up:
                break
    process.stdout.close()
    process.wait(timeout=120)
    return "".join(lines)


@pytest.fixture(scope="session")
def launcher(python: Path) -> Iterator[Launcher]:
    """torchrun with PyTorch imported. OpenMP reads its variable when it is loaded, which is before the fork."""
    made = Launcher(python, {**os.environ, "OMP_NUM_THREADS": "1"})
    yield made
    made.close()


@pytest.fixture
def train(python: Path, data: Path, launcher: Launcher) -> Iterator[Train]:
    """Start a training on one or more "nodes" of this machine, each a torchrun with a folder of its own.

    With ``as_command`` it is the real command, whose processes each import PyTorch: where that is part of the test.
    """
    started: list[Process] = []

    def run(
        outputs: Path | list[Path],
        *arguments: str,
        processes: int = 1,
        until: str = "",
        with_signal: signal.Signals | None = None,
        to_node: int = 0,
        hang_up: bool = False,
        largest_file: int = 0,
        as_command: bool = False,
        **variables: str,
    ) -> Run:
        folders = outputs if isinstance(outputs, list) else [outputs]
        place = ["--master-addr=127.0.0.1", f"--master-port={free_port()}", f"--nnodes={len(folders)}"]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TRAINIUM_"))},
            "HF_HUB_OFFLINE": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "TRAINIUM_RESUME": "1",
            **variables,
        }
        nodes: list[Process] = []
        for rank, folder in enumerate(folders):
            script = [str(SCRIPTS / "bert_pretrain.py"), f"--data_dir={data}", f"--output_dir={folder}"]
            options = [*place, f"--node-rank={rank}", f"--nproc-per-node={processes}", *script, *MODEL, *arguments]
            process: Process
            if as_command:
                assert not largest_file
                command = [str(python), "-m", "torch.distributed.run", *options]
                process = subprocess.Popen(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            else:
                # They would be read too late.
                assert not [name for name in variables if name.startswith(("PYTHON", "TORCH", "OMP_"))]
                process = launcher.start(options, environment, largest_file)
            nodes.append(process)
            started.append(process)
        text = "".join(watch(process, until, with_signal, nodes[to_node].pid, hang_up) for process in nodes)
        return Run(max(abs(process.wait(timeout=0)) for process in nodes), text)

    yield run
    for process in started:
        if process.poll() is None:
            signal_all(process.pid, signal.SIGKILL)
            process.wait(timeout=30)


@pytest.fixture(scope="session")
def soon() -> Callable[[float], str]:
    """A time some seconds from now, as the job script gives it."""
    return lambda seconds: str(int(time.time() + seconds))
