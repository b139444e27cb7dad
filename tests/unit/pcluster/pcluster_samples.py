"""Variables and configurations that the tests of of ParallelCluster share."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import worker as pcluster_worker
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import PRESETS, with_preset
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.render import (
    known_reservations,
    render,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.rules import lint
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import Finding, View

PUBLIC, PRIVATE, OTHER = (f"subnet-0a1b2c3d4e5f6000{number}" for number in (1, 2, 3))
IMAGE = "ami-0a1b2c3d4e5f60004"
RESERVATION = "cr-0a1b2c3d4e5f60005"
GROUP = "arn:aws:resource-groups:us-west-2:123456789012:group/training"
SCRIPT = "s3://example-bucket/scripts/setup.sh"

# What only an account knows.
ACCOUNT: dict[str, Any] = {
    "region": "us-west-2",
    "head_node": {"subnet_id": PUBLIC},
    "compute_subnet_ids": [PRIVATE],
    "key_name": "bert",
    "allowed_ips": "198.51.100.7/32",
}
ACTIONS = {
    "head": {"on_node_configured": [{"script": SCRIPT}]},
    "compute": {"on_node_configured": [{"script": SCRIPT, "args": ["compute"]}]},
}
# What presets need beyond that.
MORE: dict[str, dict[str, Any]] = {
    "trn1_dynamic": {"custom_actions": ACTIONS},
    "p4de_custom_ami": {"custom_ami": IMAGE, "capacity_reservation": {"id": RESERVATION}},
    "p4de_postinstall": {"custom_actions": ACTIONS, "capacity_reservation": {"resource_group_arn": GROUP}},
    "p4de_g5_inference": {"custom_ami": IMAGE},
    "trn1_custom_ami": {"custom_ami": IMAGE, "capacity_reservation": {"id": RESERVATION, "owner": "self"}},
    "capacity_block": {"capacity_reservation": {"id": RESERVATION}},
    "accounting": {
        "accounting": {
            "uri": "db.example.com:3306",
            "password_secret_arn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:slurm-a1b2c3",
        }
    },
}
ALL_PRESETS = sorted(PRESETS)


def variables_of(preset: str, **variables: Any) -> dict[str, Any]:
    """The variables of a preset, complete."""
    return with_preset(preset, {**ACCOUNT, **MORE.get(preset, {}), **variables})


def configuration_of(preset: str, **variables: Any) -> dict[str, Any]:
    """The configuration of a preset, of which a test may change what it likes."""
    return copy.deepcopy(render(variables_of(preset, **variables)))


def findings_of(
    configuration: dict[str, Any], cluster_name: str = "bert", variables: dict[str, Any] | None = None
) -> list[Finding]:
    """The rules' and the real schema's findings."""
    owners = known_reservations(variables or {})
    view = View(configuration, cluster_name, tuple(owners["aws"]), tuple(owners["self"]))
    # The library fills in what it reads.
    schema = pcluster_worker.schema({"configuration": copy.deepcopy(configuration), "cluster_name": cluster_name})
    return lint(view, schema)
