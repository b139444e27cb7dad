# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One CloudFormation call each; failures become an AwsCallError of one sentence."""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible.module_utils.common.yaml import HAS_YAML, yaml_load
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    list_of,
    one_call,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import begins

# Every stack that is there or was; CloudFormation remembers deleted ones for 90 days.
list_stacks = list_of("list the stacks", "list_stacks", "StackSummaries")


def _unknown_stack(error: Exception) -> bool:
    found = getattr(error, "response", {}).get("Error", {})
    return found.get("Code") == "ValidationError" and "does not exist" in found.get("Message", "")


@one_call("describe the stack")
def describe_stack(client: Client, name: str) -> Item | None:
    """The stack of that name or ARN, None if there is none. A deleted one is found by its ARN only."""
    try:
        stacks = retried(client.describe_stacks)(StackName=name)["Stacks"]
    except aws.ClientError as error:
        if _unknown_stack(error):
            return None
        raise
    return dict(stacks[0]) if stacks else None


@one_call("list the stack's events")
def stack_events(client: Client, name: str, whole: bool = False) -> list[Item]:
    """Events of the newest operation on a stack, newest first; with ``whole`` all that are kept. [] for no stack."""
    events: list[Item] = []
    request = {"StackName": name}
    while True:
        try:
            page = retried(client.describe_stack_events)(**request)
        except aws.ClientError as error:
            if _unknown_stack(error):
                return events
            raise
        for event in page["StackEvents"]:
            events.append(dict(event))
            if begins(event) and not whole:
                return events
        if not page.get("NextToken"):
            return events
        request["NextToken"] = page["NextToken"]


@one_call("read the stack's template")
def resource_count(client: Client, name: str) -> int:
    """How many resources the stack's template has; 0 where that cannot be known."""
    body = retried(client.get_template)(StackName=name)["TemplateBody"]
    # Boto3 decodes JSON. ParallelCluster writes YAML without any tag of CloudFormation's.
    if isinstance(body, str) and HAS_YAML:
        with suppress(Exception):
            body = yaml_load(body)
    return len(body.get("Resources", ())) if isinstance(body, dict) else 0
