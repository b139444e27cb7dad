# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What fsx_lustre does: find, plan, act, wait. The plan decides, the calls do, this puts them in order."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.file_systems import (
    FileSystemRun,
    describe_all,
    describe_one,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    check_ours,
    check_owner,
    is_of_a_stack,
    of_owner,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import calls, checks
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as planner

Result = dict[str, Any]
FileSystem = planner.FileSystem


class FsxLustre(FileSystemRun):
    """One file system, or with state=absent and no name all of a cluster. ``client`` talks to FSx.

    Of all of a cluster those that a stack of CloudFormation has made are left alone; ``spared`` names them.
    """

    TEXTS = ("name", "owner", "subnet_id", "kms_key_id", "import_path", "export_path")
    STATE = "Lifecycle"
    NAMES = (*FileSystemRun.NAMES, "mount_name")
    LISTS = (*FileSystemRun.LISTS, "spared")

    def run(self) -> Result:
        """Bring the file system to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        checks.check_arguments(params)
        items = self._items
        if items is None:
            items = planner.belonging(describe_all(self._client), params)
        if params["state"] == "present":
            # What nodes will mount; what goes may be older than the tag of owners.
            items = of_owner([item for item in items if not is_of_a_stack(tags_of(item))], params)
            for item in items:
                check_owner(tags_of(item), params, f"the file system {item['FileSystemId']}")
        found = [planner.file_system_of(item) for item in items]
        spared: list[str] = []
        if not params.get("name"):
            # ParallelCluster may have been told to retain it. One that is being deleted is waited for, whoever does it.
            staying = [item for item in found if is_of_a_stack(item["tags"]) and item["lifecycle"] != "DELETING"]
            spared = sorted(item["file_system_id"] for item in staying)
            found = [item for item in found if item["file_system_id"] not in spared]
        for item in found:
            check_ours(item["tags"], params, f"the file system {item['file_system_id']}")
        plan = planner.plan_file_system(found, params)
        if plan.create:
            checks.check_new(planner.complete(params), self._check_mode)
        if params["state"] == "absent":
            return self._remove(plan, spared)
        return self._provide(plan)

    def _provide(self, plan: planner.Plan) -> Result:
        before = planner.shown(plan.current) if plan.current else {}
        after = planner.predicted(self._params, plan)
        if not self._check_mode:
            after = self._act(plan, after)
        shown = planner.shown(after)
        return self._result(plan.changes, shown, _lasting(before), _lasting(shown))

    def _act(self, plan: planner.Plan, expected: FileSystem) -> FileSystem:
        if plan.current is None:
            self._wait_gone(plan.gone_first, required=True)
            made = planner.file_system_of(calls.create(self._client, **planner.creation(self._params)))
            return self._wait_ready(made) if self._params["wait"] else made
        if plan.tags:
            calls.tag(self._client, ResourceARN=plan.current["arn"], Tags=tag_list(plan.tags))
        if plan.update:
            calls.update(self._client, **planner.updating(plan.current, plan.update))
        under_way = plan.update or plan.current["updating"] or plan.current["lifecycle"] != "AVAILABLE"
        if self._params["wait"] and under_way:
            return self._wait_ready(expected)
        return expected

    # --- state=absent ---

    def _remove(self, plan: planner.Plan, spared: list[str]) -> Result:
        if not self._check_mode:
            for item in plan.delete:
                calls.delete(self._client, FileSystemId=item["file_system_id"])
            if self._params["wait"]:
                self._wait_gone([*plan.delete, *plan.gone_first])
        before = {item["file_system_id"]: planner.shown(item) for item in plan.delete}
        deleting = sorted(item["file_system_id"] for item in plan.gone_first)
        lists = {"deleted": sorted(before), "deleting": deleting, "spared": spared}
        return self._result(plan.changes, {}, {"file_systems": before}, {"file_systems": {}}, **lists)

    # --- waiting ---

    def _describe(self, identity: str) -> dict[str, Any] | None:
        return describe_one(self._client, FileSystemIds=[identity])

    def _wait_ready(self, expected: FileSystem) -> FileSystem:
        """Until the file system is available and no change is under way."""
        identity, since = expected["file_system_id"], expected["last_update"]

        def failed(seen: dict[str, Any] | None) -> str:
            if seen is None:
                return ""
            there = planner.file_system_of(seen)
            if there["lifecycle"] == "FAILED":
                reason = there["failure"].rstrip(".") or "FSx gives no reason"
                return f"{identity} could not be made: {reason}; remove it with state=absent, then run again"
            reason = planner.failed_update(seen, since).rstrip(".")
            return f"FSx gave up changing {identity}: {reason}" if reason else ""

        goal = Goal(
            "available",
            lambda seen: _is(seen, "AVAILABLE") and not planner.file_system_of(seen or {})["updating"],
            failed,
            lambda seen: f"{identity} ({(seen or {}).get('Lifecycle') or 'not visible yet'})",
        )
        seen = self._wait_until(goal, identity)
        return planner.file_system_of(seen) if seen else expected


def _is(seen: dict[str, Any] | None, lifecycle: str) -> bool:
    return bool(seen and seen.get("Lifecycle") == lifecycle)


def _lasting(file_system: dict[str, Any]) -> dict[str, Any]:
    """Without what comes and goes by itself, which is no difference that a run made."""
    return {key: value for key, value in file_system.items() if key not in ("lifecycle", "updating")}
