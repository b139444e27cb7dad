"""Time and memory of ansible-inventory --list: trainium.cluster.nodes against amazon.aws.aws_ec2, in the same run.

    python -m tests.benchmarks.inventory [instances ...] [--parallelcluster] [--url http://127.0.0.1:5199]

It starts an emulator of its own unless told of one, launches a hundred instances with eight EFA interfaces each, and
answers DescribeInstances with as many like them as are asked for (2, 64 and 5000 by default), so that the emulator's
own time is in no figure. It lists them with both plugins, and with Ansible's jsonfile cache twice more, and prints what
each took beside what Ansible needs to list nothing. Exit status 1 if nodes does not find all of them, or if what it
finds in the cache is something else. With --parallelcluster the instances are compute nodes of one, whose names in
Slurm are in its table.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import boto3

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "us-west-2"
TYPE = "trn1.32xlarge"
BATCH = 100
SPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
# Ids and addresses, by which the instances of a batch are told from those of another.
OWN = re.compile(rb"\b((?:i|eni|eni-attach|vol|r|eipalloc)-)[0-9a-f]{3}|\b(10[.-])0(?=[.-])")
TABLE = "parallelcluster-slurm-benchmark"
PARALLELCLUSTER = {
    "parallelcluster:cluster-name": "benchmark",
    "parallelcluster:node-type": "Compute",
    "parallelcluster:queue-name": "train",
    "parallelcluster:compute-resource-name": "trn1",
}
CACHE = "cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {folder}/cache\n"
NODES = "plugin: trainium.cluster.nodes\ncluster_name: benchmark\nregions: [us-west-2]\n"
# What is listed, by the file's name, which tells each plugin that the file is meant for it.
SOURCES = {
    "nothing.ini": "",
    "nodes.yml": NODES,
    "cached.nodes.yml": NODES + CACHE,
    "aws_ec2.yml": (
        f"plugin: amazon.aws.aws_ec2\nregions: [{REGION}]\nfilters:\n  tag:trainium:cluster: benchmark\n"
        "  instance-state-name: [pending, running]\n"
    ),
}
RUNS = ("nothing.ini", "nodes.yml", "aws_ec2.yml", "cached.nodes.yml", "cached.nodes.yml")
# A process counts the memory of the one that started it as its own: a small one starts it.
WATCH = """
import json, os, sys
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024], file)
"""


class Cost(NamedTuple):
    """What one listing took; seconds, MiB of resident memory at the peak, MiB of JSON; and what it was."""

    hosts: int
    wall: float
    cpu: float
    memory: float
    output: float
    listed: bytes


class Pages(http.server.ThreadingHTTPServer):
    """EC2 as far as it is asked here: the pages of DescribeInstances over ``instances``."""

    instances: list[bytes]

    def page(self, first: int, size: int) -> bytes:
        """Some instances, each batch a reservation as it was launched."""
        last = min(first + size, len(self.instances))
        batches = [self.instances[start : min(start + BATCH, last)] for start in range(first, last, BATCH)]
        reservations = b"".join(
            b"<item><reservationId>r-1</reservationId><ownerId>1</ownerId><groupSet/><instancesSet>%b</instancesSet></item>"
            % b"".join(batch)
            for batch in batches
        )
        token = b"<nextToken>%d</nextToken>" % last if last < len(self.instances) else b""
        answer = (
            b'<DescribeInstancesResponse xmlns="%b"><requestId>1</requestId><reservationSet>%b</reservationSet>%b%b'
        )
        return answer % (SPACE.encode(), reservations, token, b"</DescribeInstancesResponse>")


class Answer(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Pages
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = dict(urllib.parse.parse_qsl(text))
        known = asked["Action"] == "DescribeInstances"
        body = self.server.page(int(asked.get("NextToken", 0)), int(asked.get("MaxResults", 1000))) if known else b""
        self.send_response(200 if known else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the screen."""


@contextlib.contextmanager
def pages(instances: list[bytes]) -> Iterator[str]:
    """The URL of a server that has these instances."""
    server = Pages(("127.0.0.1", 0), Answer)
    server.instances = instances
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def alike(ec2: Any, count: int) -> list[bytes]:
    """As many instances as DescribeInstances shows them, by those that there are."""
    bodies: list[bytes] = []
    ec2.meta.events.register(
        "before-parse.ec2.DescribeInstances", lambda response_dict, **_more: bodies.append(response_dict["body"])
    )
    ec2.describe_instances()
    root = ElementTree.fromstring(bodies[0])  # noqa: S314 - our own
    space = root.tag.partition("}")[0].lstrip("{")
    ElementTree.register_namespace("", space)
    found = root.iterfind(".//{*}instancesSet/{*}item")
    models = [ElementTree.tostring(one).replace(f' xmlns="{space}"'.encode(), b"") for one in found]

    def other(batch: int) -> Any:
        return lambda match: match[1] + b"%03x" % batch if match[1] else match[2] + b"%d" % batch

    return [OWN.sub(other(number // BATCH), models[number % BATCH]) for number in range(count)]


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


def launch(ec2: Any, more: dict[str, str]) -> None:
    """Start a batch of instances with eight EFA interfaces and ``more`` tags."""
    offerings = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [TYPE]}]
    )["InstanceTypeOfferings"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/16", AvailabilityZone=offerings[0]["Location"])["Subnet"]
    group = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc)["GroupId"]
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    every = {"trainium:cluster": "benchmark", "trainium:role": "compute", **more}
    tags = [{"Key": key, "Value": value} for key, value in every.items()]
    ec2.run_instances(
        ImageId=image,
        InstanceType=TYPE,
        MinCount=BATCH,
        MaxCount=BATCH,
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


def measure(source: str, endpoints: dict[str, str], folder: Path) -> Cost:
    """List the inventory once, in a process of its own."""
    path, output = folder / source, folder / f"{source}.json"
    path.write_text(SOURCES[source].format(folder=folder), encoding="utf-8")
    environment = {
        **os.environ,
        **endpoints,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    program = Path(sys.executable).parent / "ansible-inventory"
    started = time.perf_counter()
    usage = folder / "usage.json"
    command = [sys.executable, "-S", "-c", WATCH, str(usage), str(program), "-i", str(path), "--list"]
    with output.open("wb") as stream:
        subprocess.run(command, env=environment, stdout=stream, check=True)
    wall = time.perf_counter() - started
    status, cpu, memory = json.loads(usage.read_text(encoding="utf-8"))
    if status:
        raise SystemExit(f"ansible-inventory with {source} ended with status {status}.")
    listed = output.read_bytes()
    return Cost(
        len(json.loads(listed)["_meta"]["hostvars"]),
        wall,
        cpu,
        memory,
        len(listed) / 2**20,
        listed,
    )


def compare(count: int, instances: list[bytes], url: str) -> bool:
    """List ``count`` instances in every way and print what it took; whether everything was found."""
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder, pages(instances[:count]) as ec2:
        for source in RUNS:
            costs.append(measure(source, {"AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_EC2": ec2}, Path(folder)))
    nothing, ours, theirs, filled, hit = costs
    print(f"{count} instances {'':9} {'hosts':>6} {'wall s':>8} {'CPU s':>8} {'MiB':>8} {'JSON MiB':>9}")
    for title, cost in zip(("Ansible alone", "nodes", "aws_ec2", "nodes, fills cache", "nodes, cache hit"), costs):
        print(f"{title:20} {cost.hosts:6} {cost.wall:8.2f} {cost.cpu:8.2f} {cost.memory:8.0f} {cost.output:9.2f}")
    ratios = (ours.wall / theirs.wall, ours.cpu / theirs.cpu, ours.memory / theirs.memory, ours.output / theirs.output)
    print("{:27} {:8.2f} {:8.2f} {:8.2f} {:9.2f}".format("nodes / aws_ec2", *ratios))
    above = (hit.wall - nothing.wall, hit.cpu - nothing.cpu, hit.memory - nothing.memory)
    print("{:27} {:8.2f} {:8.2f} {:8.0f}\n".format("cache hit - Ansible alone", *above), flush=True)
    same = hit.listed.replace(b"cached.nodes.yml", b"nodes.yml") == ours.listed.replace(
        b"cached.nodes.yml", b"nodes.yml"
    )
    return ours.hosts == filled.hosts == count and same


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("instances", type=int, nargs="*", default=[2, 64, 5000])
    parser.add_argument("--parallelcluster", action="store_true", help="the instances are a ParallelCluster's")
    parser.add_argument("--url", help="an emulator that is running already")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        url = arguments.url or stack.enter_context(emulator())
        launch(client("ec2", url), PARALLELCLUSTER if arguments.parallelcluster else {})
        instances = alike(client("ec2", url), max(arguments.instances))
        if arguments.parallelcluster:
            found = [re.search(rb"<instanceId>([^<]+)", one) for one in instances]
            name(client("dynamodb", url), [match[1].decode() for match in found if match])
        whole = [compare(count, instances, url) for count in arguments.instances]
    return 0 if all(whole) else 1


if __name__ == "__main__":
    sys.exit(main())
