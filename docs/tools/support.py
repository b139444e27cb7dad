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
The sandbox, whose hosts are containers of the machine's own Debian or Ubuntu, has run the playbooks with real Slurm and
PyTorch on processors; what it simulates, and where that is known to differ, is in [fidelity](fidelity.md). What follows
is what the code accepts, from AWS's publications, and refuses otherwise.

This page is written from the code's own tables by `make readmes`.

## The controller

| what | versions |
| --- | --- |
| Python | 3.11 or newer |
| ansible-core | {core}; tried are 2.19, which `ansible` 12 brings, and the newest that installs |
| package `ansible` | {ansible} or newer |
| system | Linux with OpenSSH; tried are Debian and Ubuntu |

`make publish-check` tries both ends: documentation of every plugin, syntax of every playbook, a run of `validate.yml`.

## Operating systems of the nodes, by role

Other roles go by no list. A role that Neuron's packages come to goes by the SDK, below. `+` also takes what is newer.
"""
NEURON = """\
`neuron` and `neuron_venv`, with the releases of the Neuron SDK that have packages for the system. Release, PyTorch,
Python and type of instance must fit together as well; what does not is refused with the nearest that does:

"""
TAIL = """\
ParallelCluster {pcluster} is what is tried, in the sandbox on the machine's own system. `pcluster_config` takes
{systems}.
Container images for trainings need 3.11.1 or newer, and hooks of Slurm 3.6.0 or newer.

Releases of EKS's Neuron image are known for Kubernetes {kubernetes}; the default is {kubernetes_default}.
Other clusters of Kubernetes are not asked for their version.
"""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)) + "\n"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def systems_of_roles(root: Path) -> dict[str, str]:
    """Role -> the systems that its tasks/validate.yml lets pass."""
    found = {}
    for path in sorted(root.glob("roles/*/tasks/validate.yml")):
        rules = [rule for task in loaded(path) for value in task.values() if isinstance(value, dict)
                 for rule in value.get("rules", ()) if rule["kind"] == "system"]  # fmt: skip
        for rule in rules:
            known = rule["systems"]
            if isinstance(known, str):
                known = loaded(path.parents[1] / "vars/main.yml")[known.strip("{} ")]
            more = "+" if rule.get("newer") else ""
            found[path.parts[-3]] = ", ".join(f"{name} {' '.join(known[name])}{more}" for name in sorted(known))
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
    ansible = re.search(r"(?m)^ansible>=(\d+)", (root / "requirements.txt").read_text(encoding="utf-8"))
    assert ansible, "requirements.txt names no lowest version of ansible"
    kubernetes = sorted({version for image in IMAGES for version in image.patches})
    head = HEAD.format(core=loaded(root / "meta/runtime.yml")["requires_ansible"], ansible=ansible[1])
    return "\n".join(
        [
            head,
            table(["role", "systems"], [[f"`{role}`", text] for role, text in systems_of_roles(root).items()]),
            NEURON + table(["system", "its Python", "SDK", "PyTorch"], [
                [one.name, one.python, releases_of(one), f"below {one.torch_below}" if one.torch_below else "any"]
                for one in SYSTEMS.values()
            ]),
            "## Neuron SDK\n",
            table(["SDK", "torch-neuronx", "Python", "PyTorch is for"], [
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
