# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The queues of a ParallelCluster configuration, from short variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import has_efa, is_neuron
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config import types
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.actions import actions_and_rights
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import given
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.shortcuts import fill_queues

Variables = Mapping[str, Any]
Section = dict[str, Any]

CAPACITY_BLOCK = "CAPACITY_BLOCK"


def render_queues(variables: Variables) -> list[Section]:
    """SlurmQueues.

    Raises:
        TrainiumError: a reservation is given by id and by group.
    """
    whole = [
        {**queue, "compute_resources": list(queue.get("compute_resources") or [])} for queue in fill_queues(variables)
    ]
    return [_queue(variables, one) for queue in whole for one in _by_subnet(queue, variables.get("compute_subnet_ids"))]


def _by_subnet(queue: Variables, subnets: list[str] | None) -> list[Section]:
    """The queue, and one more for each further subnet where its nodes have EFA, which does not cross a zone.

    ParallelCluster refuses EFA in a queue of several subnets (EfaMultiAzValidator). A job that names all the queues
    gets its nodes in one; without capacity there, it goes back and to another ("fast insufficient capacity fail-over").
    What is reserved is in one zone, and nodes that are always there are those of the first.
    """
    listed = list(queue.get("subnet_ids") or subnets or [])
    resources = queue["compute_resources"]
    reserved = any(one.get("capacity_reservation") for one in [queue, *resources])
    if len(listed) < 2 or reserved or not any(map(_wants_efa, resources)):
        return [{**queue, "subnet_ids": listed}]
    others = [{**one, "min_count": 0} for one in resources]
    return [
        {**queue, "name": f"{queue.get('name')}-z{place}", "compute_resources": others, "subnet_ids": [subnet]}
        if place > 1
        else {**queue, "subnet_ids": [subnet]}
        for place, subnet in enumerate(listed, 1)
    ]


def _queue(variables: Variables, queue: Variables) -> Section:
    resources = queue["compute_resources"]
    efa = [_wants_efa(resource) for resource in resources]
    kinds = [str(resource.get("instance_type") or "") for resource in resources]
    size = queue.get("root_volume_size") or max((types.root_volume_size(kind) for kind in kinds), default=200)
    ephemeral = queue.get("ephemeral_dir") or variables.get("ephemeral_dir")
    exclusive = queue.get("job_exclusive_allocation")
    if exclusive is None and any(is_neuron(kind) for kind in kinds):
        # Slurm knows no Neuron devices, so two jobs on a node would share them unknowingly.
        exclusive = True
    return given(
        Name=queue.get("name"),
        CapacityType=queue.get("capacity_type"),
        AllocationStrategy=queue.get("allocation_strategy"),
        CapacityReservationTarget=_reservation(queue.get("capacity_reservation"), str(queue.get("name"))),
        JobExclusiveAllocation=exclusive,
        ComputeResources=[_compute_resource(resource, with_efa) for resource, with_efa in zip(resources, efa)],
        ComputeSettings={
            "LocalStorage": given(
                RootVolume={"Size": size, "VolumeType": "gp3", "Encrypted": True},
                EphemeralVolume=given(MountDir=ephemeral),
            )
        },
        Networking=given(
            SubnetIds=queue["subnet_ids"],
            PlacementGroup=_placement_group(variables, queue, any(efa)),
            SecurityGroups=queue.get("security_groups"),
            AdditionalSecurityGroups=queue.get("additional_security_groups"),
        ),
        **actions_and_rights(variables, "compute", queue),
        Image=given(CustomAmi=queue.get("custom_ami")),
        CustomSlurmSettings=queue.get("custom_slurm_settings"),
        Tags=[{"Key": str(key), "Value": str(value)} for key, value in (queue.get("tags") or {}).items()],
    )


def _wants_efa(resource: Variables) -> bool:
    """EFA where it is asked for; without a word, where the type is known to have it."""
    if resource.get("efa") is not None:
        return bool(resource["efa"])
    return bool(has_efa(str(resource.get("instance_type") or "")))


def _compute_resource(resource: Variables, efa: bool) -> Section:
    instances = resource.get("instance_types")
    return given(
        Name=resource.get("name"),
        InstanceType=resource.get("instance_type"),
        Instances=[{"InstanceType": kind} for kind in instances] if instances else None,
        MinCount=resource.get("min_count", 0),
        MaxCount=resource.get("max_count", max(10, int(resource.get("min_count") or 0))),
        Efa=given(Enabled=efa or None, GdrSupport=resource.get("gdr_support")),
        CapacityReservationTarget=_reservation(resource.get("capacity_reservation"), str(resource.get("name"))),
        DisableSimultaneousMultithreading=resource.get("disable_hyperthreading"),
        SpotPrice=resource.get("spot_price"),
        SchedulableMemory=resource.get("schedulable_memory"),
    )


def _reservation(target: Variables | None, where: str) -> Section:
    if not target:
        return {}
    if target.get("id") and target.get("resource_group_arn"):
        raise TrainiumError(f"capacity_reservation of {where} has an id and a resource_group_arn; give one of them")
    return given(
        CapacityReservationId=target.get("id"), CapacityReservationResourceGroupArn=target.get("resource_group_arn")
    )


def _placement_group(variables: Variables, queue: Variables, efa: bool) -> Section:
    """Whether the nodes get a placement group of their own.

    A placement group lowers latency for training over EFA and is of no use to inference. Beside a reservation that AWS
    made, which has a placement group already, or a Capacity Block, a second one leads to insufficient capacity.
    """
    wanted = queue.get("placement_group")
    if wanted is None:
        wanted = variables.get("placement_group")
    if wanted is None:
        if not efa:
            return {}
        return {"Enabled": queue.get("capacity_type") != CAPACITY_BLOCK and not _reserved_by_aws(queue)}
    enabled = wanted if isinstance(wanted, bool) else str(wanted).lower() in ("true", "yes")
    if enabled or str(wanted).lower() in ("false", "no"):
        return {"Enabled": enabled}
    return {"Name": str(wanted)}


def _reserved_by_aws(queue: Variables) -> bool:
    for resource in queue["compute_resources"]:
        target = resource.get("capacity_reservation") or queue.get("capacity_reservation")
        if not target:
            continue
        owner = target.get("owner")
        if owner == "aws" or (owner is None and types.reserved_by_aws(str(resource.get("instance_type") or ""))):
            return True
    return False
