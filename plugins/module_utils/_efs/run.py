# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What efs_file_system does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.file_systems import (
    FileSystemRun,
    describe_all,
    describe_one,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    KEEP_TAG,
    check_owner,
    is_of_a_stack,
    of_owner,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._efs import calls, checks
from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as planner

Result = dict[str, Any]
FileSystem = planner.FileSystem


class EfsFileSystem(FileSystemRun):
    """One file system with its mount targets, or without a name all of a cluster.

    ``client`` talks to EFS, ``ec2`` to EC2, which knows the zones of subnets; only state=present needs the latter.
    """

    TEXTS = ("name", "owner", "kms_key_id")
    STATE = "LifeCycleState"
    LISTS = (*FileSystemRun.LISTS, "detached", "kept")

    def __init__(
        self,
        client: Any,
        ec2: Any,
        params: Mapping[str, Any],
        check_mode: bool,
        items: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(client, params, check_mode, items)
        self._ec2 = ec2

    def run(self) -> Result:
        """Bring the file system to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        checks.check_arguments(params)
        items = self._items
        if items is None:
            every = planner.belonging(describe_all(self._client), params)
            items = [item for item in every if not is_of_a_stack(tags_of(item))]
        if params["state"] == "present":
            items = of_owner(items, params)
        for item in items:
            check_owner(planner.file_system_of(item)["tags"], params, f"the file system {item['FileSystemId']}")
        found = [self._whole(item) for item in items]
        if params["state"] != "present":
            return self._remove(planner.plan_file_system(found, params), found)
        subnets = self._subnets()
        plan = planner.plan_file_system(found, params, subnets)
        before = plan.current or {}
        after = planner.predicted(params, plan, subnets)
        if not self._check_mode:
            after = self._act(plan, after)
        shown = planner.lasting(before), planner.lasting(after)
        return self._result(plan.changes, after, *shown, detached=sorted(plan.detach))

    def _subnets(self) -> list[dict[str, Any]]:
        """What EC2 says of the wanted subnets, in their order."""
        wanted: Sequence[str] = self._params.get("subnets") or ()
        there = (
            {str(one["SubnetId"]): one for one in calls.subnets(self._ec2, SubnetIds=list(wanted))} if wanted else {}
        )
        return [there[identity] for identity in dict.fromkeys(wanted) if identity in there]

    def _whole(self, item: Mapping[str, Any], first: bool = True) -> FileSystem:
        """A file system with its mount targets, and with their security groups where these are compared."""
        identity = item["FileSystemId"]
        targets = calls.targets(self._client, FileSystemId=identity)
        if self._params["state"] == "present" and self._params.get("security_groups"):
            coming = any(one["LifeCycleState"] == "creating" for one in targets)
            if first and coming and self._params["wait"] and not self._check_mode:
                # Those that another run has begun: before they are there EFS has no groups to tell or to change.
                self._wait_targets(identity, coming=True)
                targets = calls.targets(self._client, FileSystemId=identity)
            for target in targets:
                if target["LifeCycleState"] == "available":
                    target["SecurityGroups"] = calls.groups(self._client, MountTargetId=target["MountTargetId"]) or []
        return planner.file_system_of(item, targets)

    # --- state=present ---

    def _act(self, plan: planner.Plan, expected: FileSystem) -> FileSystem:
        params, identity = self._params, self._make(plan) if plan.create else expected["file_system_id"]
        if plan.current and plan.tags:
            calls.tag(self._client, ResourceId=identity, Tags=tag_list(plan.tags))
        if plan.current and plan.update:
            self._wait_available(identity)
            calls.update(self._client, planner.updating(plan.current, plan.update))
        for target in plan.detach:
            calls.delete_target(self._client, MountTargetId=target)
        if plan.attach:
            # A file system that is being made takes no mount targets.
            self._wait_available(identity)
            self._wait_targets_gone([identity], going=True)
        for subnet in plan.attach:
            calls.create_target(self._client, planner.attaching(identity, subnet, params))
        for target in plan.regroup:
            calls.set_groups(self._client, MountTargetId=target, SecurityGroups=params["security_groups"])
        if params["wait"]:
            self._wait_available(identity)
            self._wait_targets(identity)
        item = self._describe(identity)
        return self._whole(item, first=False) if item else {**expected, "file_system_id": identity}

    def _make(self, plan: planner.Plan) -> str:
        """The id of the new file system, or of the one that an earlier run made and that is not listed yet."""
        self._wait_gone(plan.gone_first, required=True)
        request = planner.creation(self._params)
        identity = calls.create(self._client, **request)
        if identity is None:
            made = describe_one(self._client, CreationToken=request["CreationToken"])
            if made is None:
                raise TrainiumError("a file system by the same name is just being deleted; run again in a minute")
            identity, tags = made["FileSystemId"], planner.file_system_of(made)["tags"]
            check_owner(tags, self._params, f"the file system {identity} with the same creation token")
        return str(identity)

    # --- state=detached and absent ---

    def _remove(self, plan: planner.Plan, found: Sequence[FileSystem]) -> Result:
        if not self._check_mode:
            # Before anything goes: one that is detached and not marked would be deleted by the next teardown.
            for identity in plan.keep:
                calls.tag(self._client, ResourceId=identity, Tags=tag_list({KEEP_TAG: "true"}))
            for target in plan.detach:
                calls.delete_target(self._client, MountTargetId=target)
            # EFS deletes no file system that has mount targets.
            self._wait_targets_gone([item["file_system_id"] for item in found])
            for item in plan.delete:
                calls.delete(self._client, item["file_system_id"])
            if self._params["wait"]:
                self._wait_gone([*plan.delete, *plan.gone_first])
        before = {item["file_system_id"]: planner.lasting(item) for item in found}
        deleted = sorted(item["file_system_id"] for item in plan.delete)
        kept = {identity: {KEEP_TAG: "true"} for identity in plan.keep}
        after = {
            identity: {**shown, "mount_targets": [], "tags": {**shown["tags"], **kept.get(identity, {})}}
            for identity, shown in before.items()
            if identity not in deleted
        }
        lists = {
            "detached": sorted(plan.detach),
            "deleted": deleted,
            "deleting": sorted(item["file_system_id"] for item in plan.gone_first),
            "kept": sorted(after) if self._params["state"] == "detached" else [],
        }
        return self._result(plan.changes, {}, {"file_systems": before}, {"file_systems": after}, **lists)

    # --- waiting ---

    def _describe(self, identity: str) -> dict[str, Any] | None:
        return describe_one(self._client, FileSystemId=identity)

    def _wait_available(self, identity: str) -> None:
        """Until the file system is available."""

        def failed(seen: dict[str, Any] | None) -> str:
            broken = seen is not None and seen.get("LifeCycleState") == "error"
            return f"{identity} is in the state error; remove it with state=absent, then run again" if broken else ""

        goal = Goal(
            "available",
            lambda seen: bool(seen and seen.get("LifeCycleState") == "available"),
            failed,
            lambda seen: f"{identity} ({(seen or {}).get('LifeCycleState') or 'not visible yet'})",
        )
        self._wait_until(goal, identity)

    def _wait_targets(self, identity: str, coming: bool = False) -> None:
        """Until every mount target of the file system is available, with ``coming`` or in the state error."""
        fine = ("available", *planner.GOING, *(("error",) if coming else ()))

        def look() -> dict[str, Any]:
            found = calls.targets(self._client, FileSystemId=identity)
            return {"waiting": [one for one in found if one["LifeCycleState"] not in fine]}

        def failed(seen: dict[str, Any] | None) -> str:
            broken = [
                one["MountTargetId"] for one in (seen or {}).get("waiting", ()) if one["LifeCycleState"] == "error"
            ]
            if not broken:
                return ""
            return (
                f"EFS could not make the mount targets {', '.join(broken)} of {identity}; look whether their subnets "
                "have a free address, then run again, which makes those of the given subnets anew"
            )

        goal = Goal("available", lambda seen: not (seen or {}).get("waiting"), failed, _shown_targets)
        wait_until(goal, look, self._left(), self._progress)

    def _wait_targets_gone(self, identities: Sequence[str], going: bool = False) -> None:
        """Until the file systems have no mount targets, with ``going`` none that is being deleted."""

        def look() -> list[dict[str, Any]]:
            found = [one for identity in identities for one in calls.targets(self._client, FileSystemId=identity)]
            return [one for one in found if not going or one["LifeCycleState"] in planner.GOING]

        wait_targets_gone(look, self._left(), self._progress)


def wait_targets_gone(look: Callable[[], Sequence[Mapping[str, Any]]], seconds: float, progress: Progress) -> None:
    """Until ``look`` shows none of the ``MountTargets[]`` items that it is for."""
    goal = Goal("gone", lambda seen: not (seen or {}).get("waiting"), lambda seen: "", _shown_targets)
    wait_until(goal, lambda: {"waiting": look()}, seconds, progress)


def _shown_targets(seen: dict[str, Any] | None) -> str:
    return ", ".join(f"{one['MountTargetId']} ({one['LifeCycleState']})" for one in (seen or {}).get("waiting", ()))
