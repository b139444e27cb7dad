# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting for the CloudFormation stack of a cluster or an image, and saying why it failed."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_logs as logs
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_stack as cloudformation
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import stack_events
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import ENDS

GROUPS = "/aws/parallelcluster/"
FUNCTION_GROUPS = "/aws/lambda/pcluster-"


class Stack:
    """The stack of a cluster, which has the cluster's name. ``cfn`` and ``cloudwatch`` are clients of boto3."""

    def __init__(self, cfn: Any, cloudwatch: Any, name: str) -> None:
        self._cfn, self._cloudwatch, self.name = cfn, cloudwatch, name
        self._progress = Progress()

    def look(self) -> dict[str, Any] | None:
        """The stack as it is; None if there is none."""
        stack = cloudformation.describe_stack(self._cfn, self.name)
        return None if stack is None or stack["StackStatus"] == "DELETE_COMPLETE" else stack

    def log_groups(self) -> list[str]:
        """The log groups of all clusters that had this name, newest first."""
        return stack_events.log_groups_of(self.name, logs.log_groups(self._cloudwatch, f"{GROUPS}{self.name}-"))

    def all_log_groups(self) -> list[str]:
        """The same, and those of the functions that came and went with these clusters."""
        names = logs.log_groups(self._cloudwatch, FUNCTION_GROUPS)
        stacks = cloudformation.list_stacks(self._cfn)
        ids = [stack["StackId"] for stack in stacks if stack["StackName"] == self.name]
        return [*self.log_groups(), *stack_events.function_log_groups(names, ids)]

    def wait(self, kind: str, arn: str, timeout: float) -> str:
        """Wait until an operation (``create``, ``update``, ``delete``) has ended and return the stack's status.

        Raises TrainiumError when it has not after ``timeout`` seconds.
        """
        ends, status = ENDS[kind], ""
        # An update touches some resources only; how many is not known before.
        total = 0 if kind == "update" else cloudformation.resource_count(self._cfn, arn)
        for seconds in looks(timeout, Pace(1, 1.5, 10)):
            stack = cloudformation.describe_stack(self._cfn, arn)
            status = str(stack["StackStatus"]) if stack else "DELETE_COMPLETE"
            if stack is None or status in (*ends.done, *ends.failed):
                return status
            seen = stack_events.progress(cloudformation.stack_events(self._cfn, arn))
            known = max(total, seen.done + len(seen.under_way))
            self._progress.report(
                f"resources of {self.name} {ends.verb}",
                seen.done,
                known,
                seen.under_way,
                f"{seconds:.0f} s, last {seen.last}",
            )
        raise TrainiumError(
            f"the stack is still {status} after {timeout:g} s, with {seen.done} of {known} resources "
            f"{ends.verb}, last {seen.last}; run again to wait on, or raise wait_timeout",
            stack_status=status,
        )

    def failure(self, what: str, status: str, arn: str, code: str = "", advice: str = "") -> TrainiumError:
        """Why an operation failed, in one sentence, with the failed resources and the log groups as details."""
        events = cloudformation.stack_events(self._cfn, arn)
        failed = stack_events.failures(events)
        for item in filter(_failed_nested, events):
            nested = cloudformation.stack_events(self._cfn, item["PhysicalResourceId"])
            failed.extend(stack_events.failures(nested))
        reason = stack_events.failure_text(failed, stack_events.root_reason(events))
        groups = self.log_groups()
        where = f"its logs are in the log group {groups[0]}" if groups else "no log was written"
        return TrainiumError(
            f"{what} failed ({', '.join(filter(None, (status, code)))}): {reason}; {where}{advice}",
            failed_resources=failed,
            failure_code=code,
            stack_status=status,
            log_groups=groups,
        )


def _failed_nested(event: dict[str, Any]) -> bool:
    return bool(
        event["ResourceType"] == stack_events.STACK_TYPE
        and event["ResourceStatus"].endswith("_FAILED")
        and not stack_events.is_root(event)
        and event.get("PhysicalResourceId")
    )
