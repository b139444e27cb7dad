# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What efa_instance does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ansible_collections.trainium.cluster.plugins.module_utils._common.at_once import at_once
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import filters_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, sentence_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    GENERATION_TAG,
    PLACE_TAG,
    VACATED_TAG,
    tag_list,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import checks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_launch as efa_launch
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import AddressPlan
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.arguments import with_defaults
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.differences import (
    Difference,
    check_growth,
    differences,
    warning,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import (
    LIVE_STATES,
    Node,
    generation_of,
    in_order,
    resources_of,
    summary,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import (
    FleetPlan,
    next_generation,
    plan_fleet,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import set_tags, shown_request
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_addresses import Addresses
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_nodes import Nodes, set_filters
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_quotas import Account
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.vacancies import (
    Vacancy,
    ending,
    vacancies,
    vacancy_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.waiting import WaitError

Result = dict[str, Any]

# With this StateReason an instance goes from pending to terminated: "There was insufficient capacity available to
# satisfy the launch request" (EC2's API reference, StateReason).
LATE_CAPACITY = "Server.InsufficientInstanceCapacity"


class EfaInstance:
    """One set of nodes.

    ``client`` talks to EC2; ``quota_client`` talks to Service Quotas, where these are to be looked at.
    """

    def __init__(
        self,
        client: ec2.Client,
        params: Mapping[str, Any],
        check_mode: bool,
        warn: Callable[[str], None],
        quota_client: ec2.Client | None = None,
    ) -> None:
        self._client, self._params = client, with_defaults(params)
        self._check_mode, self._warn, self._quota_client = check_mode, warn, quota_client
        # Missing capacity comes as a server error; the next subnet is a better answer to it than the same one again.
        ec2.not_repeated(client, "RunInstances")
        self._nodes = Nodes(client, self._params)
        self._addresses = Addresses(client, self._params)
        self._wanted = efa_launch.Wanted()
        self._launch: efa_launch.Launch | None = None
        # The places that the launch fills, and the nodes of an earlier run that end for that and have not quite ended.
        self._vacancies: list[Vacancy] = []
        self._ending: list[Node] = []
        lists = ("attempts", "launched", "started", "stopped", "terminated", "replaced")
        self._result: Result = {key: [] for key in lists}

    def run(self) -> Result:
        """Bring the set to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        checks.check_arguments(params, self._check_mode)
        nodes = self._look()
        if params["state"] == "present":
            params["placement_group"] = efa_launch.group_of(params, self._wanted)
        replace = params.get("replace") or ()
        self._check_ids(replace, nodes)
        plan = plan_fleet(nodes, params["state"], params["count"], params.get("leaving") or (), replace)
        if params["state"] == "present":
            self._refuse_or_warn(plan)
            if plan.launch:
                self._vacancies = vacancies(nodes, _ids(plan.replace))
                self._ending = ending(nodes, self._vacancies)
                whole = (plan.keep, plan.launch, self._check_mode, self._warn, [*plan.replace, *self._ending])
                self._launch = efa_launch.prepare(self._client, params, self._wanted, *whole)
        addresses = self._plan_addresses(plan)
        if self._quota_client and params["state"] == "present":
            account = Account(self._client, self._quota_client, self._warn, self._wanted.vcpus)
            account.check_nodes(params, max(0, plan.launch + len(plan.start) - len(plan.replace)))
            account.check_addresses(addresses.allocate if addresses else 0)
        retag = self._tags_to_set(plan.keep)
        changed = bool(plan.changes or retag or (addresses and addresses.changes))
        self._result.update(changed=changed, terminated=_ids([*plan.terminate, *plan.replace]))
        self._result.update(replaced=_ids(plan.replace), started=_ids(plan.start), stopped=_ids(plan.stop))
        generation = next_generation(nodes)
        # As after a run that was killed while it waited.
        pending = any(node["state"] in ("pending", "stopping") for node in plan.keep)
        if not changed and not pending:
            after = nodes
        elif self._check_mode:
            after = self._predict(plan, retag, generation)
        else:
            after = self._act(plan, addresses, retag, generation)
        return self._finish(nodes, after)

    def _look(self) -> list[Node]:
        """What every run asks, all at once; gives the nodes."""
        params, client = self._params, self._client
        present = params["state"] == "present"
        reservation = (params["capacity_reservation"] or {}).get("id") if present else None
        found, nodes, record, _addresses = at_once(
            efa_launch.asked_if(reservation, partial(ec2.describe_capacity_reservation, client)),
            self._nodes.find,
            efa_launch.asked_if(present and params["instance_type"], partial(ec2.describe_instance_type, client)),
            self._addresses.look if params["state"] != "stopped" else lambda: None,
        )
        self._wanted = efa_launch.Wanted(record, found)
        return list(nodes)

    def _check_ids(self, replace: Sequence[str], nodes: Sequence[Node]) -> None:
        """Those that the set does not have may have been replaced long ago, and must not live elsewhere."""
        unknown = sorted({*replace} - {*_ids(nodes)})
        if unknown:
            checks.check_strangers(ec2.describe_instances(self._client, {"instance-id": unknown}), self._params["name"])

    def _refuse_or_warn(self, plan: FleetPlan) -> None:
        params = self._params
        checks.check_existing(plan.keep, params["instance_type"], params["name"])
        checks.check_shrink(plan.terminate, params)
        checks.check_replace(plan.replace, plan.launch, params)
        images = sorted({node["image_id"] for node in plan.keep} - {params["image_id"]})
        if images and params["image_id"]:
            self._warn(
                f"Nodes of the set {params['name']} run image {', '.join(images)}; "
                f"{params['image_id']} is for nodes that are launched from now on."
            )
        if plan.keep:
            found = self._differences(plan.keep)
            if plan.launch:
                check_growth(found, params["name"])
            if found:
                self._warn(warning(found, params["name"]))

    def _differences(self, keep: list[Node]) -> list[Difference]:
        """One call, however many nodes there are, and none where no volume is asked for."""
        params = self._params
        interfaces = efa_launch.interfaces_of(params, self._wanted)
        volumes = []
        if params["volumes"]:
            filters = filters_of(set_filters(params["cluster_name"], params["name"]))
            volumes = ec2.describe_volumes(self._client, Filters=filters)
        return differences(keep, params, interfaces, volumes)

    def _plan_addresses(self, plan: FleetPlan) -> AddressPlan | None:
        """None where the addresses are not this run's business: stopping keeps them."""
        if self._params["state"] == "stopped":
            return None
        return self._addresses.plan(plan.keep, plan.launch, _ids([*plan.replace, *self._ending]))

    def _tags_to_set(self, keep: Iterable[Node]) -> dict[str, list[Node]]:
        """Tag keys whose value is missing or different, with the nodes concerned. Further tags stay as they are."""
        if self._params["state"] == "absent":
            return {}
        wrong: dict[str, list[Node]] = {}
        for key, value in set_tags(self._params).items():
            nodes = [node for node in keep if node["tags"].get(key) != value]
            if nodes:
                wrong[key] = nodes
        return wrong

    # --- check mode ---

    def _predict(self, plan: FleetPlan, retag: Mapping[str, list[Node]], generation: int) -> list[Node]:
        """The nodes as they would be; asks EC2 whether it would launch them."""
        tags = set_tags(self._params)
        states = {**dict.fromkeys(_ids(plan.start), "running"), **dict.fromkeys(_ids(plan.stop), "stopped")}
        after = [
            {
                **node,
                "state": states.get(node["instance_id"], node["state"]),
                "tags": {**node["tags"], **{key: tags[key] for key, wrong in retag.items() if node in wrong}},
            }
            for node in plan.keep
        ]
        if self._launch:
            place, request = self._rehearse(self._launch, generation)
            self._result.update(request=shown_request(request), asked=not self._launch.unknown)
            new_tags = {**tags, GENERATION_TAG: str(generation)}
            places = [{PLACE_TAG: str(vacancy.place)} for vacancy in self._vacancies] + [{}] * plan.launch
            after.extend(
                efa_launch.future_node(self._params, number, place, self._launch, {**new_tags, **places[number]})
                for number in range(plan.launch)
            )
        return after

    def _rehearse(self, launch: efa_launch.Launch, generation: int) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Ask EC2 whether it would launch all of them; of addresses that are still taken it is not asked.

        It tells what is wrong with the request, not whether there is room.
        """
        place, request = efa_launch.requests(self._params, launch, generation)[0]
        if launch.unknown:
            self._warn(f"EC2 was not asked about the launch: {', '.join(launch.unknown)} would exist only then.")
        else:
            ec2.dry_run(self._client, request)
        return place, request

    # --- acting ---

    def _act(
        self, plan: FleetPlan, addresses: AddressPlan | None, retag: Mapping[str, list[Node]], generation: int
    ) -> list[Node]:
        if self._launch and plan.replace:
            self._rehearse(self._launch, generation)
        self._terminate(plan, generation)
        self._start(plan)
        if plan.stop:
            self._nodes.changed()
            ec2.stop_instances(self._client, InstanceIds=_ids(plan.stop))
        allocated = self._addresses.allocate(addresses.allocate) if addresses else []
        # An address can only be given to a running node, so that waits anyway.
        ahead = addresses and (addresses.associate or addresses.allocate or addresses.reuse)
        wait = bool(self._params["wait"] or ahead)
        try:
            if self._launch:
                self._launch_nodes(self._launch, plan, generation, wait)
            if wait:
                self._wait(plan)
            self._retag(retag)
            if addresses:
                self._settle_addresses(plan, addresses, self._result["launched"])
        except Exception as error:
            self._clean_up(error, allocated)
        return self._nodes.now()

    def _terminate(self, plan: FleetPlan, generation: int) -> None:
        """Before the launch: only then those to be replaced give back address, reserved capacity and quota."""
        for node in plan.replace:
            self._vacate(node, generation)
        going = _ids([*plan.terminate, *plan.replace])
        if going:
            self._nodes.changed()
            ec2.terminate_instances(self._client, InstanceIds=going)
        ended = _ids([*plan.replace, *self._ending])
        try:
            if ended:
                self._nodes.wait_for("terminated", ended)
        except TrainiumError as error:
            raise TrainiumError(f"{error}; nothing was launched yet; run this again", **self._result) from error

    def _start(self, plan: FleetPlan) -> None:
        stopping = [node["instance_id"] for node in plan.start if node["state"] == "stopping"]
        if stopping:
            # EC2 starts only what has come to rest.
            self._nodes.wait_for("stopped", stopping)
        if plan.start:
            self._nodes.changed()
            ec2.start_instances(self._client, InstanceIds=_ids(plan.start))

    def _launch_nodes(self, launch: efa_launch.Launch, plan: FleetPlan, generation: int, wait: bool) -> None:
        """Those that take a place one by one, since each asks for an address of its own; all others by one call."""

        def arrive(nodes: list[Node], seen: list[Node]) -> None:
            if wait and not self._vacancies:
                self._arrive(plan, _ids(nodes), seen)

        self._nodes.changed()
        for part in launch.parts(self._vacancies):
            done = efa_launch.launch_nodes(self._client, self._params, part, generation, arrive)
            self._result["attempts"] += done.attempts
            self._result["launched"] += _ids(done.nodes)
            self._result["request"] = shown_request(done.request)
        if wait and self._vacancies:
            self._nodes.wait_for("running", [*_ids(plan.keep), *self._result["launched"]])

    def _arrive(self, plan: FleetPlan, new: list[str], seen: list[Node]) -> None:
        """Until the new nodes run, which were seen. EC2 may have no room only now; all of the launch go as well then.

        All of them have to be gone before the next zone: a cluster placement group "can't span multiple Availability
        Zones" (EC2 user guide, "Placement group rules and limitations").
        """
        try:
            # What was seen has no others in it.
            self._nodes.wait_for("running", [*_ids(plan.keep), *new], None if plan.keep else seen)
        except WaitError as error:
            refused = [node for node in error.failed if node["state_reason_code"] == LATE_CAPACITY]
            if not any(node["instance_id"] in new for node in refused):
                raise
            self._nodes.changed()
            ec2.terminate_instances(self._client, InstanceIds=new)
            self._nodes.wait_for("terminated", new)
            raise efa_launch.LateCapacityError(refused[0]["state_reason"]) from error

    def _wait(self, plan: FleetPlan) -> None:
        """Until all that were there before are in the wanted state."""
        params = self._params
        if params["state"] == "present":
            unready = [node["instance_id"] for node in plan.keep if node["state"] != "running"]
            if unready and not self._launch:
                self._nodes.wait_for("running", _ids(plan.keep))
        elif params["state"] == "stopped":
            unready = [node["instance_id"] for node in plan.keep if node["state"] != "stopped"]
            if unready:
                self._nodes.wait_for("stopped", _ids(plan.keep))
        if plan.terminate and params["wait"]:
            self._nodes.wait_for("terminated", _ids(plan.terminate))

    def _clean_up(self, error: Exception, allocated: list[Any]) -> NoReturn:
        """Take back the new nodes of which EC2 says that they do not run, and the addresses; the error goes on its way.

        A call that failed says nothing of the nodes: these stay, and the next run finds them.
        """
        text = sentence_of(error)
        details = {**self._result, **getattr(error, "details", {})}
        new = details["launched"] = list(dict.fromkeys([*self._result["launched"], *details["launched"]]))
        details["changed"] = bool(new or self._result["replaced"])
        bad = [item for item in new if isinstance(error, WaitError) and item in error.missing]
        try:
            if bad:
                self._leave_places(bad)
                ec2.terminate_instances(self._client, InstanceIds=bad)
        except Exception as second:
            text += f"; cleaning up failed as well: {sentence_of(second)}; remove {', '.join(bad)} with state=absent"
        else:
            text += efa_launch.left_text(len(new), len(bad), self._result["replaced"])
        left = self._addresses.take_back(allocated)
        raise TrainiumError(f"{text}; {left}" if left else text, **details) from error

    def _leave_places(self, bad: Sequence[str]) -> None:
        """Those that took a place leave it to the next run."""
        for node in self._nodes.find():
            if node["instance_id"] in bad and PLACE_TAG in node["tags"] and node["state"] in LIVE_STATES:
                self._vacate(node, generation_of(node) + 1)

    def _vacate(self, node: Node, launch: int) -> None:
        ec2.create_tags(self._client, [node["instance_id"]], tag_list({VACATED_TAG: str(vacancy_of(node, launch))}))

    def _retag(self, retag: Mapping[str, list[Node]]) -> None:
        tags = set_tags(self._params)
        for key, nodes in retag.items():
            self._nodes.changed()
            ec2.create_tags(self._client, resources_of(nodes), tag_list({key: tags[key]}))

    def _settle_addresses(self, plan: FleetPlan, before: AddressPlan, new: list[str]) -> None:
        """Associate, and give back what is no longer needed; nodes are running by now."""
        if not before.changes:
            return
        self._addresses.release(before.release)
        if self._params["public_ip"] == "primary" and self._params["state"] == "present":
            kept = {*_ids(plan.keep), *new}
            nodes = [node for node in self._nodes.now() if node["instance_id"] in kept]
            self._nodes.changed()
            self._addresses.associate(self._addresses.free(nodes), nodes)

    # --- result ---

    def _finish(self, before: list[Node], after: list[Node]) -> Result:
        live = in_order(node for node in after if node["state"] in LIVE_STATES)
        # Nodes that check mode only promises are in the diff and in the request.
        existing = [node for node in live if node["instance_id"].startswith("i-")]
        zones = sorted({node["availability_zone"] for node in live if node["availability_zone"]})
        result = {
            **self._result,
            "instances": existing,
            "instance_ids": _ids(existing),
            "availability_zone": zones[0] if len(zones) == 1 else "",
            "diff": {"before": summary(before), "after": summary(after)},
        }
        if len(zones) > 1:
            self._warn(
                f"The nodes of the set {self._params['name']} are in {', '.join(zones)}; EFA does not cross zones."
            )
        return result


def _ids(nodes: Iterable[Node]) -> list[str]:
    return [node["instance_id"] for node in nodes]
