# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What capacity_reservation does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._capacity import calls
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, check_ours, tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2

Result = dict[str, Any]
Reservation = planner.Reservation

# EC2 may answer a token that it remembers with a reservation that was cancelled; each try asks with another.
ATTEMPTS = 5


def find(client: ec2.Client, params: planner.Params) -> list[Reservation]:
    """Every reservation that is meant and that EC2 still shows, living or not; living ones of others are refused."""
    filters = {f"tag:{CLUSTER_TAG}": params["cluster_name"]}
    if params["name"]:
        filters[f"tag:{planner.RESERVATION_TAG}"] = params["name"]
    found = [planner.reservation_of(item) for item in calls.describe(client, filters)]
    for item in found:
        if item["state"] in planner.LIVING:
            check_ours(item["tags"], params, f"the reservation {item['capacity_reservation_id']}")
    return found


class CapacityReservation:
    """One reservation, or with state=absent and no name all of a cluster.

    ``client`` talks to EC2, ``maker`` too but does not repeat a call by itself, ``groups`` talks to Resource Groups.
    """

    def __init__(
        self,
        client: ec2.Client,
        maker: ec2.Client,
        groups: ec2.Client,
        params: Mapping[str, Any],
        check_mode: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._client, self._maker, self._groups = client, maker, groups
        self._params = given(params, planner.TEXTS)
        self._check_mode, self._warn, self._progress = check_mode, warn, Progress()

    def run(self) -> Result:
        """Bring the reservation to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        planner.check_arguments(params, datetime.now(timezone.utc))
        found = find(self._client, params)
        plan = planner.plan_reservation(found, params)
        for item in found if params["state"] == "absent" else ():
            if item["capacity_block"] and item["state"] in planner.LIVING:
                identity, end = item["capacity_reservation_id"], item["end_date"]
                self._warn(
                    f"{identity} is a Capacity Block and stays: EC2 cancels none, it is paid for and ends at {end}."
                )
        return self._remove(plan) if params["state"] == "absent" else self._provide(found, plan)

    # --- state=present ---

    def _provide(self, found: list[Reservation], plan: planner.Plan) -> Result:
        before = {**plan.current} if plan.current else {}
        # Where the reservation is, by name -> ARN; that it is in no group can only be told where there is one.
        inside = self._inside(plan.current)
        wanted, ours = self._params["resource_group"], []
        if wanted is not None:
            ours = [name for name in inside if name != wanted and self._is_ours(inside[name])]
        regroup = bool(ours or (wanted and wanted not in inside))
        missing = False
        if wanted and wanted not in inside:
            types = calls.group_types(self._groups, wanted)
            missing = types is None
            if types is not None:
                planner.check_pool(wanted, types)
        generation = planner.next_generation(found)
        if self._check_mode:
            if plan.create:
                calls.dry_run(self._client, planner.creation(self._params, generation))
            after, groups = planner.predicted(self._params, plan), (set(inside) - set(ours)) | ({wanted} - {None, ""})
            known = {name: inside.get(name) for name in groups}
            return self._result(before, after, dict(inside), known, plan.changes or regroup)
        if missing:
            # Before anything costs money: what is wrong with the group shows now.
            calls.create_group(
                self._groups, Name=wanted, Configuration=calls.CONFIGURATION, Tags=planner.group_tags(self._params)
            )
        try:
            after = self._act(plan, generation)
        except TrainiumError:
            if missing:
                calls.delete_group(self._groups, Group=wanted)
            raise
        if wanted and wanted not in inside:
            calls.group(self._groups, wanted, [after["arn"]])
        for name in ours:
            calls.ungroup(self._groups, name, [after["arn"]])
            self._delete_if_empty(name, inside[name])
        if plan.modify or plan.tags or plan.create or after["state"] != "active":
            after = self._settled(after)
        groups_after = self._inside(after) if regroup else inside
        return self._result(before, after, dict(inside), dict(groups_after), plan.changes or regroup)

    def _inside(self, reservation: Reservation | None) -> dict[str, str]:
        """The groups of a reservation, name -> ARN."""
        if not reservation:
            return {}
        found = calls.groups_of(self._client, CapacityReservationId=reservation["capacity_reservation_id"])
        return {planner.group_name(item["GroupArn"]): item["GroupArn"] for item in found}

    def _is_ours(self, arn: str) -> bool:
        tags = calls.group_tags(self._groups, arn)
        return planner.GROUP_TAG in tags and tags.get(CLUSTER_TAG) == self._params["cluster_name"]

    def _act(self, plan: planner.Plan, generation: int) -> Reservation:
        """Make or change the reservation; returns it as far as it is known."""
        if plan.current is None:
            return self._create(generation)
        identity = plan.current["capacity_reservation_id"]
        if plan.modify:
            try:
                calls.modify(self._maker, **planner.modification(identity, plan.modify))
            except AwsCallError as error:
                raise self._explained(error) from error
        if plan.tags:
            ec2.create_tags(self._client, [identity], tag_list(plan.tags))
        return planner.predicted(self._params, plan)

    def _create(self, generation: int) -> Reservation:
        for number in range(generation, generation + ATTEMPTS):
            try:
                made = planner.reservation_of(calls.create(self._maker, planner.creation(self._params, number)))
            except AwsCallError as error:
                raise self._explained(error) from error
            if made["state"] in planner.LIVING:
                return made
        raise TrainiumError(f"EC2 keeps answering with {made['capacity_reservation_id']}, which is {made['state']}")

    def _explained(self, error: AwsCallError) -> TrainiumError:
        """Missing capacity in the words of the request."""
        if error.code not in ec2.CAPACITY_CODES:
            return error
        params = self._params
        place = params["availability_zone"] or params["availability_zone_id"]
        advice = "try another zone, a lower count, or later"
        if error.code == "Unsupported":
            advice = "neuron_capacity_info tells the zones that offer the type"
        return TrainiumError(
            f"there is no capacity for {params['count']} x {params['instance_type']} in {place}: {error.reason} "
            f"({error.code}); nothing was reserved, {advice}",
            **error.details,
        )

    def _settled(self, expected: Reservation) -> Reservation:
        """The reservation as EC2 shows it, active where ``wait`` is set."""

        def look() -> Reservation | None:
            identity = expected["capacity_reservation_id"]
            item = ec2.describe_capacity_reservation(self._client, identity)
            return planner.reservation_of(item) if item else None

        if not self._params["wait"]:
            return look() or expected
        name = expected["capacity_reservation_id"]
        goal = Goal(
            "active",
            lambda seen: bool(seen and seen["state"] == "active"),
            lambda seen: f"{name} is {seen['state']}" if seen and seen["state"] not in planner.LIVING else "",
            lambda seen: f"{name} ({seen['state'] if seen else 'not visible yet'})",
        )
        return wait_until(goal, look, self._params["wait_timeout"], self._progress) or expected

    # --- state=absent ---

    def _remove(self, plan: planner.Plan) -> Result:
        """Ungroup, cancel, and delete the groups that were made for them and have become empty."""
        inside = {item["capacity_reservation_id"]: self._inside(item) for item in plan.cancel}
        arns = {item["arn"] for item in plan.cancel}
        emptied: list[str] = []
        kept: list[str] = []
        for name in self._our_groups(inside.values()):
            (kept if set(calls.members(self._groups, name)) - arns else emptied).append(name)
        if not self._check_mode:
            for item in plan.cancel:
                for name in inside[item["capacity_reservation_id"]]:
                    calls.ungroup(self._groups, name, [item["arn"]])
                calls.cancel(self._client, CapacityReservationId=item["capacity_reservation_id"])
            for name in emptied:
                calls.delete_group(self._groups, Group=name)
        if kept and not self._params["name"]:
            self._warn(f"The resource groups {', '.join(kept)} hold reservations of others and stay.")
        ids = [item["capacity_reservation_id"] for item in plan.cancel]
        before = {one: {**item, "resource_groups": sorted(inside[one])} for one, item in zip(ids, plan.cancel)}
        return planner.result(
            bool(plan.cancel or emptied),
            {},
            {},
            cancelled=sorted(before),
            deleted_groups=sorted(emptied),
            kept_groups=sorted(kept),
            diff={
                "before": {"reservations": before, "resource_groups": sorted(emptied)},
                "after": {"reservations": {}, "resource_groups": []},
            },
        )

    def _our_groups(self, memberships: Iterable[Mapping[str, str]]) -> list[str]:
        """The groups that may be deleted: those of the reservations, the one that is named, or all of the cluster."""
        arns = {name: arn for inside in memberships for name, arn in inside.items()}
        named = self._params["resource_group"]
        if not self._params["name"] or (named and named not in arns):
            only = [{"Name": "configuration-type", "Values": [planner.POOL]}]
            found = calls.list_groups(self._groups, Filters=only)
            pools = {planner.group_name(item["GroupArn"]): item["GroupArn"] for item in found}
            arns.update({name: arn for name, arn in pools.items() if not self._params["name"] or name == named})
        return sorted(name for name, arn in arns.items() if self._is_ours(arn))

    def _delete_if_empty(self, name: str, arn: str) -> None:
        if self._is_ours(arn) and not calls.members(self._groups, name):
            calls.delete_group(self._groups, Group=name)

    # --- result ---

    def _result(
        self,
        before: Reservation,
        after: Reservation,
        groups_before: Mapping[str, Any],
        groups_after: Mapping[str, Any],
        changed: bool,
    ) -> Result:
        shown_before = {**before, "resource_groups": sorted(groups_before)} if before else {}
        shown = {**after, "resource_groups": sorted(groups_after)}
        wanted = self._params["resource_group"]
        arn = groups_after.get(wanted) or ""
        if wanted and not arn and not self._check_mode:
            arn = str(calls.describe_group(self._groups, Group=wanted)["GroupArn"])
        return planner.result(changed, shown_before, shown, resource_group_arn=arn)
