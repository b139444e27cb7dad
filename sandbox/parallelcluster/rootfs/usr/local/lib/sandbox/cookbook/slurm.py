"""Slurm's files on the head node, from the cluster's configuration."""

from __future__ import annotations

import json
from typing import Any

Item = dict[str, Any]
# Of an instance's memory Slurm gives this share to jobs.
MEMORY = 0.95

# What Debian's Slurm 22.05 does not know yet (23.02), and what of it it does.
KNOWN = {"ForceRequeueOnFail": "Alloc"}


def resources(settings: Item) -> list[tuple[Item, Item]]:
    """Every compute resource with its queue."""
    queues = settings["Scheduling"].get("SlurmQueues") or []
    return [(queue, resource) for queue in queues for resource in queue.get("ComputeResources") or []]


def types_of(resource: Item) -> list[str]:
    """The instance types of a compute resource."""
    several = [one["InstanceType"] for one in resource.get("Instances") or []]
    return several or [resource["InstanceType"]]


def counts(resource: Item) -> tuple[int, int]:
    """Static nodes, and dynamic ones beside them."""
    static = int(resource.get("MinCount", 0))
    return static, int(resource.get("MaxCount", max(static, 10))) - static


def node_sets(queue: Item, resource: Item) -> dict[str, str]:
    """``st`` and ``dy`` -> the hostlist of these nodes; a kind without nodes is left out."""
    static, dynamic = counts(resource)
    return {
        kind: f"{queue['Name']}-{kind}-{resource['Name']}-[1-{count}]"
        for kind, count in (("st", static), ("dy", dynamic))
        if count
    }


def hardware(resource: Item, types: Item) -> tuple[int, int]:
    """CPUs and memory (MiB) of the smallest type of a compute resource."""
    found = [types[name] for name in types_of(resource)]
    threads = resource.get("DisableSimultaneousMultithreading")
    cpus = min(one["VCpuInfo"]["DefaultCores" if threads else "DefaultVCpus"] for one in found)
    return int(cpus), int(min(one["MemoryInfo"]["SizeInMiB"] for one in found) * MEMORY)


def queue_lines(settings: Item, types: Item) -> list[str]:
    """Nodes and partitions."""
    lines: list[str] = []
    for queue, resource in resources(settings):
        cpus, memory = hardware(resource, types)
        for kind, names in node_sets(queue, resource).items():
            features = f"{'static' if kind == 'st' else 'dynamic'},{types_of(resource)[0]},{resource['Name']}"
            lines.append(f"NodeName={names} CPUs={cpus} RealMemory={memory} State=CLOUD Feature={features}")
    for number, queue in enumerate(settings["Scheduling"].get("SlurmQueues") or []):
        exclusive = " OverSubscribe=EXCLUSIVE" if queue.get("JobExclusiveAllocation") else ""
        default = " Default=YES" if number == 0 else ""
        lines.append(
            f"PartitionName={queue['Name']} Nodes={partition_nodes(settings, queue)} MaxTime=INFINITE State=UP"
            f"{default}{exclusive}"
        )
    return lines


def partition_nodes(settings: Item, queue: Item) -> str:
    """The hostlist of a queue."""
    mine = [one for other, one in resources(settings) if other is queue]
    return ",".join(names for resource in mine for names in node_sets(queue, resource).values())


def slurm_conf(cluster: Item, settings: Item, types: Item, head: tuple[str, str]) -> str:
    """slurm.conf; ``head`` is the head node's name and address."""
    slurm = settings["Scheduling"].get("SlurmSettings") or {}
    static = [node_sets(queue, one)["st"] for queue, one in resources(settings) if counts(one)[0]]
    lines = [
        f"ClusterName={cluster['stack_name']}",
        f"SlurmctldHost={head[0]}({head[1]})",
        "SlurmUser=slurm",
        "AuthType=auth/munge",
        "StateSaveLocation=/var/spool/slurm.state",
        "SlurmdSpoolDir=/var/spool/slurmd",
        "SlurmctldTimeout=300",
        "SlurmdTimeout=180",
        "SlurmctldPidFile=/run/slurmctld.pid",
        "SlurmdPidFile=/run/slurmd.pid",
        "SlurmctldLogFile=/var/log/slurmctld.log",
        "SlurmdLogFile=/var/log/slurmd.log",
        # The cgroups of a container are read-only.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SlurmdParameters=config_overrides",
        "SlurmctldParameters=cloud_dns,idle_on_node_suspend,power_save_interval=5,power_save_min_interval=0",
        "CommunicationParameters=NoAddrCache",
        "TreeWidth=30",
        "ReturnToService=1",
        "PrivateData=cloud",
        "JobRequeue=1",
        "Prolog=/opt/slurm/etc/scripts/prolog.d/*",
        "Epilog=/opt/slurm/etc/scripts/epilog.d/*",
        "SchedulerParameters=nohold_on_prolog_fail",
        "ResumeProgram=/opt/parallelcluster/bin/slurm_resume",
        "ResumeFailProgram=/opt/parallelcluster/bin/slurm_suspend",
        "SuspendProgram=/opt/parallelcluster/bin/slurm_suspend",
        "ResumeRate=0",
        "SuspendRate=0",
        f"ResumeTimeout={cluster.get('compute_node_bootstrap_timeout', 2100)}",
        "SuspendTimeout=30",
        f"SuspendTime={int(slurm.get('ScaledownIdletime', 10)) * 60}",
        *([f"SuspendExcNodes={','.join(static)}"] if static else []),
        *[
            f"{key}={KNOWN.get(value, value)}"
            for one in slurm.get("CustomSlurmSettings") or []
            for key, value in one.items()
        ],
        *queue_lines(settings, types),
    ]
    return "\n".join(lines) + "\n"


def fleet(settings: Item) -> str:
    """fleet-config.json: how the nodes of each compute resource are launched."""
    found: Item = {}
    for queue, resource in resources(settings):
        several = bool(resource.get("Instances"))
        entry: Item = {
            "Api": "create-fleet" if several else "run-instances",
            "CapacityType": {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(
                queue.get("CapacityType", "ONDEMAND"), "on-demand"
            ),
            "Instances": [{"InstanceType": name} for name in types_of(resource)],
            "Networking": {"SubnetIds": queue["Networking"]["SubnetIds"]},
        }
        if several:
            entry["AllocationStrategy"] = queue.get("AllocationStrategy", "lowest-price")
        target = resource.get("CapacityReservationTarget") or queue.get("CapacityReservationTarget") or {}
        if target.get("CapacityReservationId"):
            entry["CapacityReservationId"] = target["CapacityReservationId"]
        found.setdefault(queue["Name"], {})[resource["Name"]] = entry
    return json.dumps(found, indent=2) + "\n"


def partitions(settings: Item) -> str:
    """Partition -> hostlist, for clustermgtd."""
    queues = settings["Scheduling"].get("SlurmQueues") or []
    return json.dumps({queue["Name"]: partition_nodes(settings, queue) for queue in queues}) + "\n"


def daemon_conf(section: str, values: dict[str, str]) -> str:
    """A configuration file of aws-parallelcluster-node."""
    return f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
