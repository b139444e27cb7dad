"""What a user of the sandbox needs beside the playbooks: an ssh key, an inventory and a few environment variables."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from sandbox import standins
from sandbox.account import api
from sandbox.account import environment as account
from sandbox.kubernetes import registry
from sandbox.mirror import apt, wheels
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import Podman


def variables(paths: Paths) -> str:
    """The inventory's variables: mirrors, the ssh key, and what a container's kernel cannot do."""
    requirements = [
        line.strip()
        for line in wheels.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    packages = "".join(f"  - {requirement}\n" for requirement in requirements)
    site = f"http://{apt.NAME}:{apt.PORT}"
    fingerprints = standins.fingerprints(paths)
    return f"""\
---
# Written by 'python -m sandbox up'. An air-gapped site sets the same variables for its own mirrors.
trainium_ssh_public_key_file: {paths.ssh_key}.pub
trainium_ssh_private_key_file: {paths.ssh_key}
# The name that teardown.yml wants to be given.
trainium_cluster_name: trainium
# The containers' addresses are reached from this machine, as those of a VPC are by a VPN.
trainium_private_access: true
network_address_service: {api.endpoint()}/sandbox-api/address
ansible_user: ubuntu
ansible_ssh_private_key_file: {paths.ssh_key}
# Molecule takes one that has imported already what modules import.
ansible_python_interpreter: "{{{{ lookup('ansible.builtin.env', 'TRAINIUM_SANDBOX_PYTHON') or '/usr/bin/python3' }}}}"

efa_installer_url: {site}/standins/efa
efa_key_fingerprint: {fingerprints["efa"]}
neuron_repository_url: {site}/standins/neuron
neuron_key_fingerprint: {fingerprints["neuron"]}
neuron_venv_index_url: {site}/simple/
neuron_venv_trusted_hosts:
  - {apt.NAME}
neuron_venv_packages:
{packages}# PyPI has it only for CUDA; the training does not use it.
neuron_venv_torchvision_version: none
monitoring_pip_index_url: {site}/simple/
monitoring_pip_trusted_hosts:
  - {apt.NAME}

{_parallelcluster()}parallelcluster_configuration:
  scaledown_idletime: 1

# A process a NeuronCore would be 32 a host; this machine's CPUs carry two, and two hosts of a ParallelCluster,
# which grows with its jobs. GPUs get no training.
trainium_training: >-
  {{{{ {{}} if not __trainium_neuron | default(true) | bool
     else {{'processes_per_node': 2, 'nodes': 2}} if trainium_backend | default('ec2') == 'pcluster'
     else {{'processes_per_node': 2}} }}}}

# The images have the client of Lustre, so that none is fetched; no key has this fingerprint.
shared_storage_lustre_key_fingerprint: "{40 * "0"}"

# The containers' cgroups are read-only, and so is their limit of open files.
efa_nofile: 16384
slurm_proctrack_type: proctrack/linuxproc
slurm_task_plugin: task/none

# There are no NeuronCores to run nccom-test on.
acceptance_collective: gloo
# A container's limit of locked memory is the machine's, and the machine keeps the time.
acceptance_memlock: "65536"
acceptance_clock_synchronised: false

# Upstream's manifests are not to be had here, and one node is enough for the pods of the system.
eks_addons_lustre_driver_files: {_manifest("fsx-csi-driver")}
eks_addons_volcano_files: {_manifest("volcano")}
eks_cluster_system_count: 1
eks_image_build_options: [--network=host]
# The registry is built when there is a repository to push to.
eks_image_login_tries: 180
# Those of containers are the machine's, which has none.
training_job_huge_pages: ""
"""


def _parallelcluster() -> str:
    """The environment of the tests has the library of ParallelCluster; without it the role makes one of its own."""
    if not importlib.util.find_spec("pcluster"):
        return ""
    return f"""# The sandbox's own environment has ParallelCluster's library, and molecule has it imported already.
parallelcluster_python: >-
  {{{{ lookup('ansible.builtin.env', 'TRAINIUM_WARM_PCLUSTER') or {json.dumps(sys.executable)} }}}}
"""


def _manifest(name: str) -> str:
    """A manifest of the sandbox as the role eks_addons takes those of releases; JSON is YAML.

    It has several documents, as upstream's, which ansible-test refuses in files that end in yaml.
    """
    file = REPOSITORY / "sandbox" / "kubernetes" / "manifests" / f"{name}.manifest"
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    return json.dumps([{"url": file.as_uri(), "checksum": f"sha256:{checksum}"}])


def eks_demo() -> str:
    """The variables of ``make demo BACKEND=eks``: the demo's training in pods, on storage that its playbooks make."""
    # Its base has all packages; there is no index beside it.
    job = {"nodes": 2, "processes_per_node": 2, "packages": []}
    storage = {"trainium_shared_storage": "fsx", "trainium_shared_dir": "/fsx"}
    # Something of each kind that goes into an image, so that all of it is built.
    image = {
        "eks_image_files": [{"src": str(REPOSITORY / "COPYING"), "dest": "/opt/own/COPYING"}],
        "eks_image_commands": ["python3 -c 'import torch'"],
    }
    return json.dumps({"trainium_training": job, **storage, **image})


def environment(paths: Paths) -> dict[str, str]:
    """The variables that point AWS clients and Ansible at the sandbox; the programs of this Python come first."""
    programs = [str(standins.CONTROLLER), str(Path(sys.executable).parent)]
    return {
        **account.variables(),
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "ANSIBLE_INVENTORY": str(paths.inventory),
        "TRAINIUM_REPORT_DIR": str(paths.reports),
        "TRAINIUM_LOG_DIR": str(paths.playbooks),
        "ANSIBLE_PRIVATE_KEY_FILE": str(paths.ssh_key),
        "TRAINIUM_KNOWN_HOSTS": str(paths.ssh_key.with_name("known_hosts")),
        "PATH": os.pathsep.join(
            filter(None, dict.fromkeys([*programs, *os.environ.get("PATH", "").split(os.pathsep)]))
        ),
        "CONTAINERS_REGISTRIES_CONF": str(paths.registries),
        # What role eks_image builds goes with the sandbox.
        **Podman(paths).environment,
        # Playbooks name the kubeconfig of the sandbox's cluster; without a name they would take the caller's.
        "KUBECONFIG": account.NO_FILE,
    }


def exports(paths: Paths) -> str:
    """Lines for a shell: the caller's variables of AWS go, then the sandbox's come."""
    gone = ["AWS_PROFILE", "AWS_SESSION_TOKEN", *account.of_the_caller(os.environ)]
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment(paths).items()]
    return "\n".join([f"unset {' '.join(dict.fromkeys(gone))}", *lines])


def inside(paths: Paths) -> dict[str, str]:
    """The whole environment of a command that runs against the sandbox."""
    return {**account.inside(os.environ), **environment(paths)}


def write(paths: Paths) -> None:
    """Make the key and write the inventory; both stay the same when written again."""
    if not paths.ssh_key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", paths.name, "-f", str(paths.ssh_key)]
        subprocess.run(command, check=True)
    (paths.inventory / "group_vars").mkdir(exist_ok=True)
    shutil.copyfile(REPOSITORY / "inventory" / "nodes.yml", paths.inventory / "nodes.yml")
    paths.registries.write_text(registry.redirections(account.REGION), encoding="utf-8")
    (paths.inventory / "group_vars" / "all.yml").write_text(variables(paths), encoding="utf-8")
    (paths.root / "eks.json").write_text(eks_demo(), encoding="utf-8")
