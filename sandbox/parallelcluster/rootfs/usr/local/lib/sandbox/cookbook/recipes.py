"""cinc-client with the entry points of ParallelCluster's cookbook: init, config, finalize and update."""

from __future__ import annotations

import argparse
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from cookbook import slurm, storage
from cookbook.fleet import set_status, status
from cookbook.node import (
    LOG,
    PLUGIN,
    SHARED,
    SLURM,
    BootstrapError,
    address,
    attributes,
    client,
    configuration,
    fail,
    instance_id,
    instance_types,
    log_to,
    run,
    write,
)

Item = dict[str, Any]
MUNGE = SHARED / ".munge" / ".munge.key"
PCLUSTER = SLURM / "etc" / "pcluster"
HEARTBEAT = PCLUSTER / ".slurm_plugin" / "clustermgtd_heartbeat"
REGION = "us-west-2"
ENVIRONMENT = "export AWS_CONFIG_FILE=/etc/aws/config AWS_EC2_METADATA_DISABLED=true\n"


def init(cluster: Item) -> None:
    """Name, environment and the shell variables that scripts of users read."""
    Path("/var/log/parallelcluster").mkdir(parents=True, exist_ok=True)
    shutil.chown("/var/log/parallelcluster", "slurm", "slurm")
    Path("/var/log/parallelcluster").chmod(0o775)
    # The VPC's resolver, which knows the cluster's private zone.
    domain = cluster.get("dns_domain", "").rstrip(".")
    search = f"search {domain}\n" if domain and domain != "NONE" else ""
    write(Path("/etc/resolv.conf"), search + Path("/seed/resolv.conf").read_text(encoding="utf-8"))
    if cluster["node_type"] == "ComputeFleet":
        name = _slurm_name(cluster)
        write(PLUGIN / "slurm_nodename", name)
        run("hostname", name)
    values = {
        "stack_name": cluster["stack_name"],
        "cfn_region": cluster.get("region", REGION),
        "cfn_scheduler": cluster["scheduler"],
        "cfn_node_type": cluster["node_type"],
        "cfn_cluster_user": cluster["cluster_user"],
        "cfn_ephemeral_dir": cluster.get("ephemeral_dir", "NONE"),
        "cfn_shared_dir": cluster.get("efs_shared_dirs") or cluster.get("fsx_shared_dirs") or "NONE",
        "cfn_head_node_private_ip": cluster.get("head_node_private_ip", ""),
        "scheduler_queue_name": cluster.get("scheduler_queue_name", ""),
    }
    write(Path("/etc/parallelcluster/cfnconfig"), "".join(f"{key}={value}\n" for key, value in values.items()))
    run("systemctl", "start", "--no-block", "sandbox-cloudwatch-agent.service")


def _slurm_name(cluster: Item, seconds: float = 60) -> str:
    """The name that slurm_resume gave to this instance."""
    until = time.monotonic() + seconds
    while True:
        answer = client("dynamodb").query(
            TableName=cluster["slurm_ddb_table"],
            IndexName="InstanceId",
            KeyConditionExpression="InstanceId = :me",
            ExpressionAttributeValues={":me": {"S": instance_id()}},
        )
        if answer["Items"]:
            return str(answer["Items"][0]["Id"]["S"])
        if time.monotonic() > until:
            raise BootstrapError(f"No Slurm node was assigned to the instance {instance_id()}")
        time.sleep(0.5)


def config(cluster: Item) -> None:
    """Shared folders, munge, and on the head node Slurm's controller."""
    storage.mount(cluster)
    home = Path("/home") / cluster["cluster_user"]
    _home(home, cluster["cluster_user"])
    if cluster["node_type"] != "HeadNode":
        _munge()
        return
    MUNGE.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not MUNGE.exists():
        MUNGE.write_bytes(secrets.token_bytes(128))
        MUNGE.chmod(0o600)
    _munge()
    write_files(cluster)
    for folder in ("/var/spool/slurm.state",):
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, "slurm", "slurm")
    run("systemctl", "restart", "slurmctld.service")
    # What was asked for before the node came up counts; else the fleet runs.
    set_status("RUNNING", unless_set=True)


def _home(home: Path, user: str) -> None:
    """The user's home with a key of its own, so that it may log in to every node of the cluster."""
    entry = pwd.getpwnam(user)
    folder = home / ".ssh"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = folder / "id_ed25519"
    if not key.exists():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        with (folder / "authorized_keys").open("a", encoding="utf-8") as file:
            file.write(key.with_suffix(".pub").read_text(encoding="utf-8"))
        write(folder / "config", "Host *\n  StrictHostKeyChecking accept-new\n", 0o600)
    run("chown", "--recursive", f"{entry.pw_uid}:{entry.pw_gid}", str(home))


def _munge() -> None:
    target = Path("/etc/munge/munge.key")
    target.write_bytes(MUNGE.read_bytes())
    target.chmod(0o400)
    shutil.chown(target, "munge", "munge")
    run("systemctl", "restart", "munge.service")


def write_files(cluster: Item) -> None:
    """What Slurm and the daemons of the head node read."""
    settings, types = configuration(cluster), instance_types(cluster)
    host, mine = socket.gethostname(), address()
    # Of the queues' HealthChecks, which here check nothing.
    for script in ("prolog.d/90_pcluster_health_check_manager", "epilog.d/90_pcluster_noop"):
        write(SLURM / "etc" / "scripts" / script, "#!/bin/bash\nexit 0\n", 0o755)
    write(SLURM / "etc" / "slurm.conf", slurm.slurm_conf(cluster, settings, types, (host, mine)))
    write(PCLUSTER / "parallelcluster_partition_nodelist_mapping.json", slurm.partitions(settings))
    write(PLUGIN / "fleet-config.json", slurm.fleet(settings))
    common = {
        "region": cluster.get("region", REGION),
        "cluster_name": cluster["stack_name"],
        "dynamodb_table": cluster["slurm_ddb_table"],
        "head_node_private_ip": mine,
        "head_node_hostname": host,
        "hosted_zone": cluster.get("hosted_zone", ""),
        "dns_domain": cluster.get("dns_domain", ""),
        "instance_id": instance_id(),
    }
    heartbeat = {"clustermgtd_heartbeat_file_path": str(HEARTBEAT)}
    files = {
        "clustermgtd": {**common, "heartbeat_file_path": str(HEARTBEAT), "loop_time": "5"},
        "slurm_resume": {**common, **heartbeat},
        "slurm_suspend": {"clustermgtd_timeout": "300", **heartbeat},
        "slurm_fleet_status_manager": common,
    }
    for name, values in files.items():
        write(PLUGIN / f"parallelcluster_{name}.conf", slurm.daemon_conf(name, values))
    shared = {"region": common["region"], "cluster_name": common["cluster_name"], **heartbeat}
    write(PCLUSTER / ".slurm_plugin" / "parallelcluster_computemgtd.conf", slurm.daemon_conf("computemgtd", shared))


def finalize(cluster: Item) -> None:
    """The daemons; the head node is ready when its static nodes are."""
    if cluster["node_type"] == "ComputeFleet":
        begun = datetime.now()
        run("systemctl", "start", "sandbox-slurmd.service", "sandbox-computemgtd.service")
        _resume_static_node((PLUGIN / "slurm_nodename").read_text(encoding="utf-8").strip(), begun)
        return
    if cluster["node_type"] != "HeadNode":
        return
    for unit in ("clustermgtd", "clusterstatusmgtd", "cfn-hup"):
        run("systemctl", "start", f"sandbox-{unit}.service")
    _wait_for_static_nodes(configuration(cluster))


def _resume_static_node(name: str, begun: datetime) -> None:
    """Take a static node into service: clustermgtd has set it DOWN before it launched the instance.

    As in the cookbook's recipe, Slurm's refusal for a node that takes jobs already is no error. A machine has started
    long before; here slurmd says that it started with slurmd (-b), and a start that is later than the resume is taken
    for a reboot. So slurmctld has to know of it first.
    """
    if "-st-" in name:
        until = time.monotonic() + 30
        while _boot_time(name) < begun.isoformat(timespec="seconds") and time.monotonic() < until:
            time.sleep(0.2)
        command = ["/opt/slurm/bin/scontrol", "update", f"nodename={name}", "state=resume", "reason=Node start up"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        LOG.info("resume %s: code %d %s", name, done.returncode, done.stderr.strip())


def _boot_time(name: str) -> str:
    """When a node started, as slurmctld was told; '' where it was not."""
    shown = ["/opt/slurm/bin/scontrol", "show", "node", name]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    found = re.search(r"BootTime=(\d\S+)", done.stdout)
    return found[1] if found else ""


def _wait_for_static_nodes(settings: Item, seconds: float = 2100) -> None:
    """Until every static node takes jobs.

    Raises:
        BootstrapError: some do not in time, or Slurm's partitions were taken out of service.
    """
    static = [slurm.node_sets(queue, one)["st"] for queue, one in slurm.resources(settings) if slurm.counts(one)[0]]
    until = time.monotonic() + seconds
    while static:
        sinfo = ["/opt/slurm/bin/sinfo", "--noheader", "--Node", "--nodes", ",".join(static), "--format=%N %T"]
        done = subprocess.run(sinfo, capture_output=True, text=True, check=False)
        states = dict(line.split() for line in done.stdout.splitlines())
        waiting = sorted(name for name, state in states.items() if state not in ("idle", "mixed", "allocated"))
        if states and not waiting:
            return
        if status().get("status") == "PROTECTED":
            raise BootstrapError("Cluster has been set to PROTECTED mode due to failures in static node provisioning")
        if time.monotonic() > until:
            raise BootstrapError(f"Static nodes did not come up in time: {', '.join(waiting)}")
        time.sleep(2)


def update(cluster: Item) -> None:
    """After an update of the stack: other files, and the daemons that read them."""
    write_files(cluster)
    storage.mount(cluster)
    run("systemctl", "restart", "slurmctld.service")
    run("systemctl", "restart", "sandbox-clustermgtd.service")


def main(arguments: list[str]) -> int:
    log_to("/var/log/chef-client.log")
    parser = argparse.ArgumentParser()
    parser.add_argument("--override-runlist", required=True)
    known, _rest = parser.parse_known_args(arguments)
    name = known.override_runlist.rpartition("::")[2]
    recipe = {"init": init, "config": config, "finalize": finalize, "update": update}[name]
    try:
        LOG.info("recipe %s", name)
        recipe(attributes())
    except (BootstrapError, OSError, subprocess.SubprocessError, KeyError, StopIteration) as error:
        LOG.exception("recipe %s failed", name)
        fail(f"Failed to run the recipe {name}: {error}")
        return 1
    return 0
