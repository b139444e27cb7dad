# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Launching nodes for efa_instance: look everything up, then try the subnets one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.at_once import at_once
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import checks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import DEAD_STATES, Node, node_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import (
    Interface,
    efa_count,
    network_of,
    plan_interfaces,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import candidate_subnets
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import build_request, shown_request
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.vacancies import Vacancy

# Launches that EC2 remembers and whose instances are gone: as many of them are stepped over.
MAXIMUM_REPLAYS = 20
# "uses the same client token as a previous request for which the instance has been terminated" (EC2's error codes).
# EC2 remembers a token for at least 24 hours after that, but shows the instances and their tags for about one.
TERMINATED_CODE = "IdempotentInstanceTerminated"
IN_USE = "InvalidIPAddress.InUse"

Params = Mapping[str, Any]
Warn = Callable[[str], None]


class Launch(NamedTuple):
    """A launch that was found possible: all that a request is made of. ``unknown`` tells what does not exist yet.

    ``vacancy`` is the place that its single node takes over.
    """

    nodes: int
    interfaces: list[Interface]
    image: Mapping[str, Any]
    subnets: list[Mapping[str, Any]]
    unknown: list[str]
    vacancy: Vacancy | None = None

    def parts(self, vacancies: Sequence[Vacancy]) -> list[Launch]:
        """One for each place to fill, as far as there are nodes for them, and one for all other nodes."""
        filled = [self._replace(nodes=1, vacancy=vacancy) for vacancy in vacancies[: self.nodes]]
        rest = self.nodes - len(filled)
        return [*filled, *([self._replace(nodes=rest)] if rest else [])]


class LateCapacityError(TrainiumError):
    """EC2 granted the launch and then had no room for it; nothing of it is left. The message is what EC2 says."""


class Wanted(NamedTuple):
    """What EC2 says of the type and of the reservation that are asked for; None of one that it does not know."""

    type: ec2.Item | None = None
    reservation: ec2.Item | None = None

    @property
    def vcpus(self) -> dict[str, int]:
        """The vCPUs of the type, by its name."""
        return {self.type["InstanceType"]: self.type["VCpuInfo"]["DefaultVCpus"]} if self.type else {}


def interfaces_of(params: Params, wanted: Wanted) -> list[Interface]:
    """The interfaces of the layout that is asked for."""
    if wanted.type is None:
        raise TrainiumError(
            f"instance type {params['instance_type']} does not exist in this region; check instance_type"
        )
    return plan_interfaces(network_of(wanted.type), params["interface_layout"])


def group_of(params: Params, wanted: Wanted) -> str | None:
    """The placement group to launch into: that of the reservation which is named, where it was made inside one.

    "If you plan to launch instances into a cluster placement group, we recommend that you reserve capacity explicitly
    in the cluster placement group" (EC2 user guide, "Placement group rules and limitations").
    """
    asked, identity = params["placement_group"], (params["capacity_reservation"] or {}).get("id")
    group = str((wanted.reservation or {}).get("PlacementGroupArn") or "").rpartition("/")[2]
    if group and asked not in (None, group):
        raise TrainiumError(
            f"capacity reservation {identity} lies in the placement group {group}, not in {asked}; leave "
            f"placement_group out, or name {group}"
        )
    return group or asked


def prepare(
    client: ec2.Client,
    params: Params,
    wanted: Wanted,
    keep: Sequence[Node],
    count: int,
    check_mode: bool,
    warn: Warn,
    replaced: Sequence[Node] = (),
) -> Launch:
    """Look up and check everything that the launch of ``count`` nodes needs; a fixed number of calls, all at once.

    In check mode, what an earlier task would have made may be missing; it is named in ``Launch.unknown``. The nodes
    ``replaced`` have ended by then.
    """
    type_name = params["instance_type"]
    interfaces = interfaces_of(params, wanted)
    unknown = [option for option in ("image_id", "subnets", "security_groups") if not params[option]]

    found_image, zones, described, groups, *named = at_once(
        asked_if(params["image_id"], partial(ec2.describe_image, client)),
        asked_if(params["subnets"] and type_name, partial(ec2.zones_offering, client)),
        asked_if(params["subnets"], partial(ec2.describe_subnets, client)),
        asked_if(params["security_groups"], partial(ec2.describe_security_groups, client)),
        *[asked_if(params[option], partial(exists, client)) for option, _what, exists in NAMED],
    )
    image: Mapping[str, Any] = {}
    if params["image_id"]:
        checks.check_image(found_image, params["image_id"], wanted.type or {})
        image = found_image or {}
    subnets: list[Mapping[str, Any]] = []
    if params["subnets"]:
        subnets = checks.check_subnets(params["subnets"], described, zones, type_name)
        subnets = candidate_subnets(subnets, [*keep, *replaced])
    if params["security_groups"]:
        checks.check_groups(params["security_groups"], groups, subnets[0]["VpcId"] if subnets else None)
        if efa_count(interfaces) and not checks.passes_efa(groups):
            warn(
                f"The security groups {', '.join(params['security_groups'])} do not let all traffic in and out with "
                "themselves as the peer; EFA will not work between the nodes."
            )
    subnets = _with_reservation(params, wanted, subnets, count, replaced)
    unknown.extend(_missing_names(params, named, check_mode))
    return Launch(count, interfaces, image, subnets, unknown)


def asked_if(value: Any, ask: Callable[[Any], Any]) -> Callable[[], Any]:
    """The question about a value; where there is none, nothing is asked."""
    return partial(ask, value) if value else lambda: None


def _with_reservation(
    params: Params, wanted: Wanted, subnets: Any, count: int, replaced: Iterable[Node]
) -> list[Mapping[str, Any]]:
    """The subnets that the capacity reservation, if one is named, can be used in.

    A node that is terminated has given its part of the reservation back, that of a Capacity Block too: "Then, the
    available capacity in your Capacity Block will update" (EC2 user guide, "Launch instances using Capacity Blocks").
    """
    reservation_id = (params["capacity_reservation"] or {}).get("id")
    if not reservation_id:
        return list(subnets)
    count -= sum(node["capacity_reservation_id"] == reservation_id for node in replaced)
    zone = checks.check_reservation(wanted.reservation, reservation_id, params["instance_type"], count)
    return checks.in_zone(subnets, zone, reservation_id) if subnets else []


# Options that name what must exist, and by which call that is seen.
NAMED: tuple[tuple[str, str, Callable[[ec2.Client, str], bool]], ...] = (
    ("key_name", "key pair", ec2.key_pair_exists),
    ("placement_group", "placement group", ec2.placement_group_exists),
)


def _missing_names(params: Params, found: Sequence[Any], check_mode: bool) -> list[str]:
    """Options that name something which does not exist: an error, but in check mode an earlier task may make it."""
    missing = []
    for (option, what, _exists), there in zip(NAMED, found):
        if params[option] and not there:
            if not check_mode:
                raise TrainiumError(
                    f"{what} {params[option]} does not exist in this region; create it or check {option}"
                )
            missing.append(option)
    return missing


def requests(params: Params, launch: Launch, generation: int) -> list[tuple[Mapping[str, Any], dict[str, Any]]]:
    """A request for each subnet to try; one without a subnet when none exists yet.

    Who takes another's place is asked for in that one's subnet first, with its address and then with any.
    """
    vacancy = launch.vacancy
    home, place, address = (vacancy.subnet, vacancy.place, vacancy.address) if vacancy else ("", None, "")

    def build(subnet: Mapping[str, Any], wanted: str = "") -> tuple[Mapping[str, Any], dict[str, Any]]:
        whole = (launch.interfaces, launch.image, subnet["SubnetId"], launch.nodes, generation, place, wanted)
        return subnet, build_request(params, *whole)

    subnets = launch.subnets or [{"SubnetId": "", "AvailabilityZone": ""}]
    subnets = sorted(subnets, key=lambda subnet: not home or subnet["SubnetId"] != home)
    first = [build(subnets[0], address)] if home and subnets[0]["SubnetId"] == home else []
    return [*first, *map(build, subnets)]


class Launched(NamedTuple):
    """The new nodes, and every attempt that was made."""

    nodes: list[Node]
    generation: int
    attempts: list[dict[str, Any]]
    request: dict[str, Any]


def launch_nodes(
    client: ec2.Client,
    params: Params,
    launch: Launch,
    generation: int,
    arrive: Callable[[list[Node], list[Node]], None],
) -> Launched:
    """One RunInstances call for all nodes, in the first subnet that has room.

    ``arrive`` waits for the nodes of a call, or not, beginning with what EC2 shows of them; it raises LateCapacityError
    for those that find no room then.
    A token that EC2 remembers from nodes that are gone by now gives these back, or is refused: the next generation is
    tried then. Raises TrainiumError when nothing runs; other errors may leave nodes, ``launched`` among the details.
    """
    attempts: list[dict[str, Any]] = []
    for number in range(generation, generation + MAXIMUM_REPLAYS):
        full: set[str] = set()
        for place, request in requests(params, launch, number):
            if place["SubnetId"] in full:
                continue
            attempt = {"subnet_id": place["SubnetId"], "availability_zone": place["AvailabilityZone"]}
            attempts.append({**attempt, "generation": number, "outcome": "launched", "message": ""})
            try:
                nodes = [node_of(item) for item in _run(client, request, params["wait_timeout"] / 10)]
            except AwsCallError as error:
                attempts[-1].update(outcome=error.code or "failed", message=error.reason)
                if error.code == TERMINATED_CODE:
                    attempts[-1].update(outcome="replayed")
                    break
                # Such as InvalidIPAddress.InUse, where another interface has the address by now: then with any other.
                if error.code.startswith("Invalid") and "PrivateIpAddress" in request["NetworkInterfaces"][0]:
                    continue
                if error.code not in ec2.CAPACITY_CODES:
                    error.details["attempts"] = attempts
                    raise
                full.add(place["SubnetId"])
                continue
            try:
                seen = _seen(client, request["ClientToken"])
                if seen and all(node["state"] in DEAD_STATES for node in seen):
                    attempts[-1].update(outcome="replayed", message="an earlier launch whose nodes are gone")
                    break
                arrive(nodes, seen)
            except LateCapacityError as error:
                attempts[-1].update(outcome="InsufficientInstanceCapacity", message=str(error))
                full.add(place["SubnetId"])
                continue
            except TrainiumError as error:
                error.details.update(
                    attempts=attempts,
                    launched=[node["instance_id"] for node in nodes],
                    request=shown_request(request),
                )
                raise
            return Launched(nodes, number, attempts, request)
        else:
            raise _no_capacity(
                params, launch.nodes, [item for item in attempts if item["generation"] == number], attempts
            )
    raise TrainiumError(
        f"EC2 answered {MAXIMUM_REPLAYS} launches with nodes that are gone; wait an hour or choose another name",
        attempts=attempts,
    )


def _run(client: ec2.Client, request: Mapping[str, Any], patience: float) -> list[ec2.Item]:
    """One call. An interface lags behind its instance: an address that was asked for may be in use a while longer."""
    for _passed in looks(patience, every(5)):
        try:
            return ec2.run_instances(client, request)
        except AwsCallError as error:
            if error.code != IN_USE:
                raise
            last = error
    raise last


def _seen(client: ec2.Client, token: str) -> list[Node]:
    """What EC2 shows of a launch: its answer to RunInstances does not tell whether that was one of long ago."""
    return [node_of(item) for item in ec2.describe_instances(client, {"client-token": token})]


def _answer(attempt: Mapping[str, Any]) -> str:
    """EC2's code, with its explanation where the code does not explain itself."""
    code = str(attempt["outcome"])
    return code if code.startswith("Insufficient") or not attempt["message"] else f"{code}: {attempt['message']}"


def _no_capacity(params: Params, count: int, last: Sequence[Mapping[str, Any]], attempts: Any) -> TrainiumError:
    tried = ", ".join(f"{item['subnet_id']} in {item['availability_zone']} ({_answer(item)})" for item in last)
    # An address that is taken is asked for by its number; what is short then is the user's own.
    short = {item["outcome"] for item in last if not item["outcome"].startswith("Invalid")}
    if short == {"InsufficientFreeAddressesInSubnet"}:
        what = "addresses"
        advice = (
            "take larger subnets, or interface_layout efa-only where it is efa, or try again if instances end there"
        )
    else:
        what, advice = "capacity", "add a subnet of another zone, reserve capacity, or try again later"
    return TrainiumError(
        f"no {what} for {count} x {params['instance_type']}: tried {tried}; nothing was started; {advice}",
        attempts=list(attempts),
    )


def future_node(params: Params, number: int, place: Mapping[str, Any], launch: Launch, tags: dict[str, str]) -> Node:
    """A node that check mode promises; it has no id yet."""
    interfaces = [
        {"interface_type": item.kind, "network_card_index": item.card, "device_index": item.device}
        for item in launch.interfaces
    ]
    return {
        "instance_id": f"(new {number + 1})",
        "instance_type": params["instance_type"],
        "image_id": params["image_id"] or "(unknown)",
        "state": "running",
        "availability_zone": place["AvailabilityZone"],
        "subnet_id": place["SubnetId"] or "(unknown)",
        "placement_group": params["placement_group"] or "",
        "public_ip_address": "(allocated)" if params["public_ip"] == "primary" else "",
        "network_interfaces": interfaces,
        "launch_time": "~",
        "ami_launch_index": number,
        "tags": tags,
    }


def left_text(new: int, bad: int, replaced: Sequence[str]) -> str:
    """What became of the nodes of a launch that did not go well, and of those that had ended to be ``replaced``."""
    text = ""
    if new and bad == new:
        text = f"; the {new} nodes of this launch were terminated again"
    elif bad:
        text = f"; {bad} of the {new} nodes of this launch were terminated, and the next run launches as many again"
    elif new:
        text = f"; the {new} nodes of this launch were left as they are, for the next run to go on with"
    if len(replaced) > new - bad:
        text += f"; {', '.join(replaced)} ended to be replaced, and the next run launches what is missing"
    return text
