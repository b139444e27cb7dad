# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the module pcluster does: look, decide, rehearse, act, wait. The plan decides, the calls do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_logs as logs
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import PclusterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library, snake
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_fleet import Fleet
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_stack import Stack
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import ENDS

Result = dict[str, Any]
VERSION_TAG = "parallelcluster:version"
# In these states CloudFormation takes an update.
AT_REST = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


class Pcluster:
    """One cluster. ``configuration`` is the wanted one, None for a cluster that shall go."""

    def __init__(
        self,
        library: Library,
        stack: Stack,
        cloudwatch: Any,
        params: Mapping[str, Any],
        configuration: dict[str, Any] | None,
        check_mode: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._library, self._stack, self._cloudwatch = library, stack, cloudwatch
        self._params = params
        self._configuration = configuration and planner.with_owner(configuration, params["name"], params["owner"])
        self._check_mode, self._warn = check_mode, warn
        self._name: str = params["name"]
        self._fleet = Fleet(library, self._name)
        # Whether this run waits for what it finds under way; a check does not.
        self._waits = bool(params["wait"]) and not check_mode
        self._result: Result = {
            "changed": False,
            "operation": "none",
            "cluster": None,
            "change_set": [],
            "validation_messages": [],
            "fleet_stopped": False,
            "deleted_log_groups": [],
            "diff": {"before": {}, "after": {}},
        }

    def run(self) -> Result:
        """Bring the cluster to the wanted state; returns the module's result. Raises TrainiumError."""
        if not planner.NAME.match(self._name):
            raise TrainiumError(
                "name must begin with a letter and have at most 60 letters, digits and hyphens, and nothing else"
            )
        if self._params["state"] == "present" and not self._configuration:
            raise TrainiumError("state=present needs configuration or configuration_file, and it must not be empty")
        while True:
            stack = self._find()
            wanted = stack and self._params["state"] == "present"
            state = self._library.call("cluster_state", cluster_name=self._name) if wanted else None
            if state and self._configuration:
                current, version = state["configuration"], state["installed"]
                self._configuration = planner.without_new_owner(self._configuration, current, version)
            same = state is not None and planner.same_configuration(state["configuration"], self._configuration)
            status = stack["StackStatus"] if stack else None
            step = planner.next_step(self._params["state"], status, same, self._waits)
            if step.action == "refuse":
                raise self._refusal(step.text, stack or {})
            if not step.action.startswith("wait_"):
                break
            self._join(step.action, stack or {})
        if step.action == "create":
            self._create()
        elif step.action == "update":
            self._update(state or {}, (stack or {})["StackId"])
        elif step.action == "delete":
            self._delete(stack or {})
        elif state:
            self._result["cluster"] = snake(state["cluster"])
        if self._params["state"] == "absent":
            # With nobody waiting, nodes may still write into their logs.
            self._delete_logs(gone=status is None or (step.action == "delete" and self._params["wait"]))
        return self._result

    # --- looking ---

    def _find(self) -> dict[str, Any] | None:
        stack = self._stack.look()
        if stack and VERSION_TAG not in {tag["Key"] for tag in stack.get("Tags", ())}:
            raise TrainiumError("CloudFormation has a stack of this name that ParallelCluster did not make")
        planner.check_owner(stack, self._name, self._params["owner"])
        return stack

    def _describe(self) -> None:
        self._result["cluster"] = snake(self._library.call("describe_cluster", cluster_name=self._name))

    def _refusal(self, text: str, stack: Mapping[str, Any]) -> TrainiumError:
        """A refusal; of a creation that failed it says why."""
        if "creation of the cluster failed" not in text:
            return TrainiumError(text)
        advice = "; delete it with state=absent, then create it again"
        return self._stack.failure(
            "the creation of the cluster", stack["StackStatus"], stack["StackId"], self._failure_code(), advice
        )

    def _failure_code(self) -> str:
        """ParallelCluster's own name for why a creation failed, such as HeadNodeBootstrapFailure; '' if it has none."""
        try:
            failures = self._library.call("describe_cluster", cluster_name=self._name).get("failures")
        except PclusterError:
            # A cluster that is being taken back may be gone by now; the stack's events say more anyway.
            return ""
        return str(failures[0].get("failureCode") or "") if failures else ""

    def _join(self, action: str, stack: Mapping[str, Any]) -> None:
        """Wait for what an earlier run, or somebody else, has begun; the next look judges how it ended."""
        kind = action.partition("_")[2]
        status = self._stack.wait(kind, stack["StackId"], self._params["wait_timeout"])
        if kind == "delete" and status not in ENDS[kind].done:
            raise self._stack.failure("the deletion of the cluster", status, stack["StackId"])

    def _request(self) -> dict[str, Any]:
        """What the library is asked for, to create the cluster or to update it."""
        return {
            "cluster_name": self._name,
            "cluster_configuration": self._configuration,
            "suppress_validators": self._params["suppress_validators"] or None,
            "validation_failure_level": self._params["validation_failure_level"],
        }

    # --- creating ---

    def _create(self) -> None:
        params = self._params
        # A refused dry run is quicker than a refused creation, and leaves nothing behind.
        rehearsal = self._library.dry_run("create_cluster", **self._request())
        self._result.update(
            changed=True,
            operation="create",
            validation_messages=planner.validation_messages(rehearsal),
            diff={"before": {}, "after": self._configuration},
        )
        if self._check_mode:
            return
        made = self._library.call(
            "create_cluster", rollback_on_failure=params["rollback_on_failure"], **self._request()
        )
        if params["wait"]:
            arn = made["cluster"]["cloudformationStackArn"]
            status = self._stack.wait("create", arn, params["wait_timeout"])
            if status not in ENDS["create"].done:
                advice = "; delete the cluster with state=absent before the next try"
                raise self._stack.failure("the creation of the cluster", status, arn, self._failure_code(), advice)
        self._describe()

    # --- updating ---

    def _update(self, state: Mapping[str, Any], arn: str) -> None:
        refusal = planner.version_refusal(state["version"], state["installed"])
        if refusal:
            raise TrainiumError(refusal)
        self._result["cluster"] = snake(state["cluster"])
        rehearsal = self._rehearse_update()
        if rehearsal is None:
            self._warn(
                f"The configuration of {self._name} differs from the cluster's in keys that ParallelCluster ignores in "
                "an update; nothing was changed."
            )
            return
        changes = planner.change_set(rehearsal)
        changes = planner.real_changes(changes, state["configuration"], self._configuration)
        self._result.update(
            changed=True,
            operation="update",
            validation_messages=planner.validation_messages(rehearsal),
            change_set=changes,
            diff=planner.changes_shown(changes),
        )
        if self._check_mode:
            return
        if self._result["fleet_stopped"]:
            self._update_stopped(arn, state["cluster"].get("computeFleetStatus") or "UNKNOWN")
        else:
            self._perform_update(arn, self._params["wait"])
        self._describe()

    def _rehearse_update(self) -> Mapping[str, Any] | None:
        """What the library says of the update; None where it finds nothing to change. Raises TrainiumError.

        With the policy that stops the fleet, what it says of a running one counts as accepted if stopping it would cure
        that; the library is asked again with the fleet stopped.
        """
        try:
            return self._library.dry_run("update_cluster", **self._request())
        except PclusterError as error:
            if planner.nothing_to_update(error.message):
                return None
            if not planner.stop_would_help(error.content):
                raise
            if self._params["fleet_policy"] == "fail":
                raise TrainiumError(
                    f"{error}; stop the compute fleet first, or set fleet_policy=stop_and_start",
                    change_set=planner.change_set(error.content),
                ) from error
            self._result["fleet_stopped"] = True
            return error.content

    def _perform_update(self, arn: str, wait: bool) -> None:
        self._library.call("update_cluster", **self._request())
        if not wait:
            return
        status = self._stack.wait("update", arn, self._params["wait_timeout"])
        if status not in ENDS["update"].done:
            raise self._stack.failure(
                "the update of the cluster", status, arn, advice="; the cluster has its former configuration"
            )

    def _update_stopped(self, arn: str, fleet_status: str) -> None:
        """Update the cluster with its fleet stopped; one that ran is started again in any case."""
        started = fleet_status in planner.STARTED
        try:
            self._fleet.bring("stopped", fleet_status, self._params["wait_timeout"])
            self._library.dry_run("update_cluster", **self._request())
            # The fleet can be started when the update is over, so this waits even with wait=false.
            self._perform_update(arn, wait=True)
        except TrainiumError as error:
            if not started:
                raise
            self._start_after(error)
        if started:
            self._start_fleet("STOPPED")

    def _start_fleet(self, status: str) -> None:
        if self._params["wait"]:
            self._fleet.bring("running", status, self._params["wait_timeout"])
        else:
            self._fleet.request("running", status)

    def _start_after(self, error: TrainiumError) -> NoReturn:
        """Start the fleet again, and let the error go on its way with a word about that."""
        try:
            self._start_fleet(self._fleet.look()["status"])
        except TrainiumError as second:
            raise TrainiumError(
                f"{error}; the compute fleet was stopped for it and could not be started again: {second}; "
                "start it with pcluster_compute_fleet",
                **error.details,
            ) from error
        raise TrainiumError(f"{error}; the compute fleet was started again", **error.details) from error

    # --- deleting ---

    def _delete(self, stack: Mapping[str, Any]) -> None:
        before = {"cluster": self._name, "status": stack["StackStatus"]}
        self._result.update(changed=True, operation="delete", diff={"before": before, "after": {}})
        if self._check_mode:
            return
        # Keeping what the configuration gives up means updating the stack, which must be at rest for it.
        keep = self._params["keep_logs"] and stack["StackStatus"] in AT_REST
        try:
            self._library.call("delete_cluster_keep_logs" if keep else "delete_cluster", cluster_name=self._name)
        except PclusterError as error:
            if "incompatible" not in error.message:
                raise
            version = next(tag["Value"] for tag in stack["Tags"] if tag["Key"] == VERSION_TAG)
            raise TrainiumError(
                f"the cluster was made by ParallelCluster {version}, which the installed one cannot delete; "
                f"name an interpreter with aws-parallelcluster=={version} (pcluster_python)"
            ) from error
        if self._params["wait"]:
            self._join("wait_delete", stack)

    def _delete_logs(self, gone: bool) -> None:
        """Delete the log groups of this name, unless they are to be kept or nodes still write into them."""
        if self._params["keep_logs"]:
            return
        groups = self._stack.all_log_groups()
        if groups and not gone:
            self._warn(f"The log groups of {self._name} are deleted by the next run, when the cluster is gone.")
            return
        self._result["deleted_log_groups"] = groups
        if not groups:
            return
        self._result["changed"] = True
        self._result["diff"]["before"] = {**self._result["diff"]["before"], "log_groups": groups}
        if not self._check_mode:
            for group in groups:
                logs.delete_log_group(self._cloudwatch, logGroupName=group)
