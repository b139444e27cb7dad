"""A proof of which every step succeeded, and what its report says of a row of docs/fidelity.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import Evidence, evidence
from ansible_collections.trainium.cluster.plugins.module_utils._prove.report import NEEDED
from ansible_collections.trainium.cluster.plugins.module_utils._prove.rows import judged

Item = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/fidelity.md").read_text(encoding="utf-8")
RUN = {
    "region": "us-west-2",
    "instance_type": "trn1.2xlarge",
    "began": "2026-12-01T10:00:00Z",
    "price": 1.63,
    "collection": "0.3.0",
    "ansible": "2.19.0",
    "left": {},
}
ACCEPTED = {
    "instance_type": "trn1.32xlarge",
    "layout": "efa",
    "interfaces": 8,
    "accepted": True,
    "asked": True,
    "code": "",
    "said": "",
}
NODE = {"instance_type": "trn1.2xlarge", "private_ip_address": "10.77.0.4", "instance_id": "i-1"}
BOOT = """\
== name
ip-10-77-0-4

== apt_lists
0
== cloud_init
status: done
== resolver
ip-10-77-0-4.us-west-2.compute.internal: 10.77.0.4 -- link: ens5
== metadata
200
== neuron_source
deb [signed-by=/etc/apt/keyrings/neuron.gpg] https://apt.repos.neuron.amazonaws.com noble main
== eni_helper
enabled
"""
READY = """\
== kernel
6.8.0-1021-aws
== neuron_module
2.29.0.0
== devices
1
== neuron_ls
[{"neuron_device": 0, "nc_count": 2}]
== neuron_packages
aws-neuronx-dkms\t2.29.0.0
== efa_installer
# EFA installer version: 1.51.0
== wheels
torch-neuronx==2.9.0
"""


def steps(**failed: str) -> list[Item]:
    return [{"name": name, "ok": name not in failed, "seconds": 10, "why": failed.get(name, "")} for name in NEEDED]


def seen(
    boot: str = BOOT, ready: str = READY, done: list[Item] | None = None, launched: Item | None = None, **account: Any
) -> Evidence:
    """What each step left; ``launched`` and ``account`` say what differs."""
    given = {
        "instances": [NODE],
        "image": {"name": "Deep Learning Base Neuron AMI", "description": "Neuron SDK 2.29.1"},
        "console": {"known": ["i-1"], "unknown": []},
    }
    answers: Item = {
        "endpoint": "",
        "dry_runs": [ACCEPTED],
        "control": {"asked": True, "code": "InvalidParameterValue"},
        "public_ip": "primary",
        "cidrs": 0,
        "connection": "ssh",
    }
    known = {**given, **(launched or {})}
    return evidence(steps() if done is None else done, {**answers, **account}, known, boot, ready, {"steps": 10})


def verdict(part: str, found: Evidence) -> tuple[str, str]:
    (row,) = [row for row in judged(PAGE, found) if row["part"] == part]
    return row["verdict"], row["evidence"]
