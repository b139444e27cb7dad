"""The tutorial's own BERT pretraining under our job script: compiled, trained, killed, resumed.

dp_bert_large_hf_pretrain_hdf5.py of aws-neuron-samples, unchanged: by the preset's commit and checksum, from the folder
that TRAINIUM_UPSTREAM names, or from GitHub. It runs on PJRT's CPU device of the real torch_xla, with a small model and
generated shards. Stand-ins take the place of neuron_parallel_compile and libneuronxla. One process: PJRT's CPU device
has no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

from tests.training.conftest import REPOSITORY, Run, signal_all, watch

ROLE = REPOSITORY / "roles" / "training_job"
NODE, ADDRESS, PORT = "node-1", "127.0.0.1", 29517
STEPS, SHARDS = 10, 13
LAST_DIGIT = 1.5e-4
RATES = re.compile(r"^LOG .* - \(\d+, (\d+)\) step_loss : \S+ learning_rate : (\S+) ", re.MULTILINE)


def fetch(entry: dict[str, str], target: Path) -> None:
    """One file of the preset, if it is what the preset says."""
    given = os.environ.get("TRAINIUM_UPSTREAM")
    if given:
        content = (Path(given) / Path(entry["url"]).name).read_bytes()
    else:
        with urllib.request.urlopen(entry["url"], timeout=60) as answer:  # noqa: S310  # https
            content = answer.read()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == entry["checksum"], entry["url"]
    target.write_bytes(content)


class Job:
    """The preset bert-large-phase1 on one node without Slurm, in a folder as the role writes it."""

    def __init__(self, folder: Path, python: Path, prepared: Path) -> None:
        definition: dict[str, Any] = {
            "preset": "bert-large-phase1",
            "processes_per_node": 1,
            "args": {
                "data_dir": str(prepared / "shards"),
                "batch_size": 8,
                "grad_accum_usteps": 1,
                "max_pred_len": 5,
                "steps_this_run": STEPS,
                "max_steps": 2 * STEPS,
                "warmup_steps": 3,
                "lr": "5e-3",
                "enable_fp32": True,
                "disable_dropout": True,
            },
            "compile": {"steps": 2},
            "env": {
                "PJRT_DEVICE": "CPU",
                "HF_HOME": str(prepared / "hf"),
                "HF_HUB_OFFLINE": "1",
                # The script asks the instance for its type; without a proxy that answers it goes on at once.
                "http_proxy": "http://127.0.0.1:9",
            },
            "cache": {"directory": str(folder / "cache")},
        }
        context = {
            "directory": str(folder),
            "venv_path": str(python.parents[1]),
            "launcher": "torchrun",
            "usable": [NODE],
            "known": 1,
            "checksums": {},
        }
        self.job = resolve(definition, PRESETS, context)
        self.folder, self.output = Path(self.job["folder"]), folder / "output" / "bert-large-phase1"
        self.folder.mkdir(parents=True)
        for entry in self.job["fetch"]:
            fetch(entry, self.folder / entry["dest"])
        for name in self.job["files"]:
            shutil.copy(ROLE / "files" / name, self.folder / Path(name).name)
        variables = {
            "__training_job": self.job,
            "__training_job_efa": (REPOSITORY / "roles/efa/files/environment.sh").read_text(encoding="utf-8"),
            "__training_job_addresses": {NODE: ADDRESS},
            "training_job_venv_path": context["venv_path"],
            "training_job_rendezvous_port": PORT,
            "training_job_slurm_path": "/nowhere",
            "training_job_shared": False,
        }
        templar = Templar(loader=DataLoader(), variables=variables)
        for name in ("job.sh", "restart.sh"):
            text = templar.template(trust_as_template((ROLE / "templates" / f"{name}.j2").read_text(encoding="utf-8")))
            (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / "environment.json").write_text(json.dumps(self.job["env"]), encoding="utf-8")
        self.started: list[subprocess.Popen[str]] = []

    def run(self, mode: str, until: str = "", **variables: str) -> Run:
        """As the node's unit starts it; killed as soon as it has written ``until``."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TRAINIUM_"))}
        process = subprocess.Popen(
            ["bash", str(self.folder / "job.sh"), mode],
            env={**clean, "TRAINIUM_NODE_RANK": "0", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        text = watch(process, until, signal.SIGKILL if until else None, process.pid, False)
        return Run(abs(process.returncode), text)

    def checkpoints(self) -> list[str]:
        return sorted(path.name for path in self.output.glob("*.pt"))


@pytest.fixture(scope="module")
def prepared(upstream_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    (model,) = PRESETS["bert-large-phase1"]["prepare"]["args"]["model"]
    name, commit = model.split("@")
    assert name == "bert-large-uncased"
    command = [str(upstream_python), str(Path(__file__).with_name("prepare.py")), str(folder), str(SHARDS), commit]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def jobs(upstream_python: Path, prepared: Path, tmp_path: Path) -> Iterator[tuple[Job, Job]]:
    both = Job(tmp_path / "whole", upstream_python, prepared), Job(tmp_path / "killed", upstream_python, prepared)
    yield both
    for process in (process for job in both for process in job.started):
        if process.poll() is None:
            signal_all(process.pid, signal.SIGKILL)
            process.wait(timeout=30)


def test_compiled_trained_killed_and_resumed(jobs: tuple[Job, Job]) -> None:
    whole, killed = jobs
    compiled = whole.run("compile")
    assert compiled.code == 0, compiled.text[-5000:]
    assert "||NEURON_PARALLEL_COMPILE||: Total failed compilations: 0" in compiled.text
    # A trial run's losses are no result.
    assert (compiled.losses, whole.checkpoints()) == ({}, [])
    # As for a job that differs in what no graph has.
    again = whole.run("compile")
    assert again.code == 0, again.text[-5000:]
    assert "No todo hlos found in cache" in again.text

    undisturbed = whole.run("train")
    assert undisturbed.code == 0, undisturbed.text[-5000:]
    assert list(undisturbed.losses) == list(range(1, STEPS + 1))
    assert undisturbed.losses[STEPS] < undisturbed.losses[1] - 0.05
    assert whole.checkpoints() == [f"ckpt_{step}.pt" for step in (STEPS, STEPS - 2, STEPS - 1)]

    first = killed.run("train", until="(0, 6)")
    assert first.code != 0
    assert max(first.losses) < STEPS
    rest = killed.run("train", SLURM_RESTART_COUNT="1")
    assert rest.code == 0, rest.text[-5000:]
    begun = re.search(r"^Worker 0 resuming from checkpoint .*/ckpt_(\d+)\.pt at step (\d+)$", rest.text, re.MULTILINE)
    assert begun, rest.text[-5000:]
    assert begun[1] == begun[2]
    assert list(rest.losses) == list(range(int(begun[1]) + 1, STEPS + 1))
    assert {**first.losses, **rest.losses} == pytest.approx(undisturbed.losses, abs=LAST_DIGIT)
    rates = dict(RATES.findall(undisturbed.text))
    assert {**dict(RATES.findall(first.text)), **dict(RATES.findall(rest.text))} == rates
