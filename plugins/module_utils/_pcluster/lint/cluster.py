# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about the cluster as a whole: its name, access to it, rights, scripts, tags and accounting.

Source: the ParallelCluster 3.16 documentation, and what its dry run was seen to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import WIDEST, wide_networks
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.actions import SSM_POLICY, bucket_of
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.queues import repeated
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import (
    WARNING,
    Finding,
    View,
    entries,
    queues,
    section,
    text,
)

_CLUSTER_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
MAXIMUM_TAGS = 40
MAXIMUM_POOLS = 10
POOLS = ("LoginNodes", "Pools")
# What no cluster can do without.
REQUIRED = {
    ("Image", "Os"): "name the operating system; Neuron runs on ubuntu2404",
    ("HeadNode", "InstanceType"): "name the head node's instance type, such as m5.2xlarge",
    ("HeadNode", "Networking", "SubnetId"): "name the head node's subnet, a public one if you log in by ssh",
    ("Scheduling", "Scheduler"): "set it to slurm",
    ("Scheduling", "SlurmQueues"): "describe at least one queue",
}


def name(view: View) -> Iterator[Finding]:
    settings = section(view.configuration, "Scheduling", "SlurmSettings")
    accounting = bool(settings.get("Database") or settings.get("ExternalSlurmdbd"))
    limit = 40 if accounting else 60
    if not _CLUSTER_NAME.fullmatch(view.cluster_name):
        yield Finding(
            "cluster_name",
            f"{view.cluster_name!r} may have letters, digits and hyphens only and begins with a letter; change it",
        )
    if len(view.cluster_name) > limit:
        why = " with Slurm accounting" if accounting else ""
        yield Finding(
            "cluster_name",
            f"{view.cluster_name!r} has {len(view.cluster_name)} characters, and ParallelCluster takes "
            f"{limit}{why}; shorten it",
        )


def required(view: View) -> Iterator[Finding]:
    for path, remedy in REQUIRED.items():
        if not section(view.configuration, *path[:-1]).get(path[-1]):
            yield Finding("/".join(path), f"is missing; {remedy}")


def doors(view: View) -> Iterator[Finding]:
    """Who may log in. Without AllowedIps ParallelCluster opens ssh to the whole world."""
    head = section(view.configuration, "HeadNode")
    allowed = []
    for key, holder in [("HeadNode", head), *entries(view.configuration, *POOLS)]:
        if holder is head or "AllowedIps" in section(holder, "Ssh"):
            allowed.append((f"{key}/Ssh/AllowedIps", section(holder, "Ssh").get("AllowedIps")))
        if section(holder, "Dcv").get("Enabled") is True:
            allowed.append((f"{key}/Dcv/AllowedIps", section(holder, "Dcv").get("AllowedIps")))
    for key, value in allowed:
        if value is None:
            yield Finding(
                key,
                "is missing, and without it the whole Internet may knock; give the addresses that may log in, "
                "such as 198.51.100.7/32",
            )
        # A network, or the id of a prefix list. How narrow one has to be beyond this is the roles' to say.
        elif not str(value).startswith("pl-"):
            for clause in wide_networks([str(value)], WIDEST):
                yield Finding(key, f"{clause}; give the addresses that may log in, such as 198.51.100.7/32")


def a_way_in(view: View) -> Iterator[Finding]:
    head = section(view.configuration, "HeadNode")
    iam = section(head, "Iam")
    policies = [text(item.get("Policy")) for _key, item in entries(iam, "AdditionalIamPolicies")]
    own_role = iam.get("InstanceRole") or iam.get("InstanceProfile")
    if section(head, "Ssh").get("KeyName") or own_role or any(SSM_POLICY in policy for policy in policies):
        return
    yield Finding(
        "HeadNode/Ssh/KeyName",
        "there is neither a key nor Session Manager, so that nobody can log in; give one of them",
        WARNING,
    )


def metadata(view: View) -> Iterator[Finding]:
    if section(view.configuration, "Imds").get("ImdsSupport") == "v1.0":
        problem = "v1.0 gives a node's credentials to whoever can make it fetch a URL; set v2.0"
        yield Finding("Imds/ImdsSupport", problem, WARNING)
    if section(view.configuration, "HeadNode", "Imds").get("Secured") is False:
        problem = "every user of the head node would have its rights; set it to true"
        yield Finding("HeadNode/Imds/Secured", problem, WARNING)


def tags(view: View) -> Iterator[Finding]:
    holders: list[tuple[str, Mapping[str, Any]]] = [("", view.configuration), *queues(view)]
    for under, holder in holders:
        found = list(entries(holder, "Tags", under=under))
        prefix = f"{under}/Tags" if under else "Tags"
        if len(found) > MAXIMUM_TAGS:
            yield Finding(prefix, f"there are {len(found)} tags, and {MAXIMUM_TAGS} fit; remove some")
        yield from repeated("tag", [(f"{key}/Key", item.get("Key")) for key, item in found])
        for key, item in found:
            if text(item.get("Key")).lower().startswith(("aws:", "parallelcluster:")):
                yield Finding(f"{key}/Key", f"the prefix of {item['Key']!r} is reserved; choose another key")


def _scripts(holder: Mapping[str, Any], under: str) -> Iterator[tuple[str, str]]:
    """The URLs of a node's scripts with their keys."""
    for event, action in section(holder, "CustomActions").items():
        key = f"{under}/CustomActions/{event}"
        if "Script" in section(action):
            yield f"{key}/Script", text(section(action)["Script"])
        for item_key, item in entries(action, "Sequence", under=key):
            yield f"{item_key}/Script", text(item.get("Script"))


def scripts(view: View) -> Iterator[Finding]:
    """Scripts that a node could not fetch when it boots, 10 minutes into the creation of the cluster."""
    holders = [("HeadNode", section(view.configuration, "HeadNode")), *queues(view)]
    for under, holder in holders:
        iam = section(holder, "Iam")
        own_role = iam.get("InstanceRole") or iam.get("InstanceProfile")
        access = [item for _key, item in entries(iam, "S3Access")]
        for key, url in _scripts(holder, under):
            yield from _url(key, url)
            bucket, path = bucket_of(url)
            if bucket and not own_role and not any(_reads(item, bucket, path) for item in access):
                yield Finding(
                    key,
                    f"the node may not read {url}; list the bucket in {under}/Iam/S3Access, or let its role read it",
                )
    for under, holder in entries(view.configuration, *POOLS):
        for key, url in _scripts(holder, under):
            yield from _url(key, url)


def _url(key: str, url: str) -> Iterator[Finding]:
    if not url.startswith(("s3://", "https://")):
        yield Finding(key, f"{url!r} is no script's URL; put it in S3 and write s3://bucket/key, or use https")
    elif url.startswith("s3://") and not all(bucket_of(url)):
        yield Finding(key, f"{url} lacks the bucket or the script; write s3://bucket/key")


def _reads(access: Mapping[str, Any], bucket: str, path: str) -> bool:
    return fnmatchcase(bucket, text(access.get("BucketName"))) and (
        access.get("KeyName") is None or fnmatchcase(path, text(access["KeyName"]))
    )


def accounting(view: View) -> Iterator[Finding]:
    settings = section(view.configuration, "Scheduling", "SlurmSettings")
    database, key = section(settings, "Database"), "Scheduling/SlurmSettings/Database"
    if database and settings.get("ExternalSlurmdbd"):
        yield Finding(key, "there is an ExternalSlurmdbd as well; keep one of the two")
    uri = text(database.get("Uri"))
    if "://" in uri or uri.startswith("/"):
        yield Finding(f"{key}/Uri", f"{uri!r} has a scheme or a slash before the host; write host:3306")
    region, secret = text(view.configuration.get("Region")), text(database.get("PasswordSecretArn"))
    if region and secret.count(":") >= 4 and secret.split(":")[3] != region:
        yield Finding(
            f"{key}/PasswordSecretArn",
            f"the secret is in {secret.split(':')[3]} and the cluster in {region}; use a secret of it",
        )


def login_pools(view: View) -> Iterator[Finding]:
    pools = list(entries(view.configuration, *POOLS))
    yield from repeated("login pool", [(f"{key}/Name", item.get("Name")) for key, item in pools])
    if len(pools) > MAXIMUM_POOLS:
        yield Finding("LoginNodes/Pools", f"there are {len(pools)} pools, and {MAXIMUM_POOLS} fit; remove some")


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    name,
    required,
    doors,
    a_way_in,
    metadata,
    tags,
    scripts,
    accounting,
    login_pools,
)
