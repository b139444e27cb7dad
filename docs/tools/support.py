"""Writes docs/support.md from the tables that the code goes by, so that neither says what the other does not know."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.eks_images import IMAGES
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import RELEASES, SYSTEMS
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.arguments import (
    SYSTEMS as IMAGES_OF_PCLUSTER,
)

HEAD = """\
# What is supported

**Seen on hardware: nothing yet.** Not one line of this collection has run on an instance with a Neuron device or EFA.
The sandbox has run the playbooks with real Slurm and PyTorch on processors. Its hosts are containers with the machine's
own release, Debian 12 or Ubuntu 24.04; what it simulates, and where that is known to differ, is in
[fidelity](fidelity.md).

The tables below show what the code accepts. They were made from what AWS publishes. Everything else is refused.

This page is written from the code's own tables by `make readmes`.

## The controller

| what | versions |
| --- | --- |
| Python | 3.11 or newer |
| ansible-core | {core} |
| collections | {collections} |
| package `ansible`, which brings them with ansible-core 2.19 | {ansible} or newer |
| boto3, botocore | {boto3} or newer |
| system | Linux with OpenSSH; tried are Debian and Ubuntu |

`make publish-check` tries ansible-core 2.17 and `ansible` {ansible}, with the lowest versions of everything else, and
the newest of all on the newest Python: documentation of every plugin, syntax of every playbook, a run of
`validate.yml`, what boto3 knows of AWS's APIs, and ansible-test sanity. The whole way to a trained model goes on the
oldest Python.

## Operating systems of the nodes, by role

With `trainium_backend: ec2` and EFA, nodes get the roles `efa`, `neuron` and `slurm`. All three accept only
**{systems}**.
With `slurm_source: archive` or `repository` the role `slurm` takes Ubuntu 22.04, Amazon Linux 2023 and Enterprise
Linux 9 as well; on none of these it was tried, and `archive` on Debian 12 only.

Roles that install packages of Neuron check the tables of the SDK, below. Roles that are in no table do not check the
system. `+` means: this version or newer.

"""
NEURON = """\
`neuron` and `neuron_venv`, with the releases of the Neuron SDK that have packages for the system. Release, PyTorch,
Python and type of instance must fit together as well; what does not is refused with the nearest that does.
On Amazon Linux 2, which has no dnf, the role `neuron` is refused.

"""
TAIL = """\
ParallelCluster {pcluster} is what is tried, in the sandbox on the machine's own system. `pcluster_config` takes
{systems}.
Container images for trainings need 3.11.1 or newer, and hooks of Slurm 3.6.0 or newer.

Releases of EKS's Neuron image are known for Kubernetes {kubernetes}; the default is {kubernetes_default}.
Other clusters of Kubernetes are not asked for their version. The release of Volcano that the role `eks_addons` brings
is for Kubernetes up to 1.35: with 1.36 set `training_job_launcher: kubernetes` and `eks_addons_volcano: false`.
"""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)) + "\n"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules_of_roles(root: Path) -> dict[str, tuple[dict[str, list[str]], bool]]:
    """Role -> the systems that its tasks/validate.yml lets pass, and whether newer ones do as well."""
    found = {}
    for path in sorted(root.glob("roles/*/tasks/validate.yml")):
        rules = [rule for task in loaded(path) for value in task.values() if isinstance(value, dict)
                 for rule in value.get("rules", ())
                 if (rule["kind"], rule["variable"]) == ("system", "trainium_image_id")]  # fmt: skip
        for rule in rules:
            known = rule["systems"]
            if isinstance(known, str):
                known = loaded(path.parents[1] / "vars/main.yml")[known.strip("{} ")]
            found[path.parts[-3]] = (known, bool(rule.get("newer")))
    return found


def systems_of_roles(root: Path) -> dict[str, str]:
    """The same as text."""
    return {
        role: ", ".join(f"{name} {' '.join(known[name])}{'+' if newer else ''}" for name in sorted(known))
        for role, (known, newer) in rules_of_roles(root).items()
    }


def of_whole_clusters(root: Path) -> list[str]:
    """The systems that have packages of the SDK, and that efa and slurm let pass."""
    rules = [rules_of_roles(root)[role] for role in ("efa", "slurm")]
    found = []
    for (name, version), system in SYSTEMS.items():
        passes = [
            version in known.get(name, ())
            or (newer and any(float(version) > float(one) for one in known.get(name, ())))
            for known, newer in rules
        ]
        if all(passes):
            found.append(system.name + ("" if system.repository else " with a mirror of Neuron's packages of your own"))
    return found


def releases_of(system: Any) -> str:
    """The releases of the SDK that have packages for a system."""
    order = [release.sdk for release in RELEASES]
    newest = order.index(system.last_sdk) if system.last_sdk else 0
    oldest = order.index(system.first_sdk) if system.first_sdk else len(order) - 1
    span = order[newest] if newest == oldest else f"{order[oldest]} to {order[newest]}"
    return span + ("" if system.repository else ", from a mirror of your own")


def page(root: Path) -> str:
    """The whole page."""
    defaults = loaded(root / "roles/trainium/defaults/main.yml")
    pcluster = loaded(root / "roles/parallelcluster/defaults/main.yml")["parallelcluster_version"]
    wanted = dict(re.findall(r"(?m)^(\w+)>=([\d.]+)", (root / "requirements.txt").read_text(encoding="utf-8")))
    collections = loaded(root / "galaxy.yml")["dependencies"]
    kubernetes = sorted({version for image in IMAGES for version in image.patches})
    head = HEAD.format(
        core=loaded(root / "meta/runtime.yml")["requires_ansible"],
        ansible=wanted["ansible"].partition(".")[0],
        boto3=wanted["boto3"],
        systems=", and ".join(of_whole_clusters(root)),
        collections=", ".join(f"{name} {version}" for name, version in collections.items()),
    )
    return "\n".join(
        [
            head + table(["role", "systems"], [[f"`{role}`", text] for role, text in systems_of_roles(root).items()]),
            NEURON + table(["system", "its Python", "SDK", "PyTorch"], [
                [one.name, one.python, releases_of(one), f"below {one.torch_below}" if one.torch_below else "any"]
                for one in SYSTEMS.values()
            ]),
            "## Neuron SDK\n",
            "The last column says on which instances this PyTorch is taken: `trn` Trainium, `inf` Inferentia.\n",
            table(["SDK", "torch-neuronx", "Python", "PyTorch on"], [
                [one.sdk, ", ".join(one.torch) or "none", " to ".join(part for part in one.pythons if part) or "-",
                 ", ".join(one.families) if one.torch else "-"]
                for one in RELEASES
            ]),
            "## Instance types\n",
            "Those with Neuron devices. EC2 is asked for other types, and for what is `?`.\n",
            table(["type", "network cards", "with EFA", "Neuron devices"], [
                [f"`{name}`", str(one.cards or "?"), str(one.efa if one.cards else "?"), str(one.devices)]
                for name, one in TYPES.items() if one.devices
            ]),
            "## ParallelCluster and Kubernetes\n",
            TAIL.format(systems=", ".join(f"`{one}`" for one in IMAGES_OF_PCLUSTER), pcluster=pcluster,
                        kubernetes=", ".join(kubernetes), kubernetes_default=defaults["trainium_eks_version"]),
        ]
    )  # fmt: skip


def main() -> int:
    """Write the page, or with --check say that it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is stale")
    check = parser.parse_args().check
    root = Path(__file__).resolve().parents[2]
    path = root / "docs/support.md"
    text = page(root)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print("docs/support.md is stale; run make readmes", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8")
    print("wrote docs/support.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
