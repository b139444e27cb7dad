"""All that a node's part of a job gives to torchrun: the command, the variables, and what it says before."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.scripts.job_scripts import ADDRESS, Job

READER = Path(__file__).parents[4] / "plugins/module_utils/_hardware/neuron_ls.py"
TWO = {"n 1": ADDRESS, "n2": "127.0.0.2"}
# What bash itself sets, and what the test gives.
OF_BASH = {"PWD", "OLDPWD", "SHLVL", "_", "PATH", "SHOWN", "LC_CTYPE"}
PLAIN = "/usr/bin:/bin"
ON_NEURON = {
    "NEURON_RT_EXEC_TIMEOUT": "600",
    "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "0",
    "ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB": "512",
    "XLA_TRANSFER_SEED_ASYNC": "1",
    "MALLOC_ARENA_MAX": "64",
}


def with_neuron(job: Job, version: str = "2.9.0.2.13.26312") -> None:
    """The environment of the training has PyTorch for Neuron."""
    Path(job.job_bin()).parent.joinpath(f"lib/python3.12/site-packages/torch_neuronx-{version}.dist-info").mkdir(
        parents=True
    )


def variables(job: Job) -> dict[str, str]:
    """Those that the scripts have set for torchrun."""
    found: dict[str, str] = job.calls("torchrun")[-1][1]
    return {name: value for name, value in found.items() if name not in OF_BASH and not name.startswith("SLURM_JOB")}


def test_the_command_names_the_nodes_by_their_addresses(tmp_path: Path) -> None:
    job = Job(tmp_path, {"processes_per_node": 32, "args": {"steps": 7}, "reserved_port": 0}, TWO)
    done = job.run("job.sh", "train", NODES="n2\nn 1", SLURM_NODEID="1")
    assert done.returncode == 0, done.stderr
    assert job.calls("torchrun")[-1][0] == [
        *("--nnodes=2", "--node-rank=1", "--nproc-per-node=32", f"--local-addr={ADDRESS}", "--master-addr=127.0.0.2"),
        *("--master-port=29500", "--rdzv-conf=timeout=900", f"{job.folder}/a.py", "--steps", "7"),
    ]
    # The first node alone tells what the job has.
    assert "JOB" not in done.stdout


def test_the_first_node_says_what_the_job_has(tmp_path: Path) -> None:
    job = Job(tmp_path, {"processes_per_node": 32}, TWO)
    # The versions are those of the environment's own Python.
    (Path(job.job_bin()) / "python").unlink()
    (Path(job.job_bin()) / "python").symlink_to(sys.executable)
    lines = job.run("job.sh", "train", NODES="n 1\nn2").stdout.splitlines()
    assert "JOB nodes=2 processes=64" in lines
    versions = next(json.loads(line.removeprefix("JOB versions ")) for line in lines if line.startswith("JOB versions"))
    assert {"python", "kernel"} <= set(versions)


def test_the_variables_are_these_and_no_others(tmp_path: Path) -> None:
    job = Job(tmp_path, {"env": {"OWN": "1"}, "checkpoint": {"steps": 4, "keep": 2}, "time_limit": "UNLIMITED"})
    assert job.run("job.sh", "train", PATH=PLAIN).returncode == 0
    wanted = {
        **{f"{name}_SOCKET_IFNAME": "lo" for name in ("GLOO", "NCCL", "CCOM")},
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        "OWN": "1",
        "TRAINIUM_CHECKPOINT_STEPS": "4",
        "TRAINIUM_CHECKPOINT_KEEP": "2",
        "TRAINIUM_RESUME": "1",
        "SLURM_RESTART_COUNT": "0",
        "SLURM_NODEID": "0",
        "TRAINIUM_END_FILE": str(job.folder / "end"),
        "NEURON_COMPILE_CACHE_URL": job.job["cache"]["directory"],
    }
    assert variables(job) == wanted
    with_neuron(job)
    assert job.run("job.sh", "train", PATH=PLAIN).returncode == 0
    assert variables(job) == {**wanted, **ON_NEURON}


def test_what_is_set_already_stays(tmp_path: Path) -> None:
    job = Job(tmp_path, {"prepare": {"script": "a.py"}})
    with_neuron(job)
    own = dict.fromkeys(
        (*ON_NEURON, "OMP_NUM_THREADS", "PYTHONUNBUFFERED", "HF_HUB_OFFLINE", "SLURM_RESTART_COUNT"), "9"
    )
    assert job.run("job.sh", "train", **own).returncode == 0
    assert {name: variables(job)[name] for name in own} == own


def test_what_was_prepared_is_not_asked_of_hugging_face_again(tmp_path: Path) -> None:
    job = Job(tmp_path, {"prepare": {"script": "a.py"}})
    assert job.run("job.sh", "train").returncode == 0
    assert variables(job)["HF_HUB_OFFLINE"] == "1"


def test_programs_are_found_where_the_node_has_them(tmp_path: Path) -> None:
    """The environment's come first, those of Slurm and of AWS after all others."""
    job = Job(tmp_path, {})
    assert job.run("job.sh", "train", PATH=PLAIN).returncode == 0
    path = job.calls("torchrun")[-1][1]["PATH"]
    # The test has put its stand-ins in front.
    own = job.job_bin()
    assert path == f"{own}:{own}:{PLAIN}:{own}:/opt/aws/neuron/bin:/opt/amazon/efa/bin"


def test_a_script_that_writes_to_nobody_ends_by_the_signal(tmp_path: Path) -> None:
    """Python ignores SIGPIPE and SIGXFSZ, and what it starts would as well."""
    job = Job(tmp_path, {})
    stub = Path(job.job_bin()) / "torchrun"
    # An interpreter of Python ignores them again at its start, so a shell tells what it was given.
    stub.write_text("#!/bin/bash\ngrep SigIgn /proc/$$/status\n")
    done = job.run("job.sh", "train")
    ignored = next(int(line.split()[1], 16) for line in done.stdout.splitlines() if line.startswith("SigIgn"))
    assert not ignored & (1 << (signal.SIGPIPE - 1))
    assert not ignored & (1 << (signal.SIGXFSZ - 1))


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    (Path(job.job_bin()) / "torchrun").unlink()
    done = job.run("job.sh", "train")
    assert done.returncode == 127
    assert f"{job.job_bin()}/torchrun: No such file or directory" in done.stdout


@pytest.mark.parametrize(("version", "noted"), [("2.1.2.2.4.0", False), ("2.9.0.2.13.26312", True)])
def test_old_switches_for_bfloat16_are_named_where_they_are_deprecated(
    tmp_path: Path, version: str, noted: bool
) -> None:
    job = Job(tmp_path, {"env": {"XLA_USE_BF16": "1"}})
    with_neuron(job, version)
    done = job.run("job.sh", "train")
    assert done.returncode == 0
    assert ("JOB note: XLA_USE_BF16 and XLA_DOWNCAST_BF16 are deprecated in torch-xla 2.9.0;" in done.stdout) == noted


def test_a_node_without_an_interface_of_its_address_does_not_train(tmp_path: Path) -> None:
    job = Job(tmp_path, {}, {"n 1": "127.0.0.9"})
    done = job.run("job.sh", "train")
    assert done.returncode == 1
    assert "n 1 has no interface with its primary address 127.0.0.9" in done.stderr
    assert not job.calls("torchrun")


# --- what is done for the node before ---


def as_root(job: Job, works: bool = True) -> Path:
    """sudo writes down what it is asked, and works or does not."""
    asked = job.work.parent / "asked of root"
    sudo = Path(job.job_bin()) / "sudo"
    sudo.write_text(f'#!/bin/bash\necho "$*" >> "{asked}"\n{"exit 0" if works else "exit 1"}\n')
    return asked


def said_to(asked: Path) -> list[str]:
    return asked.read_text().splitlines() if asked.exists() else []


def kernel_with(job: Job, given: str, reserved: str) -> None:
    """The kernel gives ports of this range to anybody's connections, but those that are reserved."""
    folder = job.work.parent / "kernel"
    folder.mkdir()
    (folder / "ip_local_port_range").write_text(f"{given}\n")
    (folder / "ip_local_reserved_ports").write_text(f"{reserved}\n")
    script = job.folder / "job.sh"
    assert "/proc/sys/net/ipv4/" in script.read_text()
    script.write_text(script.read_text().replace("/proc/sys/net/ipv4/", f"'{folder}'/"))


RESERVE = "-n sysctl --quiet --write net.ipv4.ip_local_reserved_ports="


@pytest.mark.parametrize(
    ("given", "reserved", "asked"),
    [
        ("32768\t60999", "", []),
        ("29500\t60999", "", [f"{RESERVE}29500"]),
        ("1024\t29500", "", [f"{RESERVE}29500"]),
        ("1024\t29499", "", []),
        ("29501\t60999", "", []),
        ("1024\t60999", "80,443", [f"{RESERVE}80,443,29500"]),
        ("1024\t60999", "29500", []),
        ("1024\t60999", "80,29400-29500", []),
        ("1024\t60999", "29500-29600", []),
        ("1024\t60999", "29501-29600,29400-29499", [f"{RESERVE}29501-29600,29400-29499,29500"]),
    ],
)
def test_the_port_is_taken_from_those_that_anybody_gets(
    tmp_path: Path, given: str, reserved: str, asked: list[str]
) -> None:
    job = Job(tmp_path, {"reserved_port": 0})
    root = as_root(job)
    kernel_with(job, given, reserved)
    done = job.run("job.sh", "train")
    assert (done.returncode, said_to(root)) == (0, asked)
    assert "is not reserved" not in done.stdout


def test_a_port_that_nobody_may_reserve_is_noted(tmp_path: Path) -> None:
    job = Job(tmp_path, {"reserved_port": 48620})
    root = as_root(job, works=False)
    kernel_with(job, "32768 60999", "")
    done = job.run("job.sh", "train")
    assert (done.returncode, said_to(root)) == (0, [f"{RESERVE}48620"])
    assert "JOB note: port 48620 is not reserved on n 1 (net.ipv4.ip_local_reserved_ports)" in done.stdout


def loaded(job: Job, modules: str) -> None:
    """These modules of the kernel are loaded."""
    file = job.work.parent / "modules"
    file.write_text(modules)
    script = job.folder / "job.sh"
    assert "/proc/modules" in script.read_text()
    script.write_text(script.read_text().replace("/proc/modules", f"'{file}'"))


@pytest.mark.parametrize(
    ("modules", "asked"),
    [
        ("neuron 450560 0 - Live 0x0\n", ["-n rmmod neuron", "-n modprobe neuron"]),
        ("ext4 1 0 - Live 0x0\nneuron_other 1 0 - Live 0x0\n", []),
    ],
)
def test_the_driver_is_loaded_anew_where_that_is_wanted(tmp_path: Path, modules: str, asked: list[str]) -> None:
    job = Job(tmp_path, {"driver_reload": True, "reserved_port": 0})
    root = as_root(job)
    loaded(job, modules)
    assert job.run("job.sh", "train").returncode == 0
    assert said_to(root) == asked


def test_a_driver_that_is_in_use_ends_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path, {"driver_reload": True})
    as_root(job, works=False)
    loaded(job, "neuron 450560 3 - Live 0x0\n")
    done = job.run("job.sh", "train")
    assert done.returncode == 1
    assert "The Neuron driver of n 1 cannot be loaded anew" in done.stderr
    assert not job.calls("torchrun")


@pytest.mark.parametrize(("cleared", "works"), [(True, True), (True, False), (False, True)])
def test_locks_of_a_compiler_that_was_killed_go(tmp_path: Path, cleared: bool, works: bool) -> None:
    job = Job(tmp_path, {"cache": {"clear_locks": cleared}})
    asked = tmp_path / "asked of the compiler"
    stub = Path(job.job_bin()) / "neuron_parallel_compile"
    stub.write_text(f'#!/bin/bash\necho "$*" >> "{asked}"\nexit {0 if works else 1}\n')
    done = job.run("job.sh", "train")
    assert (done.returncode, said_to(asked)) == (0, ["--command clear-locks"] if cleared else [])
    assert ("JOB note: the locks in" in done.stdout) == (not works)


def test_the_number_of_processes_is_that_of_the_cores(tmp_path: Path) -> None:
    job = Job(tmp_path, {"processes_per_node": "auto"})
    (Path(job.job_bin()) / "neuron-ls").write_text('#!/bin/bash\necho "$*"\n')
    (Path(job.job_bin()) / "neuron-ls").chmod(0o755)
    (job.folder / ".neuron_ls.py").write_text("import sys\nprint(len(sys.stdin.read().strip()) * 8)\n")
    assert job.run("job.sh", "train").returncode == 0
    # It is asked for JSON.
    assert "--nproc-per-node=16" in job.calls("torchrun")[-1][0]


@pytest.mark.parametrize("refusal", ["exit 1", "echo usage; exit 0"])
def test_neuron_ls_is_asked_otherwise_where_its_answer_is_none(tmp_path: Path, refusal: str) -> None:
    job = Job(tmp_path, {"processes_per_node": "auto"})
    program = Path(job.job_bin()) / "neuron-ls"
    devices = json.dumps([{"neuron_device": number, "nc_count": 2} for number in range(2)])
    program.write_text(f"""#!/bin/bash
if [ "$*" = "--output-format json" ]; then echo '{devices}'; else {refusal}; fi
""")
    program.chmod(0o755)
    (job.folder / ".neuron_ls.py").write_text(READER.read_text(encoding="utf-8"), encoding="utf-8")
    done = job.run("job.sh", "train")
    assert done.returncode == 0, done.stderr
    assert "--nproc-per-node=4" in job.calls("torchrun")[-1][0]


def test_a_node_without_an_answer_says_so(tmp_path: Path) -> None:
    job = Job(tmp_path, {"processes_per_node": "auto"})
    (job.folder / ".neuron_ls.py").write_text(READER.read_text(encoding="utf-8"), encoding="utf-8")
    done = job.run("job.sh", "train")
    assert done.returncode != 0
    assert "NeuronCore" in done.stderr


@pytest.mark.parametrize(
    ("fi_info", "wanted"),
    [
        ("exit 0", {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}),
        ('[ "$1 $2" = "-p efa" ]', {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}),
        ("exit 1", {}),
    ],
)
@pytest.mark.parametrize(
    ("kernel", "libfabric", "more"),
    [
        ("5.15.0-1051-aws", "1.9.0", {}),
        ("5.10.0-33-cloud", "1.22.0amzn1", {"FI_EFA_FORK_SAFE": "1"}),
        ("5.4.0", "1.12.1", {"FI_EFA_FORK_SAFE": "1", "RDMAV_FORK_SAFE": "1"}),
    ],
)
def test_the_network_between_nodes_is_used_where_it_is(
    tmp_path: Path, fi_info: str, wanted: dict[str, Any], kernel: str, libfabric: str, more: dict[str, Any]
) -> None:
    job = Job(tmp_path, {})
    stubs = {
        "fi_info": f'[ "$1" = --version ] && echo "libfabric: {libfabric}" && exit\n{fi_info}',
        "uname": f'[ "$*" = -r ] && echo {kernel} || exec /bin/uname "$@"',
    }
    for name, text in stubs.items():
        (Path(job.job_bin()) / name).write_text(f"#!/bin/bash\n{text}\n")
        (Path(job.job_bin()) / name).chmod(0o755)
    assert job.run("job.sh", "train").returncode == 0
    found = {name: value for name, value in variables(job).items() if name.startswith(("FI_", "RDMAV"))}
    assert found == ({**wanted, **more} if wanted else {})


def test_what_lies_for_long_in_a_folder_of_the_job_is_not_cleaned_away(tmp_path: Path) -> None:
    """systemd-tmpfiles leaves alone what somebody has locked."""
    job = Job(tmp_path, {})
    stub = Path(job.job_bin()) / "torchrun"
    stub.write_text("#!/bin/bash\nflock --exclusive --nonblock .. true && echo free || echo locked\n")
    assert "locked" in job.run("job.sh", "train").stdout.splitlines()
