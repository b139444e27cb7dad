# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The table of what a cluster can have: how it is looked for, what names it, and how it is deleted. Pure.

`KINDS` stands in the order of deletion: what uses something else comes before it, as EC2 would refuse otherwise with
DependencyViolation (https://docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html). A further kind is
a further line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    ROLE_TAG,
    SET_TAG,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_balancers

Item = dict[str, Any]
Request = tuple[str, Item]


class Step(NamedTuple):
    """A call for one resource, or with ``each`` for every element of that list in it.

    ``fields`` are arguments that are taken from the element, else from the resource. ``most`` is how many resources
    one call takes.
    """

    operation: str
    fields: tuple[str, ...]
    each: str = ""
    most: int = 1


class Kind(NamedTuple):
    """``name`` is for the reader.

    ``look`` lists the resources, below ``items`` of the answer; ``identity`` is the field that names one. Those in a
    state of ``gone`` are none any more, those in one of ``going`` are left to go. Whoever deletes waits up to ``wait``
    seconds until nothing of the kind is found.

    A kind without ``look`` is found and deleted by the part of the collection that makes it.
    """

    name: str
    look: str = ""
    items: tuple[str, ...] = ()
    identity: str = ""
    steps: tuple[Step, ...] = ()
    gone: tuple[str, ...] = ()
    going: tuple[str, ...] = ()
    wait: int = 0
    filters: str = "Filters"
    # Where the tag of the cluster alone may be somebody else's: one of these must be there as well.
    marks: tuple[str, ...] = ()
    # Keys and values of tags, one of which it must have; braces are the cluster's name. Where it is not the tag of the
    # collection, others gave it, and what counts lies in a VPC of the cluster as well.
    tags: tuple[tuple[str, str], ...] = ((CLUSTER_TAG, "{}"),)

    @property
    def is_of_others(self) -> bool:
        return self.tags[0][0] != CLUSTER_TAG


def _kind(name: str, identity: str, *steps: Step | str, called: str = "", **more: Any) -> Kind:
    """A kind that EC2 describes by a call of its name, or of what it is ``called`` there.

    A step that is only the name of its call takes what names the resource.
    """
    called = called or name.lower().replace(" ", "_")
    whole = tuple(Step(step, (identity,)) if isinstance(step, str) else step for step in steps)
    more.setdefault("items", (called.title().replace("_", ""),))
    return Kind(name, f"describe_{called}", identity=identity, steps=whole, **more)


KINDS = (
    # Their Auto Scaling groups would replace instances. With them go add-ons, entries, interfaces of control planes.
    Kind("EKS clusters"),
    # Users' Services and Ingresses made them, and while the cluster was there it could have made them again.
    Kind("load balancers"),
    # What runs is billed most, and uses nearly all that follows.
    _kind(
        *("instances", "InstanceId", Step("terminate_instances", ("InstanceIds",), most=100)),
        items=("Reservations", "Instances"),
        gone=("terminated",),
        going=("shutting-down",),
        wait=1800,
    ),
    # The instances used them. They cost nothing, but their names would be taken.
    Kind("instance profiles"),
    # Instances outlive their reservation and would be billed by themselves.
    Kind("capacity reservations"),
    # Their network interfaces are FSx's own, and keep subnets and security groups from being deleted.
    Kind("file systems"),
    # So are those of their mount targets.
    Kind("EFS file systems"),
    # They hold an address and a network interface until they are gone. A failed one holds neither and is not billed;
    # EC2 removes it after about an hour (https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html).
    _kind(
        *("NAT gateways", "NatGatewayId", "delete_nat_gateway"),
        gone=("deleted", "failed"),
        going=("deleting",),
        wait=600,
        filters="Filter",
    ),
    # One with the tag of the cluster alone was lent by the user (see _ec2/addresses.py) and stays the user's.
    _kind("addresses", "PublicIp", Step("release_address", ("AllocationId",)), marks=(SET_TAG, ROLE_TAG)),
    # Their routes are in the route tables.
    _kind(
        *("VPC endpoints", "VpcEndpointId", Step("delete_vpc_endpoints", ("VpcEndpointIds",))),
        gone=("deleted",),
        going=("deleting",),
        wait=300,
    ),
    # Node groups of EKS have used them.
    _kind("launch templates", "LaunchTemplateId", "delete_launch_template"),
    # These two outlived their instances.
    _kind("volumes", "VolumeId", "delete_volume", going=("deleting",), wait=120),
    _kind("network interfaces", "NetworkInterfaceId", "delete_network_interface"),
    _kind(
        *("placement groups", "GroupName", "delete_placement_group"), gone=("deleted",), going=("deleting",), wait=120
    ),
    # From here on everything lies in the VPC, which goes last. They are AWS's own and go by themselves.
    Kind("interfaces of load balancers"),
    _kind("security groups", "GroupId", "delete_security_group"),
    # Those of load balancers, which the nodes' own let in; and that of EKS, where it stayed.
    _kind(
        *("security groups of Kubernetes", "GroupId", "delete_security_group"),
        called="security_groups",
        tags=plan_balancers.TAGS,
    ),
    _kind(
        *("route tables", "RouteTableId"),
        Step("disassociate_route_table", ("AssociationId",), "Associations"),
        "delete_route_table",
    ),
    _kind(
        *("internet gateways", "InternetGatewayId"),
        Step("detach_internet_gateway", ("InternetGatewayId", "VpcId"), "Attachments"),
        "delete_internet_gateway",
    ),
    _kind("subnets", "SubnetId", "delete_subnet"),
    _kind("VPCs", "VpcId", "delete_vpc"),
    _kind("key pairs", "KeyName", "delete_key_pair"),
    # Nothing pulls from them any more.
    Kind("repositories of images"),
    # What they were for is gone.
    Kind("IAM roles"),
    Kind("log groups"),
)

# What lies in a VPC and costs nothing: it stays where a file system is kept that cannot leave its network.
FRAME = ("security groups", "security groups of Kubernetes", "route tables", "internet gateways", "subnets", "VPCs")
# EC2 may still have network interfaces of these when they are gone. The last is told of a file system that stays.
LINGERING = ("file systems", "EFS file systems", "EFS mount targets")
# Whose owner is still there where a cluster of EKS could not be deleted.
OF_EKS = ("IAM roles", "load balancers", "interfaces of load balancers")


def state_of(item: Mapping[str, Any]) -> str:
    """The state in small letters, '' where the kind has none; EC2 writes some with a capital, and some as a record."""
    state = item.get("State") or ""
    return str(state.get("Name") or "" if isinstance(state, Mapping) else state).lower()


def found_in(kind: Kind, answer: Mapping[str, Any]) -> list[Item]:
    """The resources of a kind that an answer shows and that are not gone."""
    items: list[Any] = [answer]
    for key in kind.items:
        items = [inner for item in items for inner in item.get(key) or ()]
    there = [item for item in items if state_of(item) not in kind.gone]
    return [item for item in there if not kind.marks or any(mark in tags_of(item) for mark in kind.marks)]


def read_of(kind: Kind) -> set[str]:
    """The fields of a resource that its look and its deletion read."""
    steps = {field for step in kind.steps for field in (step.each, *step.fields) if field}
    return {kind.identity, "Tags", "TagSet", "State", "VpcId", "Attachments", *steps}


def is_of_eks(kind: Kind, item: Item) -> bool:
    """Whether a node group of EKS uses it: its instances, which it would replace, and the templates that it needs then.

    EKS tags the instances of managed node groups (EKS user guide, "Tag your Amazon EKS resources"); nothing else here
    makes launch templates.
    """
    return kind.is_of_others or kind.name == "launch templates" or "eks:cluster-name" in tags_of(item)


def is_in(item: Mapping[str, Any], networks: Collection[str]) -> bool:
    """Whether a resource is one of these VPCs, lies in one, or is attached to one."""
    return any(one.get("VpcId") in networks for one in (item, *(item.get("Attachments") or ())))


def names_of(kind: Kind, items: list[Item]) -> list[str]:
    """What they are called, sorted."""
    return sorted(str(item[kind.identity]) for item in items)


def deletion(kind: Kind, item: Item) -> Iterator[Request]:
    """The calls that delete a resource, in order; none where it goes already."""
    if state_of(item) in kind.going:
        return
    for step in kind.steps:
        for element in item.get(step.each) or () if step.each else (item,):
            yield step.operation, dict(_argument(field, {**item, **element}) for field in step.fields)


def together(kind: Kind, items: list[Item]) -> Iterator[list[str]]:
    """The names of those that one call each can delete; none where the kind's call takes one.

    EC2 refuses a call for one instance in it that is protected or not there, and then others may stay as well
    (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html). Up to 1,000 are allowed.
    """
    for step in kind.steps:
        names = names_of(kind, [item for item in items if state_of(item) not in kind.going])
        for start in range(0, len(names), step.most) if step.most > 1 else ():
            yield names[start : start + step.most]


def _argument(name: str, values: Mapping[str, Any]) -> tuple[str, Any]:
    """An argument of a call; the plural of a field takes a list of one."""
    if name == "AssociationId":
        return name, values["RouteTableAssociationId"]
    return name, values[name] if name in values else [values[name.removesuffix("s")]]
