# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What eks_cluster does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Optional, cast

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import check_ours
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._eks import access, calls
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan as planner

Item = dict[str, Any]
_TEXTS = ("version", "role_arn", "support", "authentication_mode")
Cluster = planner.Cluster


def wait_for_update(client: Any, update: Item, what: str, timeout: float, progress: Progress, **names: str) -> None:
    """Until an update is over. Raises TrainiumError with EKS's reason where it fails."""

    def failed(seen: Item | None) -> str:
        if seen is None or seen["status"] not in ("Failed", "Cancelled"):
            return ""
        reasons = [f"{one.get('errorCode')}: {one.get('errorMessage')}" for one in seen.get("errors") or ()]
        return f"EKS gave up changing {what}: {'; '.join(reasons) or 'it gives no reason'}"

    goal = Goal(
        f"{what} changed",
        lambda seen: bool(seen and seen["status"] == "Successful"),
        failed,
        lambda seen: f"{what} ({(seen or {}).get('status') or 'not visible yet'})",
    )
    wait_until(goal, lambda: calls.describe_update(client, updateId=update["id"], **names), timeout, progress)


class EksCluster:
    """One cluster. ``client`` talks to EKS; ``caller`` gives the ARN of the IAM principal that runs this, or '', and
    whether it has its path."""

    def __init__(
        self,
        client: Any,
        params: Mapping[str, Any],
        check_mode: bool,
        warn: Callable[[str], None],
        caller: Callable[[], tuple[str, bool]],
    ) -> None:
        self._client, self._check_mode, self._warn, self._caller = client, check_mode, warn, caller
        self._progress = Progress()
        self._params: Item = {**params, "cluster_name": params.get("cluster_name") or params["name"]}
        for option in _TEXTS:
            # Empty text, as roles pass it, means not given.
            self._params[option] = params.get(option) or None
        self._deadline = time.monotonic() + params["wait_timeout"]

    def run(self) -> Item:
        """Bring the cluster to the wanted state; returns the module's result. Raises TrainiumError."""
        params, name = self._params, self._params["name"]
        found = calls.describe_cluster(self._client, name=name)
        current = planner.cluster_of(found) if found else None
        check_ours(current["tags"] if current else None, params, f"the cluster {name}")
        if params["state"] == "absent":
            return self._remove(current)
        access.check_admins(params.get("admins") or ())
        plan = planner.plan_cluster(current, params)
        if current is None:
            planner.check_new(params, self._check_mode)
        self._check_version(current)
        entries = self._entries(current)
        # Before there is a cluster nobody is let in.
        admission = None if current is None or current["status"] == "CREATING" else self._plan_entries(entries)
        before = {**planner.lasting(current), "admins": access.shown(entries)} if current else {}
        after = planner.predicted(params, plan)
        if not self._check_mode:
            after = self._act(plan, admission)
            if admission is None and after["status"] != "CREATING":
                # After the creation, which let the caller in.
                entries = self._entries(after)
                admission = self._plan_entries(entries)
                self._admit(admission)
        admins = access.shown(entries, admission) if admission else sorted(params.get("admins") or ())
        changed = plan.changes or bool(admission and admission.changes)
        return {
            "changed": changed,
            "cluster": {**after, "admins": admins},
            "updated": [update.what for update in plan.updates],
            "diff": {"before": before, "after": {**planner.lasting(after), "admins": admins}},
        }

    def _check_version(self, current: Cluster | None) -> None:
        wanted = self._params["version"]
        if wanted and (current is None or current["version"] != wanted):
            if current and len(planner.version_steps(current["version"], wanted)) > 1:
                names = ({"clusterName": current["name"], "nodegroupName": one} for one in self._groups())
                found = (calls.describe_nodegroup(self._client, **one) for one in names)
                versions = {one["nodegroupName"]: one["version"] for one in found if one}
                planner.check_groups(current["version"], wanted, versions)
            warning = planner.check_version(wanted, calls.list_versions(self._client, includeAll=True))
            if warning:
                self._warn(warning)

    def _groups(self) -> list[str]:
        return calls.list_nodegroups(self._client, clusterName=self._params["name"])

    # --- who may use it ---

    def _entries(self, current: Cluster | None) -> list[access.Entry]:
        """The entries that are there, with their tags; none where the mode of authentication has none."""
        wanted = self._params.get("admins") is not None or self._params["admit_caller"]
        if current is None or not wanted:
            return []
        if current["authentication_mode"] == "CONFIG_MAP":
            if self._params["authentication_mode"]:
                return []
            raise TrainiumError(
                "the cluster knows no access entries, having the authentication mode CONFIG_MAP; set "
                "authentication_mode=API_AND_CONFIG_MAP, or leave admins out and set admit_caller=false"
            )
        if current["status"] == "CREATING":
            return []
        found = []
        for principal in calls.list_entries(self._client, clusterName=current["name"]):
            named = {"clusterName": current["name"], "principalArn": principal}
            tags = (calls.describe_entry(self._client, **named) or {}).get("tags") or {}
            policies = calls.list_policies(self._client, **named)
            found.append(access.Entry(principal, tags, access.is_admin(policies, principal)))
        return found

    def _plan_entries(self, entries: list[access.Entry]) -> access.EntryPlan:
        params = self._params
        caller, whole = self._caller() if params["admit_caller"] else ("", True)
        if not whole:
            found = access.caller_of(caller, [entry.principal for entry in entries])
            if not found:
                self._warn(
                    f"Whoever runs this was not let in to the cluster: IAM does not say which path {caller} has. Allow "
                    "iam:GetRole, name the role in admins, or set admit_caller=false."
                )
            caller = found
        caller = caller if access.can_have_entry(caller) else ""
        return access.plan_entries(entries, params.get("admins"), caller, params["cluster_name"])

    def _admit(self, plan: access.EntryPlan) -> None:
        cluster = {"clusterName": self._params["name"]}
        for principal, role in plan.create:
            tags = access.entry_tags(role, self._params["cluster_name"])
            calls.create_entry(self._client, **cluster, principalArn=principal, tags=tags)
        for principal in [*(principal for principal, _role in plan.create), *plan.admit]:
            given = {"policyArn": access.policy_arn(principal), "accessScope": {"type": "cluster"}}
            calls.associate_policy(self._client, **cluster, principalArn=principal, **given)
        for principal in plan.delete:
            calls.delete_entry(self._client, **cluster, principalArn=principal)

    # --- acting ---

    def _act(self, plan: planner.Plan, admission: access.EntryPlan | None) -> Cluster:
        params = self._params
        if plan.current is None:
            made = calls.create_cluster(self._client, **planner.creation(params))
            return self._wait_active() if params["wait"] else planner.cluster_of(made)
        if plan.current["status"] in ("CREATING", "UPDATING"):
            self._wait_active()
        if plan.tags:
            calls.tag(self._client, resourceArn=plan.current["arn"], tags=plan.tags)
        for update in plan.updates:
            self._update(update)
        if admission:
            self._admit(admission)
        return planner.cluster_of(self._look() or {"name": params["name"]})

    def _update(self, update: planner.Update) -> None:
        name = self._params["name"]
        call = calls.update_version if "version" in update.request else calls.update_config
        begun = call(self._client, name=name, **update.request)
        # The next one, and whoever uses the cluster, would meet ResourceInUseException.
        wait_for_update(self._client, begun, f"{name}'s {update.what}", self._left(), self._progress, name=name)

    # --- state=absent ---

    def _remove(self, current: Cluster | None) -> Item:
        name = self._params["name"]
        if current and current["status"] != "DELETING":
            groups = self._groups()
            if groups:
                raise TrainiumError(
                    f"the cluster has the node groups {', '.join(groups)}; remove them first (eks_nodegroup)"
                )
            if current["deletion_protection"]:
                raise TrainiumError("the cluster is protected from deletion; run with deletion_protection=false first")
        if current and not self._check_mode:
            if current["status"] != "DELETING":
                calls.delete_cluster(self._client, name=name)
            if self._params["wait"]:
                self._wait_gone()
        before = planner.lasting(current) if current else {}
        changed = bool(current and current["status"] != "DELETING")
        return {"changed": changed, "cluster": {}, "updated": [], "diff": {"before": before, "after": {}}}

    # --- waiting ---

    def _look(self) -> Item | None:
        return cast(Optional[Item], calls.describe_cluster(self._client, name=self._params["name"]))

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _wait_active(self) -> Cluster:
        def failed(seen: Item | None) -> str:
            if seen is None or seen["status"] not in ("FAILED", "DELETING"):
                return ""
            reason = "; ".join(planner.cluster_of(seen)["issues"]) or "EKS gives no reason"
            return f"the cluster became {seen['status']}: {reason}; remove it with state=absent, then run again"

        goal = Goal("active", lambda seen: bool(seen and seen["status"] == "ACTIVE"), failed, self._shown)
        return planner.cluster_of(wait_until(goal, self._look, self._left(), self._progress) or {})

    def _wait_gone(self) -> None:
        goal = Goal("gone", lambda seen: seen is None, lambda seen: "", self._shown)
        wait_until(goal, self._look, self._left(), self._progress)

    def _shown(self, seen: Item | None) -> str:
        return f"{self._params['name']} ({(seen or {}).get('status') or 'not visible yet'})"
