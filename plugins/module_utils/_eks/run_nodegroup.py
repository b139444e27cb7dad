# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What eks_nodegroup does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, cast

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import check_ours
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls_template, checks
from ansible_collections.trainium.cluster.plugins.module_utils._eks import calls
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_nodegroup as planner
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run import wait_for_update

Item = dict[str, Any]
Group = planner.Group
_TEXTS = ("node_role_arn", "ami_type", "capacity_type", "release_version", "version")


class EksNodegroup:
    """One node group. ``client`` talks to EKS, ``ec2_client`` to EC2."""

    def __init__(
        self,
        client: Any,
        ec2_client: Any,
        params: Mapping[str, Any],
        check_mode: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._client, self._ec2, self._check_mode, self._warn = client, ec2_client, check_mode, warn
        self._progress = Progress()
        self._params: Item = {**params, "cluster_name": params.get("cluster_name") or params["cluster"]}
        for option in _TEXTS:
            # Empty text, as roles pass it, means not given.
            self._params[option] = params.get(option) or None
        template = {key: value for key, value in (params.get("launch_template") or {}).items() if value}
        self._params["launch_template"] = template
        self._params["subnets"] = [subnet for subnet in params.get("subnets") or () if subnet]
        self._names = {"clusterName": params["cluster"], "nodegroupName": params["name"]}
        self._deadline = time.monotonic() + params["wait_timeout"]
        self._attempts: list[Item] = []

    def run(self) -> Item:
        """Bring the group to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        planner.check_arguments(params)
        seen = self._look()
        current = planner.group_of(seen) if seen else None
        check_ours(current["tags"] if current else None, params, f"the node group {params['name']}")
        if params["state"] == "absent":
            return self._remove(current)
        plan = planner.plan_group(current, params)
        if plan.outdated and not plan.version:
            self._warn(planner.warning(plan, params["name"], params["replace_nodes"]))
        places = self._places() if plan.create else []
        before = planner.lasting(current) if current else {}
        after = planner.predicted(params, plan, current)
        if not self._check_mode:
            after = self._act(plan, current, places)
        return {
            "changed": plan.changes,
            "nodegroup": after,
            "outdated": [] if plan.version else plan.outdated,
            "attempts": self._attempts,
            "diff": {"before": before, "after": planner.lasting(after)},
        }

    # --- where ---

    def _places(self) -> list[list[str]]:
        """The lists of subnets to try, one after the other."""
        params = self._params
        planner.check_new(params, self._check_mode)
        subnets = params["subnets"]
        if not subnets or not params["single_zone"]:
            return [subnets]
        data = self._template_data()
        types = params.get("instance_types") or [data.get("InstanceType") or ""]
        found = [item for item in ec2.describe_subnets(self._ec2, subnets) if item["SubnetId"] in subnets]
        offered = (
            set(ec2.zones_offering(self._ec2, types[0])) if types[0] else {item["AvailabilityZone"] for item in found}
        )
        fitting = [item for item in found if item["AvailabilityZone"] in offered]
        if not fitting:
            raise TrainiumError(
                f"none of the subnets {', '.join(subnets)} lies in a zone that offers {types[0]}; "
                f"add one in {' or '.join(sorted(offered)) or 'another region'}"
            )
        target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
        reservation = target.get("CapacityReservationId")
        if reservation:
            record = ec2.describe_capacity_reservation(self._ec2, reservation)
            zone = checks.check_reservation(record, reservation, types[0], params["count"])
            fitting = [dict(item) for item in checks.in_zone(fitting, zone, reservation)]
        fitting.sort(key=lambda item: subnets.index(item["SubnetId"]))
        return [[item["SubnetId"]] for item in fitting]

    def _template_data(self) -> Item:
        """The fields of the launch template's version; none where there is no template, as in check mode."""
        named = self._params["launch_template"]
        version = calls_template.describe_version(self._ec2, named) if named else {}
        return version.get("LaunchTemplateData") or {}

    # --- acting ---

    def _act(self, plan: planner.GroupPlan, current: Group | None, places: Sequence[Sequence[str]]) -> Group:
        if plan.create:
            if plan.again:
                self._delete()
            return self._create(places)
        if current and current["status"] in ("CREATING", "UPDATING"):
            self._wait_active()
        if plan.tags and current:
            calls.tag(self._client, resourceArn=current["arn"], tags=plan.tags)
        updates = [
            ("configuration", calls.update_nodegroup_config, plan.config),
            ("nodes", calls.update_nodegroup_version, plan.version),
        ]
        if current and not current["count"]:
            # Its first nodes are to be as wanted, and those of a Capacity Block cannot be changed later.
            updates.reverse()
        updates = [one for one in updates if one[2]]
        name = self._params["name"]
        for what, call, request in updates:
            update = call(self._client, **self._names, **request)
            # EKS takes one at a time.
            if self._params["wait"] or call != updates[-1][1]:
                names = {"name": self._params["cluster"], "nodegroupName": name}
                wait_for_update(self._client, update, f"{name}'s {what}", self._left(), self._progress, **names)
        if plan.config and self._params["wait"]:
            return self._wait_active()
        return planner.group_of(self._look() or {"nodegroupName": name})

    def _create(self, places: Sequence[Sequence[str]]) -> Group:
        """In the first place that has the capacity; what fails is deleted, so that nothing is left that costs."""
        for number, subnets in enumerate(places):
            request = planner.creation(self._params, subnets)
            made = planner.group_of(calls.create_nodegroup(self._client, **request))
            if not self._params["wait"]:
                self._attempts.append({"subnets": list(subnets), "outcome": "begun", "message": ""})
                return made
            try:
                group = self._wait_active()
            except TrainiumError as error:
                seen = self._look()
                failed = planner.group_of(seen) if seen else made
                message = "; ".join(failed["issues"]) or str(error)
                # EKS would go on launching after the time is over.
                late = failed["status"] == "CREATING" and not self._left()
                if failed["status"] != "CREATE_FAILED" and not late:
                    raise
                self._attempts.append({"subnets": list(subnets), "outcome": failed["status"], "message": message})
                self._delete()
                if not late and planner.is_lack(failed["issues"]) and number + 1 < len(places):
                    continue
                tried = [subnet for one in self._attempts for subnet in one["subnets"]]
                raise TrainiumError(
                    f"the node group could not be made in {', '.join(tried)}, and was deleted again: "
                    f"{message.rstrip('.')}",
                    attempts=self._attempts,
                ) from error
            self._attempts.append({"subnets": list(subnets), "outcome": "made", "message": ""})
            return group
        raise TrainiumError("subnets is empty; a new node group needs one")

    def _delete(self) -> None:
        calls.delete_nodegroup(self._client, **self._names)
        goal = Goal("gone", lambda seen: seen is None, self._not_deleted, self._shown)
        # Also where the time for the nodes is over: what is left would cost money.
        wait_until(goal, self._look, max(self._left(), 900.0), self._progress)

    def _not_deleted(self, seen: Item | None) -> str:
        if seen is None or seen["status"] != "DELETE_FAILED":
            return ""
        return f"EKS could not delete the node group: {'; '.join(planner.group_of(seen)['issues'])}"

    def _remove(self, current: Group | None) -> Item:
        if current and not self._check_mode:
            if self._params["wait"]:
                self._delete()
            else:
                calls.delete_nodegroup(self._client, **self._names)
        before = planner.lasting(current) if current else {}
        changed = bool(current and current["status"] != "DELETING")
        return {
            "changed": changed,
            "nodegroup": {},
            "outdated": [],
            "attempts": [],
            "diff": {"before": before, "after": {}},
        }

    # --- waiting ---

    def _look(self) -> Item | None:
        return cast(Optional[Item], calls.describe_nodegroup(self._client, **self._names))

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _wait_active(self) -> Group:
        def failed(seen: Item | None) -> str:
            if seen is None or seen["status"] not in ("CREATE_FAILED", "DEGRADED", "DELETING"):
                return ""
            reason = "; ".join(planner.group_of(seen)["issues"]) or "EKS gives no reason"
            return f"the node group became {seen['status']}: {reason}"

        goal = Goal("active", lambda seen: bool(seen and seen["status"] == "ACTIVE"), failed, self._shown)
        return planner.group_of(wait_until(goal, self._look, self._left(), self._progress) or {})

    def _shown(self, seen: Item | None) -> str:
        issues = planner.group_of(seen)["issues"] if seen else []
        state = "; ".join([(seen or {}).get("status") or "not visible yet", *issues])
        return f"{self._params['name']} ({state})"
