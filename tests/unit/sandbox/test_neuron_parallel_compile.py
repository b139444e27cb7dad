"""The stand-in of neuron_parallel_compile: says that it is one, and behaves in what jobs see of the real tool."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sandbox.standins import wheels

PROGRAM = Path(wheels.__file__).parent / "pip" / "neuron_parallel_compile.py"


def run(cache: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    environment = {**os.environ, "NEURON_COMPILE_CACHE_URL": str(cache), **variables}
    command = [sys.executable, str(PROGRAM), *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return result.returncode, result.stdout + result.stderr


def test_runs_the_command_and_fills_the_cache(tmp_path: Path) -> None:
    code, text = run(tmp_path, "sh", "-c", "echo only graphs: $NEURON_EXTRACT_GRAPHS_ONLY")
    assert code == 0
    assert "only graphs: 1" in text
    assert "this is simulated" in text
    assert "PARALLEL_COMPILE||: Total graphs: 6" in text
    assert "PARALLEL_COMPILE||: Total failed compilations: 0" in text
    assert len(list(tmp_path.rglob("model.neff"))) == 6
    assert not list(tmp_path.rglob("*.lock"))


def test_a_command_of_one_word_is_for_a_shell(tmp_path: Path) -> None:
    """As Neuron's sample for EKS gives it, and the component for TorchX."""
    code, text = run(tmp_path, "echo only graphs: $NEURON_EXTRACT_GRAPHS_ONLY")
    assert (code, "only graphs: 1" in text, len(list(tmp_path.rglob("model.neff")))) == (0, True, 6)


def test_another_number_of_steps_has_the_same_graphs(tmp_path: Path) -> None:
    run(tmp_path, "echo", "--steps", "10")
    run(tmp_path, "echo", "--steps", "200")
    assert len(list(tmp_path.rglob("model.neff"))) == 6


def test_says_no_totals_where_nothing_is_left_to_compile(tmp_path: Path) -> None:
    """As the real tool: parallel_compile returns before its report where the trial run has extracted no graph."""
    run(tmp_path, "echo", "--steps", "10")
    code, text = run(tmp_path, "echo", "--steps", "200")
    assert code == 0
    assert "No todo hlos found in cache or hlo_tasklist" in text
    assert "Total" not in text


def test_a_failed_graph_stays_so_until_it_is_told_to_try_again(tmp_path: Path) -> None:
    run(tmp_path, "true", NEURON_CC_FLAGS="-O1", SIMULATED_FAILED_COMPILATIONS="2")
    code, text = run(tmp_path, "true", NEURON_CC_FLAGS="-O1")
    assert (code, "Got a cached failed neff at" in text, "No todo hlos" in text) == (0, True, True)
    code, text = run(tmp_path, "true", NEURON_CC_FLAGS="-O1 --retry_failed_compilation")
    assert (code, "Total graphs: 2" in text, "Total failed compilations: 0" in text) == (0, True, True)
    assert len(list(tmp_path.rglob("model.neff"))) == 6


def test_fails_with_the_command(tmp_path: Path) -> None:
    code, text = run(tmp_path, "sh", "-c", "exit 7")
    assert code == 7
    assert "failed compilations: 0" not in text


def test_fails_as_many_compilations_as_it_is_told_to(tmp_path: Path) -> None:
    code, text = run(tmp_path, "true", SIMULATED_FAILED_COMPILATIONS="2")
    assert code == 1
    assert "Total failed compilations: 2" in text


def test_collects_and_compiles_apart(tmp_path: Path) -> None:
    assert run(tmp_path, "--command", "collect", "true")[0] == 0
    assert not list(tmp_path.rglob("model.neff"))
    assert run(tmp_path, "--command", "compile", "true")[0] == 0
    assert len(list(tmp_path.rglob("model.neff"))) == 6
    assert run(tmp_path, "--command", "clean")[0] == 0
    assert not tmp_path.exists()


def test_a_stale_lock_holds_it_up_until_locks_are_cleared(tmp_path: Path) -> None:
    run(tmp_path, "--command", "collect", "true")
    (min(tmp_path.rglob("model.hlo_module.pb")).parent / "model.hlo_module.pb.lock").touch()
    command = [sys.executable, str(PROGRAM), "--command", "compile", "true"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, env={**os.environ, "NEURON_COMPILE_CACHE_URL": str(tmp_path)}, timeout=3, check=False)
    assert run(tmp_path, "--command", "clear-locks")[0] == 0
    assert run(tmp_path, "--command", "compile", "true")[0] == 0


def test_the_wheel_installs_it_as_a_program(tmp_path: Path) -> None:
    wheels.make(tmp_path)
    for path in tmp_path.glob("torch_neuronx-*.whl"):
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
            assert b"neuron_parallel_compile = torch_neuronx.neuron_parallel_compile:main" in wheel.read(name)
            assert wheel.read("torch_neuronx/neuron_parallel_compile.py") == PROGRAM.read_bytes()


@pytest.mark.parametrize(("given", "found"), [({}, "CPU"), ({"PJRT_DEVICE": "NEURON"}, "NEURON")])
def test_what_trains_beside_the_wheel_knows_that_it_is_for_cpus(
    tmp_path: Path, given: dict[str, str], found: str
) -> None:
    """Scripts refuse to train on the CPU of a node that has Neuron devices unless they are told to."""
    wheels.make(tmp_path)
    packages = tmp_path / "packages"
    with zipfile.ZipFile(next(tmp_path.glob("torch_neuronx-*.whl"))) as wheel:
        wheel.extractall(packages)
    code = f"import os, site; site.addsitedir({str(packages)!r}); print(os.environ['PJRT_DEVICE'])"
    environment = {name: value for name, value in os.environ.items() if name != "PJRT_DEVICE"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**environment, **given}, check=True, capture_output=True, text=True
    )
    assert ended.stdout == f"{found}\n"
