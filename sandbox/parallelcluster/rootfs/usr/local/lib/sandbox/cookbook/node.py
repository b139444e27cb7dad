"""What a node knows of itself: its attributes, its instance and its cluster's configuration."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import yaml

ATTRIBUTES = Path("/etc/chef/dna.json")
SHARED = Path("/opt/parallelcluster/shared")
PLUGIN = Path("/etc/parallelcluster/slurm_plugin")
ERROR = Path("/var/log/parallelcluster/bootstrap_error_msg")
LOG = logging.getLogger("chef-client")
SLURM = Path("/opt/slurm")

os.environ.setdefault("AWS_CONFIG_FILE", "/etc/aws/config")
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")


class BootstrapError(Exception):
    """A node that cannot be set up; the text is what CloudFormation is told."""


def attributes() -> dict[str, Any]:
    """``cluster`` of dna.json."""
    cluster: dict[str, Any] = json.loads(ATTRIBUTES.read_text(encoding="utf-8"))["cluster"]
    return cluster


def client(service: str) -> Any:
    make: Any = boto3.client
    return make(service)


def instance_id() -> str:
    return Path("/seed/instance-id").read_text(encoding="utf-8").strip()


def object_of(bucket: str, key: str) -> bytes:
    """An object of S3."""
    content: bytes = client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return content


def configuration(cluster: dict[str, Any]) -> dict[str, Any]:
    """The cluster's configuration, as ``pcluster`` put it into its bucket."""
    loaded: dict[str, Any] = yaml.safe_load(object_of(cluster["cluster_s3_bucket"], cluster["cluster_config_s3_key"]))
    return loaded


def instance_types(cluster: dict[str, Any]) -> dict[str, Any]:
    """Instance type -> what DescribeInstanceTypes said of it when the cluster was made."""
    data: dict[str, Any] = json.loads(object_of(cluster["cluster_s3_bucket"], cluster["instance_types_data_s3_key"]))
    return data


def address() -> str:
    """The primary address of this node."""
    answer = client("ec2").describe_instances(InstanceIds=[instance_id()])
    return str(answer["Reservations"][0]["Instances"][0]["PrivateIpAddress"])


def run(*command: str, **options: Any) -> None:
    """Run a command to its end, its output in this program's.

    Raises:
        BootstrapError: it failed.
    """
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    LOG.info("%s: code %s\n%s", " ".join(command), done.returncode, done.stdout)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise BootstrapError(f"{' '.join(command)} failed: {last}")


def write(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write a file; whether it is another one now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return before != text


def log_to(path: str) -> None:
    """Log into a file and to the output."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [logging.FileHandler(path), logging.StreamHandler(sys.stdout)]
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s: %(message)s", handlers=handlers)
    logging.getLogger("botocore").setLevel(logging.WARNING)


def fail(message: str) -> None:
    """Say why the bootstrap failed, where the user data and people look for it."""
    LOG.error("%s", message)
    if not ERROR.exists():
        write(ERROR, message + "\n")
