# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reference architectures as variables of the module pcluster_config.

What only the account knows, such as subnets, the key, images and reservations, is given beside the preset. Further
variables are laid upon a preset's; queues and their compute resources go by name. The shortcuts for the queue that
trains replace what the preset says of it; what a given queue or compute resource says itself replaces both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import merge
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.shortcuts import preset_queues

Variables = dict[str, Any]


def _queue(name: str, resource: Variables, **options: Any) -> Variables:
    return {"name": name, "compute_resources": [resource], **options}


def _nodes(name: str, instance_type: str, maximum: int, **options: Any) -> Variables:
    return {"name": name, "instance_type": instance_type, "min_count": 0, "max_count": maximum, **options}


# /home is shared by the head node in every cluster; /apps is a volume of its own that it shares in the same way.
_APPS = {"type": "ebs", "name": "apps", "mount_dir": "/apps", "size": 200}
_LUSTRE = {
    "type": "fsx_lustre",
    "name": "fsx",
    "mount_dir": "/fsx",
    "storage_capacity": 4800,
    "deployment_type": "PERSISTENT_2",
    "per_unit_storage_throughput": 250,
    "data_compression_type": "LZ4",
}
_SHARED = {"type": "efs", "name": "shared", "mount_dir": "/shared"}
_TRN1 = _nodes("trn1", "trn1.32xlarge", 2)
_P4DE_QUEUE = _queue("compute-gpu", _nodes("distributed-ml", "p4de.24xlarge", 4), job_exclusive_allocation=True)


def _training(*queues: Variables) -> Variables:
    """Head node, storage and access that the clusters for large GPU and Trainium jobs have in common."""
    return {
        "head_node": {"instance_type": "m5.8xlarge", "root_volume_size": 200},
        "shared_storage": [_APPS, _LUSTRE],
        "ephemeral_dir": "/local_scratch",
        "monitoring": {"dashboard": True},
        "queues": list(queues),
    }


def _small(*queues: Variables, **options: Any) -> Variables:
    """Two trn1 nodes and what the cluster is to show."""
    return {
        "head_node": {"instance_type": "m5.4xlarge"},
        "shared_storage": [_SHARED],
        "ephemeral_dir": "/scratch",
        "queues": [_queue("compute1", _TRN1), *queues],
        **options,
    }


PRESETS: dict[str, Variables] = {
    # Two nodes, EFS with provisioned throughput, head node in a public and compute nodes in a private subnet.
    "trn1": {
        "head_node": {"instance_type": "c5.4xlarge", "root_volume_size": 800},
        "shared_storage": [{**_SHARED, "mount_dir": "/neuron_shared", "provisioned_throughput": 1024}],
        "ephemeral_dir": "/scratch",
        "queues": [_queue("compute1", _TRN1, root_volume_size=800)],
    },
    # Sixteen nodes that come with a job and go after it, and set themselves up by a script.
    "trn1_dynamic": {
        "head_node": {"instance_type": "c5.4xlarge"},
        "shared_storage": [_SHARED],
        "queues": [_queue("compute1", {**_TRN1, "max_count": 16})],
    },
    "gpu": _training(_queue("compute-gpu", _nodes("distributed-ml", "p4d.24xlarge", 4), job_exclusive_allocation=True)),
    "p4de_custom_ami": _training(_P4DE_QUEUE),
    # Pyxis and Enroot come by scripts.
    "p4de_postinstall": _training(_P4DE_QUEUE),
    "p4de_g5_inference": _training(
        _P4DE_QUEUE, _queue("inference-gpu", _nodes("inference", "g5.12xlarge", 4, efa=False))
    ),
    "trn1_custom_ami": _training(_queue("compute-trn1", _nodes("distributed-ml", "trn1.32xlarge", 4))),
    "trn2": _training(_queue("compute1", _nodes("trn2", "trn2.48xlarge", 2))),
    "capacity_block": _training(
        _queue("compute1", {**_nodes("trn2", "trn2.48xlarge", 2), "min_count": 2}, capacity_type="CAPACITY_BLOCK")
    ),
    "login_nodes": _small(
        login_nodes=[{"name": "login", "instance_type": "m5.xlarge", "count": 2, "gracetime_period": 10}]
    ),
    "accounting": _small(accounting={"user_name": "slurm"}),
    "multi_queue": _small(
        _queue("compile", _nodes("cpu", "m5.8xlarge", 4)), _queue("debug", _nodes("trn1s", "trn1.2xlarge", 2))
    ),
}

# What a preset is nothing without, as paths into the variables, and the reason.
NEEDS: dict[str, dict[str, str]] = {
    "trn1_dynamic": {"custom_actions": "the script that sets the nodes up, by its URL in S3"},
    "p4de_custom_ami": {"custom_ami": "the image with the software"},
    "p4de_postinstall": {"custom_actions": "the scripts for Docker, Pyxis and Enroot, by their URLs in S3"},
    "p4de_g5_inference": {"custom_ami": "the image with the software"},
    "trn1_custom_ami": {"custom_ami": "the image with Neuron"},
    "capacity_block": {"capacity_reservation": "the id of the Capacity Block's reservation"},
    "accounting": {"accounting.uri": "the database's host and port",
                   "accounting.password_secret_arn": "the secret with its password"},
}  # fmt: skip
# What serves in place of it.
INSTEAD = {
    ("trn1_dynamic", "custom_actions"): "setup_actions",
    # The role switches Pyxis and Enroot of the image on.
    ("p4de_postinstall", "custom_actions"): "setup_actions",
}


def laid_upon(preset: str | None, variables: Mapping[str, Any]) -> Variables:
    """The variables laid upon those of a preset; without one, as they are.

    Shared storage is the given one or the preset's, never both. Overrides are for the configuration and stay as they
    are.

    Raises:
        TrainiumError: the preset is not known.
    """
    if not preset:
        return dict(variables)
    if preset not in PRESETS:
        raise TrainiumError(f"preset {preset!r} does not exist; choose one of {', '.join(sorted(PRESETS))}")
    upon = {key: value for key, value in variables.items() if key != "overrides"}
    base = {key: value for key, value in PRESETS[preset].items() if key != "shared_storage" or key not in upon}
    base["queues"] = preset_queues(base["queues"], upon)
    merged: Variables = merge(base, upon)
    if "overrides" in variables:
        merged["overrides"] = variables["overrides"]
    return merged


def with_preset(preset: str | None, variables: Mapping[str, Any]) -> Variables:
    """The variables laid upon those of a preset, complete.

    Raises:
        TrainiumError: the preset is not known, or it needs a variable that was not given.
    """
    merged = laid_upon(preset, variables)
    for path, what in NEEDS.get(preset or "", {}).items():
        value: Any = merged
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if not value and not merged.get(INSTEAD.get((preset or "", path), "")):
            raise TrainiumError(f"{path} is missing; preset {preset} needs {what}")
    return merged
