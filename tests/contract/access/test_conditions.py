"""Each condition of the policies keeps something out, and what changes or deletes has one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.emulator.access.statements import allowed
from tests.contract.conftest import REPOSITORY, policy

Item = dict[str, Any]
NAMES = sorted(path.stem for path in (REPOSITORY / "docs" / "iam").glob("*.json"))
READS = re.compile(
    r"[a-z0-9-]+:(Describe|Get|List|Filter|Query|Scan|Simulate|BatchGet|BatchCheck|ReEncrypt|Decrypt|Generate)"
)
TAG = re.compile(r"(aws:(Resource|Request)Tag|iam:ResourceTag|ssm:resourceTag|aws:TagKeys)")
# Where a name or a path binds a resource, and not a tag: those of clusters, of ParallelCluster, of AWS's own roles.
OURS = re.compile(
    r":(parameter/trainium|role/trainium|instance-profile/trainium|role/aws-service-role|role/parallelcluster"
    r"|instance-profile/parallelcluster|instance-profile/ParallelClusterImage|role/PClusterBuildImageCleanupRole-"
    r"|table/parallelcluster-|function:(parallelcluster-|pcluster-|ParallelClusterImage-)|ParallelClusterImage-"
    r"|log-group:/aws/(eks/|imagebuilder/ParallelClusterImage-|lambda/ParallelClusterImage-)"
    r"|[a-z-]+/parallelclusterimage-|session/\$\{aws:userid\}-|document/AWS-StartSSHSession)"
    r"|:::(trainium-|parallelcluster-|aws-parallelcluster-)"
)
# What is bound by nothing of this, as docs/security.md says: it makes something, which needs the tag by another
# statement, or its resources have no tags of ours.
UNBOUND = {
    "capacity": {"TagWhatIsReserved"},
    "nodes": {"LaunchFrom", "LaunchInto", "LaunchIntoReservations", "LendItToVolumes"},
    "ecr": {"EncryptWithAKey"},
    "teardown": {"GiveItsKeysBack"},
    "efs": {"LetEfsMakeItsRole", "LetEfsUseTheNetwork"},
    "eks": {"LaunchByATemplate", "LaunchInto"},
    "fsx": {"EncryptWithAKey", "LetFSxMakeItsRoles"},
    "image": {"DeleteTheirSnapshots", "EndItsSubscription", "MakeItsStack"},
    "parallelcluster": {
        *("MakeNodesAndTheirNetwork", "MakeSecurityGroups", "MakeSharedFileSystems", "NameTheNodes"),
        *("WatchTheCluster", "KeepLogs", "ReadLogs"),
    },
}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def sample(pattern: str) -> str:
    """Something that a pattern fits."""
    return re.sub(r"\$\{[^}]*\}", "value", str(pattern)).replace("*", "x").replace("?", "x")


def conditions(statement: Item) -> Iterator[tuple[str, str, list[str]]]:
    for operator, keys in statement.get("Condition", {}).items():
        for key, values in keys.items():
            yield operator, key, [str(value) for value in listed(values)]


def request(statement: Item, action: str, wrong: tuple[str, str] | None = None) -> Item:
    """A need that the statement covers, or one in which a key of a condition is not as it must be."""
    tags: dict[str, str] = {}
    context: dict[str, list[str]] = {}
    for operator, key, values in sorted(conditions(statement)):
        value = "value" if operator == "Null" else sample(values[0])
        if wrong and operator.endswith("IfExists") and (operator, key) != wrong:
            # What is only compared where it is there would make it another request, which other statements allow.
            continue
        if operator == "Null" and values == ["true"]:
            if (operator, key) != wrong:
                continue
            value = "other"
        elif (operator, key) == wrong:
            if operator == "Null" or values == ["*"]:
                continue
            value = {"true": "false"}.get(value, "arn:aws:iam::aws:policy/Other" if "arn:" in value else "other")
        kind, _slash, name = key.partition("/")
        if kind.lower().endswith("resourcetag"):
            tags[name] = value
        else:
            context[key] = [value]
            # Compared with a tag of what is there.
            tags.update(dict.fromkeys(re.findall(r"\$\{aws:ResourceTag/([^}]*)\}", values[0]), "value"))
    arn = sample(listed(statement["Resource"])[0])
    return {"action": sample(action), "resources": [(arn, tags)], "context": context}


CASES = [
    (name, statement, operator, key)
    for name in NAMES
    for statement in policy(name)
    for operator, key, _values in conditions(statement)
]


@pytest.mark.parametrize(
    ("name", "statement", "operator", "key"),
    CASES,
    ids=[f"{name}-{one['Sid']}-{key}" for name, one, _operator, key in CASES],
)
def test_a_condition_keeps_something_out(name: str, statement: Item, operator: str, key: str) -> None:
    """What does not meet it is refused by the whole policy, whatever other statements say."""
    for action in statement["Action"]:
        assert allowed(policy(name), request(statement, action)), action
        assert not allowed(policy(name), request(statement, action, (operator, key))), action


@pytest.mark.parametrize("name", NAMES)
def test_what_changes_or_deletes_is_bound(name: str) -> None:
    """By a tag of the cluster, or by a name or path of its own; but for what is written down."""
    free = set()
    for statement in policy(name):
        writes = [action for action in statement["Action"] if not READS.match(action)]
        tagged = any(TAG.match(key) for _operator, key, _values in conditions(statement))
        if writes and not tagged and not all(OURS.search(resource) for resource in listed(statement["Resource"])):
            free.add(statement["Sid"])
    assert free == UNBOUND.get(name, set())


REFUSED = {
    # A grant that nobody but AWS's services may use; a key for volumes is no key for anything else.
    "nodes": [
        ("kms:CreateGrant", "arn:aws:kms:us-west-2:1:key/a", {"kms:ViaService": ["ec2.us-west-2.amazonaws.com"]}),
        ("kms:Decrypt", "arn:aws:kms:us-west-2:1:key/a", {"kms:ViaService": ["s3.us-west-2.amazonaws.com"]}),
        ("kms:Decrypt", "arn:aws:kms:us-west-2:1:key/a", {}),
        (
            "iam:CreateServiceLinkedRole",
            "arn:aws:iam::1:role/aws-service-role/spot.amazonaws.com/A",
            {"iam:AWSServiceName": ["elasticache.amazonaws.com"]},
        ),
        (
            "ec2:RunInstances",
            "arn:aws:ec2:us-west-2:1:volume/new",
            {"aws:RequestTag/trainium:cluster": ["bert"], "ec2:Encrypted": ["false"]},
        ),
        ("ec2:RunInstances", "arn:aws:ec2:us-west-2:1:instance/new", {}),
        ("ec2:RunInstances", "arn:aws:ec2:us-west-2:1:launch-template/lt-1", {}),
    ],
    # A tag in the request is none of what is there: no subnet in somebody else's VPC.
    "network": [
        (f"ec2:{action}", f"arn:aws:ec2:us-west-2:1:{kind}/a", {"aws:RequestTag/trainium:cluster": ["bert"]})
        for action, kind in (
            *(("CreateSubnet", "vpc"), ("CreateRouteTable", "vpc"), ("CreateSecurityGroup", "vpc")),
            *(("CreateNatGateway", "subnet"), ("CreateNatGateway", "elastic-ip"), ("CreateVpcEndpoint", "route-table")),
            *(("CreateVpcEndpoint", "vpc"), ("CreateRoute", "route-table"), ("DeleteKeyPair", "key-pair")),
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "action", "arn", "context"), [(name, *one) for name, every in REFUSED.items() for one in every]
)
def test_what_only_looks_like_it_is_refused(name: str, action: str, arn: str, context: dict[str, list[str]]) -> None:
    assert not allowed(policy(name), {"action": action, "resources": [(arn, {})], "context": context})


@pytest.mark.parametrize("name", ["network", "nodes"])
def test_nobody_makes_another_cluster_s_resource_their_own(name: str) -> None:
    there = [("arn:aws:ec2:us-west-2:1:instance/i-0123456789abcdef0", {"trainium:cluster": "theirs"})]
    for given, may in (
        ({"team": "a"}, True),
        ({"trainium:cluster": "theirs"}, True),
        ({"trainium:cluster": "b"}, False),
    ):
        context = {f"aws:RequestTag/{key}": [value] for key, value in given.items()}
        assert allowed(policy(name), {"action": "ec2:CreateTags", "resources": there, "context": context}) == may


@pytest.mark.parametrize("name", ["network", "nodes", "node-image"])
def test_nobody_makes_an_image_of_a_node(name: str) -> None:
    """Its disk has the keys of the cluster, and what jobs have written."""
    for role, may in (("image", True), ("head", False), ("compute", False)):
        there = [
            ("arn:aws:ec2:us-west-2:1:instance/i-0123456789abcdef0", {"trainium:cluster": "a", "trainium:role": role})
        ]
        tags = {"aws:RequestTag/trainium:role": ["image"]}
        for action, context in (("ec2:CreateImage", {}), ("ec2:CreateTags", tags)):
            known = action in {one for statement in policy(name) for one in statement["Action"]}
            need = {"action": action, "resources": there, "context": context}
            assert allowed(policy(name), need) == (may and known)


@pytest.mark.parametrize(("action", "arn"), [("DeregisterImage", "image/ami-1"), ("DeleteSnapshot", "snapshot/snap-1")])
def test_only_images_that_were_built_for_clusters_are_deleted(action: str, arn: str) -> None:
    built = {"trainium:cluster": "a", "trainium:image": "0123456789abcdef"}
    for tags, may in ((built, True), ({"trainium:cluster": "a"}, False), ({}, False)):
        there: list[tuple[str, dict[str, str]]] = [(f"arn:aws:ec2:us-west-2::{arn}", tags)]
        need = {"action": f"ec2:{action}", "resources": there, "context": {}}
        assert allowed(policy("node-image"), need) == may


def test_who_builds_images_replaces_no_script_of_nodes() -> None:
    """Each node runs what lies below node/ in the bucket of its cluster, as root."""
    for key, may in (("image/image-0123456789abcdef.sh", True), ("node/node.sh", False)):
        there: list[tuple[str, dict[str, str]]] = [(f"arn:aws:s3:::trainium-123456789012-us-west-2-bert/{key}", {})]
        assert allowed(policy("image"), {"action": "s3:PutObject", "resources": there, "context": {}}) == may
