"""The scripts of a training job as bash runs them: every value reaches the script as it was written, whatever it is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve

TEMPLATES = Path(__file__).parents[3] / "roles" / "training_job" / "templates"
ADDRESS = "127.0.0.1"
LONG = "x'\"$(id)\n" * 1250

# What stands in for torchrun and Slurm: they show what they were given.
SHOW = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["SHOWN"], "a") as file:
    print(json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], dict(os.environ)]), file=file)
"""
STUBS = {
    "torchrun": SHOW
    + "print(os.environ.get('SAYS', ''), flush=True)\nsys.exit(int(os.environ.get('ENDS_WITH', '0')))\n",
    "python": SHOW,
    "scontrol": '#!/bin/bash\n[ $1 = show ] || echo "$@" >> "$SHOWN.slurm"\n[ "$2" != hostnames ] || echo \'n 1\'\n'
    '[ "$2" != config ] || echo "SlurmdPort = $SLURMD_PORT"\n',
    "squeue": '#!/bin/bash\necho "${JOB_STATE:-RUNNING}"\n',
    "srun": '#!/bin/bash\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n',
    "ip": f"#!/bin/bash\necho '1: lo inet {ADDRESS}/8 scope host lo'\n",
    "neuron_parallel_compile": '#!/bin/bash\n[ "$1" = --command ] || exec "$@"\n',
    "sudo": "#!/bin/bash\nexit 1\n",
}


class Job:
    """The files of a job in a folder whose name has a space, and bash to run them."""

    def __init__(self, folder: Path, definition: dict[str, Any]) -> None:
        venv = folder / "a venv"
        (venv / "bin").mkdir(parents=True)
        for name, text in STUBS.items():
            (venv / "bin" / name).write_text(text)
            (venv / "bin" / name).chmod(0o755)
        context = {
            "directory": str(folder / "the jobs"),
            "venv_path": str(venv),
            "launcher": "slurm",
            "usable": ["n 1"],
            "known": 1,
            "checksums": {},
        }
        self.work = folder / "work"
        self.work.mkdir()
        self.shown = folder / "shown"
        own = {"preset": "none", "files": ["a.py"], "script": "a.py", "processes_per_node": 1}
        cache = {"directory": str(folder / "a cache"), **definition.get("cache", {})}
        self.job = resolve({**own, **definition, "cache": cache}, {}, context)
        self.folder = Path(self.job["folder"])
        self.folder.mkdir(parents=True)
        variables = {
            "__training_job": self.job,
            "__training_job_efa": (TEMPLATES.parents[1] / "efa" / "files" / "environment.sh").read_text(),
            "__training_job_addresses": {"n 1": ADDRESS},
            "training_job_venv_path": str(venv),
            "training_job_rendezvous_port": 29500,
            "training_job_slurm_path": str(venv / "bin"),
            "training_job_shared": False,
            "training_job_partition": "",
        }
        for source, target, mode in (
            ("job.sh.j2", "job.sh", ""),
            ("unit.sh.j2", "unit.sh", ""),
            ("batch.j2", "train.batch", "train"),
            ("batch.j2", "compile.batch", "compile"),
        ):
            templar = Templar(loader=DataLoader(), variables={**variables, "__training_job_mode": mode})
            text = templar.template(trust_as_template((TEMPLATES / source).read_text()))
            (self.folder / target).write_text(text)
        (self.folder / "environment.json").write_text(json.dumps(self.job["env"]))

    def run(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": os.environ["PATH"],
            "SHOWN": str(self.shown),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_JOB_NODELIST": "x",
            "SLURM_NODEID": "0",
            "TRAINIUM_END_FILE": str(self.folder / "end"),
            **environment,
        }
        variables["PATH"] = f"{self.job_bin()}:{variables['PATH']}"
        return subprocess.run(
            ["bash", str(self.folder / name), *arguments],
            cwd=self.work,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def job_bin(self) -> str:
        return str(self.work.parent / "a venv" / "bin")

    def calls(self, name: str) -> list[Any]:
        """Arguments and environment of each call of a stub."""
        lines = self.shown.read_text().splitlines() if self.shown.exists() else []
        return [call[1:] for call in map(json.loads, lines) if call[0] == name]


HOSTILE: dict[str, Any] = {
    "space": "two words",
    "ends with a space": "x ",
    "single quote": "it's",
    "double quotes": 'say "no"',
    "both quotes": """'"'"'""",
    "substitution": "$(touch spoiled)",
    "backticks": "`touch spoiled`",
    "variable": "$HOME ${PATH} $1 $$",
    "semicolon": "x; touch spoiled",
    "and": "x && touch spoiled &",
    "redirection": "> spoiled < /etc/passwd",
    "newlines": "one\ntouch spoiled\n",
    "carriage return": "one\r\ntwo\ttab",
    "glob": "* ? [a-z] {a,b} ~",
    "backslashes": "\\n \\$(id) \\",
    "history and comment": "!x #y",
    "option": "--steps=5",
    "unicode": "Grüße 漢字 🚂 \u202e \u00a0",
    "empty": "",
    "ten thousand characters": LONG,
    "jinja": "{{ 7 * 7 }} {% if true %}x{% endif %} {# y #}",
    "percent": "%j %% %n",
    "control characters": "\x01\x1b[31m\x7f",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_value_reaches_the_script_as_it_was_written(tmp_path: Path, text: str) -> None:
    definition = {
        "args": {"text": text, "several": [text, "b"]},
        "env": {"TEXT": text},
        "prepare": {"script": "a.py", "args": {"text": text}},
        "compile": {"enabled": True, "args": {"more": text}},
    }
    job = Job(tmp_path, definition)
    for mode, more in (("train", []), ("compile", ["--steps_this_run", "10", "--more", text])):
        done = job.run("job.sh", mode, SAYS="Total failed compilations: 0")
        assert done.returncode == 0, done.stderr
        argv, environment = job.calls("torchrun")[-1]
        script = argv.index(f"{job.folder}/a.py")
        assert argv[script + 1 :] == ["--text", text, "--several", text, "b", *more]
        assert environment["TEXT"] == text
        assert "--node-rank=0" in argv
        assert f"--master-addr={ADDRESS}" in argv
    prepared = [call[0] for call in job.calls("python") if call[0][0].endswith("a.py")]
    assert prepared == [[f"{job.folder}/a.py", "--text", text]] * 2
    assert not list(tmp_path.rglob("spoiled"))
    assert not Path("/tmp/spoiled").exists()  # noqa: S108  # where the script runs


@pytest.mark.parametrize(
    "name", ["a b.py", "it's.py", 'a".py', "$(touch spoiled).py", "`id`.py", "a;b.py", "漢.py", "*.py"]
)
def test_a_file_of_any_name_is_started_or_refused(tmp_path: Path, name: str) -> None:
    job = Job(tmp_path, {"files": [f"x/{name}"], "script": name})
    assert job.run("job.sh", "train").returncode == 0
    assert job.calls("torchrun")[-1][0][-1] == f"{job.folder}/{name}"
    assert not list(tmp_path.rglob("spoiled"))


def test_the_command_that_compiles_is_quoted_as_well(tmp_path: Path) -> None:
    command = ["env", "MORE=a b $(touch spoiled)", "neuron_parallel_compile"]
    job = Job(tmp_path, {"compile": {"enabled": True, "command": command, "success": "fine: '[0-9]+' \\(x\\)"}})
    done = job.run("job.sh", "compile", SAYS="fine: '12' (x)")
    assert done.returncode == 0, done.stdout
    assert job.calls("torchrun")[-1][1]["MORE"] == "a b $(touch spoiled)"


@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"SAYS": "||PARALLEL_COMPILE||: Total failed compilations: 0"}, 0, ""),
        ({"SAYS": "||PARALLEL_COMPILE||: Total failed compilations: 3"}, 1, "said nothing like"),
        ({"SAYS": "Total failed compilations: 0", "ENDS_WITH": "4"}, 4, "ended with code 4"),
    ],
)
def test_compiling_is_checked_by_its_line_and_its_code(
    tmp_path: Path, environment: dict[str, str], code: int, said: str
) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}, "requeue": False})
    done = job.run("compile.batch", **environment)
    assert (done.returncode, said in done.stdout) == (code, True)
    assert (job.folder / "end").read_text() == f"7 {code}\n"


def test_what_any_script_may_go_by(tmp_path: Path) -> None:
    job = Job(tmp_path, {"checkpoint": {"steps": 5}, "time_limit": "10", "stop_before": 60})
    assert job.run("job.sh", "train", TRAINIUM_JOB_STARTED="4000000000").returncode == 0
    environment = job.calls("torchrun")[-1][1]
    wanted = {"CHECKPOINT_STEPS": "5", "CHECKPOINT_KEEP": "3", "RESUME": "1", "STOP_AT": str(4000000000 + 600 - 60)}
    assert {name: environment[f"TRAINIUM_{name}"] for name in wanted} == wanted
    assert job.run("job.sh", "compile", SAYS="Total failed compilations: 0").returncode == 0
    compiling = job.calls("torchrun")[-1][1]
    assert (compiling["TRAINIUM_CHECKPOINT_STEPS"], compiling["TRAINIUM_RESUME"]) == ("0", "0")
    assert environment["NEURON_COMPILE_CACHE_URL"] == job.job["cache"]["directory"]
    assert Path(job.job["cache"]["directory"]).is_dir()


def test_the_end_of_a_capacity_block_counts_where_it_is_earlier(tmp_path: Path) -> None:
    job = Job(tmp_path, {"ends_at": "2096-10-02T07:06:40Z", "time_limit": "UNLIMITED"})
    assert job.run("job.sh", "train").returncode == 0
    assert job.calls("torchrun")[-1][1]["TRAINIUM_STOP_AT"] == str(4000000000 - 120)
    shutil.rmtree(tmp_path / "a venv")
    shutil.rmtree(tmp_path / "work")
    over = Job(tmp_path, {"ends_at": "2020-01-01T00:00:00Z"})
    done = over.run("job.sh", "train")
    assert done.returncode == 1
    assert "see ends_at" in done.stderr


@pytest.mark.parametrize(("requeue", "code", "requeued"), [(True, 0, "requeue 7\n"), (False, 85, "")])
def test_a_script_that_stopped_in_time_is_put_back(tmp_path: Path, requeue: bool, code: int, requeued: str) -> None:
    job = Job(tmp_path, {"requeue": requeue})
    done = job.run("train.batch", SAYS="  exitcode  : 85 (pid: 12)", ENDS_WITH="1")
    assert done.returncode == code
    asked = Path(f"{job.shown}.slurm")
    assert (asked.read_text() if asked.exists() else "") == requeued


def test_a_cancelled_job_is_not_put_back(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    done = job.run("train.batch", SAYS="  exitcode  : 85 (pid: 12)", ENDS_WITH="1", JOB_STATE="COMPLETING")
    assert done.returncode == 85
    assert not Path(f"{job.shown}.slurm").exists()


@pytest.mark.parametrize("answers", [True, False])
def test_a_failure_is_put_back_only_where_a_node_is_gone(tmp_path: Path, answers: bool) -> None:
    job = Job(tmp_path, {})
    with socket.socket() as slurmd:
        slurmd.bind((ADDRESS, 0))
        if answers:
            slurmd.listen()
        done = job.run("train.batch", ENDS_WITH="3", SLURMD_PORT=str(slurmd.getsockname()[1]))
    assert done.returncode == (3 if answers else 0)
    assert ("starts again without n 1, which does not answer" in done.stdout) != answers
    assert Path(f"{job.shown}.slurm").exists() != answers


def test_an_old_cache_is_pruned(tmp_path: Path) -> None:
    job = Job(tmp_path, {"cache": {"keep_days": 30}})
    cache = Path(job.job["cache"]["directory"]) / "neuronxcc-2.26"
    for name in ("MODULE_old", "MODULE_new", "other"):
        (cache / name).mkdir(parents=True)
    for name in ("MODULE_old", "other"):
        os.utime(cache / name, (1, 1))
    assert job.run("job.sh", "train").returncode == 0
    assert sorted(path.name for path in cache.iterdir()) == ["MODULE_new", "other"]


def test_without_slurm_a_record_says_how_it_ended(tmp_path: Path) -> None:
    job = Job(tmp_path, {"time_limit": "10"})
    environment = {"SLURM_JOB_ID": "", "TRAINIUM_NODE_RANK": "0"}
    assert job.run("unit.sh", ENDS_WITH="3", **environment).returncode == 3
    record = json.loads((job.folder / "node.0.json").read_text())
    assert (record["exit_code"], record["phase"], record["digest"]) == (3, "train", job.job["digest"])
