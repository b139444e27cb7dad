"""The scripts of a training job in a folder, and what stands in for torchrun and Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve

TEMPLATES = Path(__file__).parents[4] / "roles" / "training_job" / "templates"
ADDRESS = "127.0.0.1"
NODE = {"n 1": ADDRESS}

# What stands in for torchrun and Slurm: they show what they were given.
SHOW = f"""#!{sys.executable}
import json, os, sys, time
with open(os.environ["SHOWN"], "a") as file:
    print(json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], dict(os.environ)]), file=file)
"""
STUBS = {
    "torchrun": SHOW
    # The first so many times it stops in time, as a script that goes by TRAINIUM_STOP_AT.
    + """
if open(os.environ["SHOWN"]).read().count('["torchrun"') <= int(os.environ.get("STOPS", "0")):
    sys.exit("  exitcode  : 85 (pid: 12)")
print(os.environ.get('SAYS', ''), flush=True)
time.sleep(float(os.environ.get('SLEEPS', '0')))
sys.exit(int(os.environ.get('ENDS_WITH', '0')))
""",
    "python": SHOW,
    "scontrol": '#!/bin/bash\n[ $1 = show ] || echo "$@" >> "$SHOWN.slurm"\n'
    '[ "$2" != hostnames ] || echo "${NODES:-n 1}"\n'
    '[ "$2" != config ] || echo "SlurmdPort = $SLURMD_PORT"\n',
    "squeue": '#!/bin/bash\necho "${JOB_STATE:-RUNNING}"\n',
    "srun": """#!/bin/bash
echo "$*" >> "$SHOWN.srun"
while [ "${1#--}" != "$1" ]; do
  case $1 in --container-image=*) image=${1#*=} ;; --container-mounts=*) mounts=${1#*=} ;; esac
  shift
done
[ -z "${image:-}" ] || exec "${0%/*}/pyxis" "$image" "$mounts" "$@"
"$@" || exit
[ -z "${HANGS:-}" ] || exec sleep "$HANGS"
""",
    # The plugin: a task sees the folders that are mounted, the image's programs, and a /tmp of its own.
    "pyxis": """#!/bin/bash
[ "$(cat "$1")" = docker://example.com#a/b:1 ] || { echo "pyxis: no image $1" >&2; exit 1; }
export MOUNTS=$2 IMAGE=${0%/*/*/*}/image
shift 2
exec unshare --user --map-root-user --mount bash -ec '
mount -t tmpfs tmpfs /mnt
number=0
while read -r -d , mount; do
  [ "${mount%:*}" = "${mount#*:}" ]
  mkdir /mnt/$((number += 1))
  mount --bind "${mount%:*}" /mnt/$number
done <<< "$MOUNTS,"
mkdir /mnt/image
mount --bind "$IMAGE" /mnt/image
mount -t tmpfs tmpfs /tmp
number=0
while read -r -d , mount; do
  mkdir -p "${mount#*:}"
  mount --bind /mnt/$((number += 1)) "${mount#*:}"
done <<< "$MOUNTS,"
cd /tmp
PATH=/mnt/image:/usr/local/bin:/usr/bin:/bin exec "$@"' pyxis "$@"
""",
    "enroot": """#!/bin/bash
echo "$*" >> "$SHOWN.enroot"
[ -z "${REFUSES:-}" ] || exit 1
[ "$1 $2" = "import --output" ] && echo "$4" > "$3"
[ -z "${ENROOT_CONFIG_PATH:-}" ] || cat "$ENROOT_CONFIG_PATH/.credentials" >> "$SHOWN.enroot"
""",
    "systemctl": '#!/bin/bash\necho "${SYSTEM:-running}"\n',
    "ip": f"#!/bin/bash\necho '1: lo inet {ADDRESS}/8 scope host lo'\n",
    "neuron_parallel_compile": '#!/bin/bash\n[ "$1" = --command ] || exec "$@"\n'
    'echo "$* $NEURON_COMPILE_CACHE_URL" >> "$SHOWN.locks"\n',
    "sudo": '#!/bin/bash\necho "$*" >> "$SHOWN.sudo"\nexit "${SUDO:-1}"\n',
    # The folder in which programs ran is gone afterwards: what a value has left there is told before.
    "rm": '#!/bin/bash\nfind "${@: -1}" -name spoiled >> "$SHOWN.spoiled" 2> /dev/null\nexec /bin/rm "$@"\n',
}


class Job:
    """The files of a job, in a folder whose name has a space unless a container sees it, and bash to run them."""

    def __init__(
        self,
        folder: Path,
        definition: dict[str, Any],
        addresses: Mapping[str, str] | None = None,
        *,
        shared: bool = False,
        partition: str = "",
        port: int = 29500,
        usable: Sequence[str] = ("n 1",),
    ) -> None:
        venv = folder / "a venv"
        (venv / "bin").mkdir(parents=True)
        for name, text in STUBS.items():
            (venv / "bin" / name).write_text(text)
            (venv / "bin" / name).chmod(0o755)
        context = {
            "directory": str(folder / ("jobs" if definition.get("image") else "the jobs")),
            "venv_path": str(venv),
            "launcher": "slurm",
            "usable": list(usable),
            "known": len(usable),
            "checksums": {},
        }
        self.work = folder / "work"
        self.work.mkdir()
        self.shown = folder / "shown"
        own = {"preset": "none", "files": ["a.py"], "script": "a.py", "processes_per_node": 1}
        cache = {
            "directory": str(folder / ("cache" if definition.get("image") else "a cache")),
            **definition.get("cache", {}),
        }
        self.job = resolve({**own, **definition, "cache": cache}, {}, context)
        self.folder = Path(self.job["folder"])
        self.folder.mkdir(parents=True)
        variables = {
            "__training_job": self.job,
            "__training_job_efa": (TEMPLATES.parents[1] / "efa" / "files" / "environment.sh").read_text(),
            "__training_job_addresses": addresses or NODE,
            "training_job_venv_path": str(venv),
            "training_job_rendezvous_port": port,
            "training_job_slurm_path": str(venv / "bin"),
            "training_job_shared": shared,
            "__training_job_partition": partition,
        }
        for source, target, mode in (
            ("job.sh.j2", "job.sh", ""),
            ("restart.sh.j2", "restart.sh", ""),
            ("batch.j2", "train.batch", "train"),
            ("batch.j2", "compile.batch", "compile"),
        ):
            templar = Templar(loader=DataLoader(), variables={**variables, "__training_job_mode": mode})
            text = templar.template(trust_as_template((TEMPLATES / source).read_text()))
            (self.folder / target).write_text(text)
        (self.folder / "environment.json").write_text(json.dumps(self.job["env"]))

    def run(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(name, *arguments, **environment)
        output, errors = process.communicate()
        spoiled = self.shown.with_name("shown.spoiled")
        assert not spoiled.exists() or not spoiled.read_text()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start(self, name: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        variables = {
            "PATH": os.environ["PATH"],
            "SHOWN": str(self.shown),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_JOB_NODELIST": "x",
            "SLURM_NODEID": "0",
            "TRAINIUM_END_FILE": str(self.folder / "end"),
            **environment,
        }
        variables["PATH"] = f"{self.job_bin()}:{variables['PATH']}"
        return subprocess.Popen(
            ["bash", str(self.folder / name), *arguments],
            cwd=self.work,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def told(self, program: str) -> list[str]:
        """The words of each call of another stub, a line each."""
        told = self.shown.with_name(f"{self.shown.name}.{program}")
        return told.read_text().splitlines() if told.exists() else []

    def replace(self, old: str, new: str) -> None:
        """What the node's part reads or goes by, in place of what the machine has."""
        script = self.folder / "job.sh"
        text = script.read_text()
        assert old in text
        script.write_text(text.replace(old, new))

    def job_bin(self) -> str:
        return str(self.work.parent / "a venv" / "bin")

    def calls(self, name: str) -> list[Any]:
        """Arguments and environment of each call of a stub."""
        lines = self.shown.read_text().splitlines() if self.shown.exists() else []
        return [call[1:] for call in map(json.loads, lines) if call[0] == name]
