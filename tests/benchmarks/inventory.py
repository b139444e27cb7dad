"""Time and memory of ansible-inventory --list: trainium.cluster.nodes against amazon.aws.aws_ec2, in the same run.

    python tests/benchmarks/inventory.py [instances] [--parallelcluster] [--url http://127.0.0.1:5199]

It starts an emulator of its own unless told of one, launches the instances (1000 by default) with eight EFA
interfaces each, lists them with both plugins and prints what each took and the ratio. Exit status 1 if nodes does not
find all of them. With --parallelcluster the instances are compute nodes of one, whose names in Slurm are in its table.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "us-west-2"
TYPE = "trn1.32xlarge"
BATCH = 100
TABLE = "parallelcluster-slurm-benchmark"
PARALLELCLUSTER = {
    "parallelcluster:cluster-name": "benchmark",
    "parallelcluster:node-type": "Compute",
    "parallelcluster:queue-name": "train",
    "parallelcluster:compute-resource-name": "trn1",
}
SOURCES = {
    "nodes": "plugin: trainium.cluster.nodes\ncluster_name: benchmark\n",
    "aws_ec2": (
        f"plugin: amazon.aws.aws_ec2\nregions: [{REGION}]\nfilters:\n  tag:trainium:cluster: benchmark\n"
        "  instance-state-name: [pending, running]\n"
    ),
}


class Cost(NamedTuple):
    """What one listing took; seconds, MiB of resident memory at the peak, MiB of JSON."""

    hosts: int
    wall: float
    cpu: float
    memory: float
    output: float


@contextlib.contextmanager
def emulator() -> Iterator[str]:
    """An emulator on a free port for as long as the block runs; gives its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tempfile.TemporaryDirectory()
    command = [sys.executable, "-m", "sandbox.emulator", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--token-file", f"{folder.name}/token"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"The emulator did not start; run {' '.join(command)} to see why.")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        folder.cleanup()


def healthy(port: int) -> bool:
    """Whether the emulator on this port answers; without its token it only says that it is there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/sandbox-api/health")
        return connection.getresponse().status == http.HTTPStatus.UNAUTHORIZED
    except OSError:
        return False
    finally:
        connection.close()


def client(service: str, url: str) -> Any:
    """A client of the emulator."""
    make: Any = boto3.client
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    return make(service, region_name=REGION, endpoint_url=url, **keys)


def launch(ec2: Any, count: int, more: dict[str, str]) -> list[str]:
    """Start ``count`` instances with eight EFA interfaces and ``more`` tags, 100 at a time; gives their ids."""
    offerings = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [TYPE]}]
    )["InstanceTypeOfferings"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/16", AvailabilityZone=offerings[0]["Location"])["Subnet"]
    group = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc)["GroupId"]
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    every = {"trainium:cluster": "benchmark", "trainium:role": "compute", **more}
    tags = [{"Key": key, "Value": value} for key, value in every.items()]
    made = []
    for start in range(0, count, BATCH):
        number = min(BATCH, count - start)
        reply = ec2.run_instances(
            ImageId=image,
            InstanceType=TYPE,
            MinCount=number,
            MaxCount=number,
            NetworkInterfaces=[
                {
                    "NetworkCardIndex": card,
                    "DeviceIndex": min(card, 1),
                    "InterfaceType": "efa",
                    "SubnetId": subnet["SubnetId"],
                    "Groups": [group],
                }
                for card in range(8)
            ],
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        made += [instance["InstanceId"] for instance in reply["Instances"]]
    return made


def name(dynamodb: Any, instances: list[str]) -> None:
    """The table of the names that a ParallelCluster's nodes have in Slurm."""
    dynamodb.create_table(
        TableName=TABLE,
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    items = [
        {"Id": {"S": f"train-dy-trn1-{number}"}, "InstanceId": {"S": instance}}
        for number, instance in enumerate(instances, 1)
    ]
    # BatchWriteItem takes 25 at most.
    for start in range(0, len(items), 25):
        requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        dynamodb.batch_write_item(RequestItems={TABLE: requests})


def measure(plugin: str, url: str, folder: Path) -> Cost:
    """List the inventory once, in a process of its own."""
    # The file's name tells each plugin that the file is meant for it.
    source, output = folder / f"{plugin}.yml", folder / f"{plugin}.json"
    source.write_text(SOURCES[plugin], encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    program = Path(sys.executable).parent / "ansible-inventory"
    started = time.perf_counter()
    with output.open("wb") as stream:
        process = subprocess.Popen([program, "-i", source, "--list"], env=environment, stdout=stream)
        _pid, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ansible-inventory with {plugin} ended with status {process.returncode}.")
    hosts = json.loads(output.read_bytes())["_meta"]["hostvars"]
    return Cost(
        len(hosts),
        wall,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        output.stat().st_size / 2**20,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("instances", type=int, nargs="?", default=1000)
    parser.add_argument("--parallelcluster", action="store_true", help="the instances are a ParallelCluster's")
    parser.add_argument("--url", help="an emulator that is running already")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        url = arguments.url or stack.enter_context(emulator())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ec2, dynamodb = client("ec2", url), client("dynamodb", url)
        made = launch(ec2, arguments.instances, PARALLELCLUSTER if arguments.parallelcluster else {})
        if arguments.parallelcluster:
            name(dynamodb, made)
        costs = {plugin: measure(plugin, url, folder) for plugin in SOURCES}
    print(f"{'':8} {'hosts':>6} {'wall s':>8} {'CPU s':>8} {'MiB':>8} {'JSON MiB':>9}")
    for plugin, cost in costs.items():
        print(
            f"{plugin:8} {cost.hosts:6} {cost.wall:8.2f} {cost.cpu:8.2f} {cost.memory:8.0f} {cost.output:9.2f}",
        )
    ours, theirs = costs["nodes"], costs["aws_ec2"]
    ratios = (theirs.wall / ours.wall, theirs.cpu / ours.cpu, theirs.memory / ours.memory, theirs.output / ours.output)
    print("aws_ec2 / nodes {:7.1f}x {:7.1f}x {:7.1f}x {:8.1f}x".format(*ratios))
    return 0 if ours.hosts == arguments.instances else 1


if __name__ == "__main__":
    sys.exit(main())
