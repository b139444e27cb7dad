"""What a training job tells Slurm, torchrun and the libraries: each argument, each variable and each directive."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.scripts.job_scripts import ADDRESS, Job

ROOT = Path(__file__).parents[4]
# The second of three nodes, the one on which the scripts of these tests run.
NODES = {"n1": "192.0.2.1", "n2": ADDRESS, "n3": "192.0.2.3"}
SECOND = {"NODES": "n1\nn2\nn3", "SLURM_NODEID": "1"}
NETWORK = {f"{library}_SOCKET_IFNAME": "lo" for library in ("GLOO", "NCCL", "CCOM")}
ALWAYS = {**NETWORK, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}
OF_NEURON = {
    "NEURON_RT_EXEC_TIMEOUT": "600",
    "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "0",
    "ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB": "512",
    "XLA_TRANSFER_SEED_ASYNC": "1",
    "MALLOC_ARENA_MAX": "64",
}
OFFLINE = {"HF_HUB_OFFLINE": "1"}


def install_neuron(job: Job, version: str = "2.9.0.2.13.26312") -> None:
    """PyTorch for Neuron, as far as the script looks at it."""
    site = Path(job.job_bin()).parent / "lib/python3.12/site-packages"
    (site / f"torch_neuronx-{version}.dist-info").mkdir(parents=True)


def program(job: Job, name: str, text: str) -> None:
    path = Path(job.job_bin()) / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("port", [29500, 31234])
def test_what_torchrun_is_told(tmp_path: Path, port: int) -> None:
    job = Job(tmp_path, {"processes_per_node": 4, "args": {"lr": 1}}, NODES, port=port)
    assert job.run("job.sh", "train", **SECOND).returncode == 0
    ((argv, environment),) = job.calls("torchrun")
    assert argv == [
        *("--nnodes=3", "--node-rank=1", "--nproc-per-node=4", f"--local-addr={ADDRESS}", "--master-addr=192.0.2.1"),
        *(f"--master-port={port}", "--rdzv-conf=timeout=900", f"{job.folder}/a.py", "--lr", "1"),
    ]
    assert environment["NEURON_COMPILE_CACHE_URL"] == job.job["cache"]["directory"]
    assert environment["PATH"].endswith(f":{job.job_bin()}:/opt/aws/neuron/bin:/opt/amazon/efa/bin")


@pytest.mark.parametrize("neuron", [True, False])
@pytest.mark.parametrize("prepare", [True, False])
def test_what_the_libraries_are_told(tmp_path: Path, neuron: bool, prepare: bool) -> None:
    job = Job(tmp_path, {"prepare": {"script": "a.py"}} if prepare else {})
    if neuron:
        install_neuron(job)
    assert job.run("job.sh", "train").returncode == 0
    environment = job.calls("torchrun")[-1][1]
    every = {**ALWAYS, **OF_NEURON, **OFFLINE}
    wanted = {**ALWAYS, **(OF_NEURON if neuron else {}), **(OFFLINE if prepare else {})}
    assert {name: environment[name] for name in every if name in environment} == wanted


def test_what_the_node_or_the_job_sets_stays(tmp_path: Path) -> None:
    job = Job(tmp_path, {"prepare": {"script": "a.py"}, "env": {"TOKENIZERS_PARALLELISM": "true"}})
    install_neuron(job)
    others = {name: "7" for name in {**ALWAYS, **OF_NEURON, **OFFLINE} if name not in NETWORK}
    assert job.run("job.sh", "train", **{**others, **dict.fromkeys(NETWORK, "other")}).returncode == 0
    environment = job.calls("torchrun")[-1][1]
    wanted = {**others, **NETWORK, "TOKENIZERS_PARALLELISM": "true"}
    assert {name: environment[name] for name in wanted} == wanted


def test_efa_is_chosen_where_the_node_has_it(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    program(job, "fi_info", "true")
    program(job, "uname", "echo 6.8.0")
    job.run("job.sh", "train")
    environment = job.calls("torchrun")[-1][1]
    assert {name: value for name, value in environment.items() if name.startswith(("FI_", "RDMAV_"))} == {
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
    }


@pytest.mark.parametrize(("given", "seen"), [({}, "0"), ({"SLURM_RESTART_COUNT": "3"}, "3")])
def test_a_script_learns_how_often_its_job_was_put_back(tmp_path: Path, given: dict[str, str], seen: str) -> None:
    job = Job(tmp_path, {})
    assert job.run("job.sh", "train", **given).returncode == 0
    assert job.calls("torchrun")[-1][1]["SLURM_RESTART_COUNT"] == seen


@pytest.mark.parametrize("option", ["-j", "--output-format json"])
@pytest.mark.parametrize(("cores", "processes"), [([2], 2), ([2] * 16, 32), ([8] * 4, 32)])
def test_as_many_processes_as_the_node_has_cores(tmp_path: Path, cores: list[int], processes: int, option: str) -> None:
    job = Job(tmp_path, {"processes_per_node": "auto"})
    shutil.copy(ROOT / "plugins/module_utils/_hardware/neuron_ls.py", job.folder / ".neuron_ls.py")
    devices = ",".join(f'{{"nc_count": {count}}}' for count in cores)
    program(job, "neuron-ls", f"[ \"$*\" = '{option}' ] && echo '[{devices}]'")
    done = job.run("job.sh", "train")
    assert f"--nproc-per-node={processes}" in job.calls("torchrun")[-1][0]
    assert f"JOB nodes=1 processes={processes}\n" in done.stdout


def test_a_node_without_its_devices_does_not_train(tmp_path: Path) -> None:
    job = Job(tmp_path, {"processes_per_node": "auto"})
    shutil.copy(ROOT / "plugins/module_utils/_hardware/neuron_ls.py", job.folder / ".neuron_ls.py")
    program(job, "neuron-ls", "exit 1")
    done = job.run("job.sh", "train")
    assert (done.returncode, job.calls("torchrun")) == (1, [])
    assert "neuron-ls shows no NeuronCore on this node" in done.stderr


def test_a_node_at_another_address_does_not_train(tmp_path: Path) -> None:
    """The job was written for addresses that the nodes have no longer."""
    job = Job(tmp_path, {}, {"n1": "192.0.2.1", "n2": "192.0.2.2"})
    done = job.run("job.sh", "train", NODES="n1\nn2", SLURM_NODEID="1")
    assert (done.returncode, job.calls("torchrun")) == (1, [])
    assert "n2 has no interface with its primary address 192.0.2.2" in done.stderr


@pytest.mark.parametrize(("mode", "said"), [("train", ""), ("compile", "Total failed compilations: 0")])
@pytest.mark.parametrize("code", [5, 127])
def test_the_code_of_the_script_is_the_code_of_the_node(tmp_path: Path, mode: str, said: str, code: int) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}})
    assert job.run("job.sh", mode, ENDS_WITH=str(code), SAYS=said).returncode == code


@pytest.mark.parametrize(
    ("port", "reserved", "wanted"),
    [
        (40000, "", "40000"),
        (40000, "35000,41000-41010", "35000,41000-41010,40000"),
        # It is reserved already, or the kernel gives no such port to anybody.
        (40000, "35000,40000", None),
        (40000, "39990-40010", None),
        (29500, "", None),
        (61000, "", None),
    ],
)
def test_the_port_of_the_rendezvous_is_kept_from_others(
    tmp_path: Path, port: int, reserved: str, wanted: str | None
) -> None:
    job = Job(tmp_path, {"reserved_port": 0}, port=port)
    with_ports(job, reserved)
    done = job.run("job.sh", "train", SUDO="0")
    assert done.returncode == 0
    assert job.told("sudo") == ([f"-n sysctl --quiet --write {RESERVED}={wanted}"] if wanted else [])
    assert "is not reserved" not in done.stdout


RESERVED = "net.ipv4.ip_local_reserved_ports"


def with_ports(job: Job, reserved: str) -> None:
    for name, text in (("ip_local_port_range", "32768\t60999\n"), ("ip_local_reserved_ports", f"{reserved}\n")):
        (job.work.parent / name).write_text(text)
        job.replace(f"/proc/sys/net/ipv4/{name}", f"'{job.work.parent / name}'")


def test_the_port_that_the_job_names_is_kept_as_well_and_a_refusal_is_told(tmp_path: Path) -> None:
    job = Job(tmp_path, {"reserved_port": 48620})
    with_ports(job, "")
    done = job.run("job.sh", "train")
    assert done.returncode == 0
    assert job.told("sudo") == [f"-n sysctl --quiet --write {RESERVED}=48620"]
    assert f"JOB note: port 48620 is not reserved on n 1 ({RESERVED}), and only root can do that.\n" in done.stdout


@pytest.mark.parametrize("works", [True, False])
def test_the_driver_is_loaded_anew_where_that_is_wanted(tmp_path: Path, works: bool) -> None:
    job = Job(tmp_path, {"driver_reload": True, "reserved_port": 0})
    (tmp_path / "modules").write_text("other 1 0 - Live 0x0\nneuron 1 0 - Live 0x0\n")
    job.replace("/proc/modules", f"'{tmp_path / 'modules'}'")
    done = job.run("job.sh", "train", SUDO="0" if works else "1")
    assert (done.returncode, len(job.calls("torchrun"))) == ((0, 1) if works else (1, 0))
    assert job.told("sudo") == ["-n rmmod neuron", "-n modprobe neuron"][: 1 + works]
    assert ("The Neuron driver of n 1 cannot be loaded anew" in done.stderr) != works


@pytest.mark.parametrize("clear", [True, False])
def test_locks_of_a_compiler_that_was_killed_are_cleared(tmp_path: Path, clear: bool) -> None:
    job = Job(tmp_path, {"cache": {"clear_locks": clear}})
    job.run("job.sh", "train")
    assert job.told("locks") == ([f"--command clear-locks {job.job['cache']['directory']}"] if clear else [])


@pytest.mark.parametrize(("version", "noted"), [("2.9.0.2.13.26312", True), ("2.1.2.2.4.0", False), ("", False)])
def test_a_variable_that_is_deprecated_is_noted(tmp_path: Path, version: str, noted: bool) -> None:
    job = Job(tmp_path, {"env": {"XLA_USE_BF16": "1"}})
    if version:
        install_neuron(job, version)
    done = job.run("job.sh", "train")
    assert ("XLA_DOWNCAST_BF16 are deprecated in torch-xla 2.9.0;" in done.stdout) == noted


def directives(job: Job, mode: str) -> set[str]:
    lines = (job.folder / f"{mode}.batch").read_text().splitlines()
    # Slurm reads none after the first command.
    end = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in lines[end:])
    return {line.partition("--")[2] for line in lines[:end] if line.startswith("#SBATCH")}


@pytest.mark.parametrize("requeue", [True, False])
def test_what_slurm_is_told_of_a_job(tmp_path: Path, requeue: bool) -> None:
    limits: dict[str, Any] = {"time_limit": "2:00:00", "compile": {"enabled": True, "time_limit": "30"}}
    counts = {"nodes": 3, "min_nodes": 2}
    definition = {"name": "bert", "requeue": requeue, **counts, **limits}
    job = Job(tmp_path, definition, partition="trn1,other", usable=["n1", "n2", "n3"])
    same = {'job-name="bert"', 'partition="trn1,other"', 'nodes="2-3"', 'open-mode="append"', 'chdir="/tmp"'}
    same |= {"exclusive", "requeue" if requeue else "no-requeue"}
    for mode, time, log in (("train", "2:00:00", "log"), ("compile", "30", "compile_log")):
        assert directives(job, mode) == same | {f'time="{time}"', f'output="{job.job[log]}"'}


def test_a_part_of_the_job_runs_once_on_each_node_and_ends_with_the_others(tmp_path: Path) -> None:
    """A step that waits for a node which has failed would keep all nodes until its time is over."""
    job = Job(tmp_path, {"compile": {"enabled": True}})
    job.run("train.batch", SLURM_JOB_NUM_NODES="3", SAYS="Total failed compilations: 0")
    step = f"--nodes=3 --ntasks=3 --ntasks-per-node=1 --kill-on-bad-exit=1 bash {job.folder}/job.sh"
    assert job.told("srun") == [f"{step} {mode}" for mode in ("cold", "compile", "train")]


def test_no_task_is_without_a_limit_where_there_is_no_slurm(tmp_path: Path) -> None:
    job = Job(tmp_path, {"time_limit": "10"})
    script = job.folder / "restart.sh"
    assert "timeout --kill-after=30 600 bash" in script.read_text()
    script.write_text(script.read_text().replace("timeout --kill-after=30 600", "timeout --kill-after=30 1"))
    done = job.run("restart.sh", "unit", SLEEPS="30", SLURM_JOB_ID="", TRAINIUM_NODE_RANK="0")
    assert done.returncode == 124
    assert "The time limit of 600 s is over." in (job.folder / "train.log").read_text()
