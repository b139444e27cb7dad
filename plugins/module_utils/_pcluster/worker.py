# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One operation of AWS ParallelCluster, run as a program by the interpreter that has aws-parallelcluster.

Self-contained: the wrapper hands this file's text to ``python -c``, so it uses the standard library and pcluster only.
The request is JSON on stdin, ``{"operation": "describe_cluster", "arguments": {...}, "region": "us-west-2"}``, the
answer one JSON object on stdout: ``{"result": ...}`` or ``{"error": {"code": 404, "message": "...", "content": {}}}``.

The library caches what AWS said for as long as the process lives, changes the process's environment and starts a child
of node, so each operation has a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# The code of a failure that is none of the library's: it is missing, or it broke.
NO_LIBRARY, BROKEN = 0, 500


def version(_arguments: dict[str, Any]) -> str:
    """The version of aws-parallelcluster, such as ``3.16.1``."""
    from pcluster.utils import get_installed_version

    return str(get_installed_version())


def schema(arguments: dict[str, Any]) -> list[dict[str, str]]:
    """What the schema has against a configuration, without a call to AWS.

    ``configuration`` is the whole configuration, ``cluster_name`` its cluster. Gives
    ``[{"key": "Scheduling/SlurmQueues/0/Name", "message": "..."}]``, empty where nothing is wrong.
    """
    # The schema computes defaults that depend on the region, so there must be one.
    os.environ.setdefault("AWS_DEFAULT_REGION", str(arguments["configuration"].get("Region") or "us-east-1"))
    from pcluster.schemas.cluster_schema import ClusterSchema

    # Not load(): that makes a cluster of it, which asks EC2 for the capacity reservations.
    return flat(
        ClusterSchema(cluster_name=arguments.get("cluster_name") or "cluster").validate(arguments["configuration"])
    )


def flat(messages: Any, path: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """Marshmallow's nested messages as a list, one entry for each message."""
    if isinstance(messages, dict):
        # "_schema" stands for the level itself.
        return [
            entry
            for key, value in messages.items()
            for entry in flat(value, path if key == "_schema" else (*path, str(key)))
        ]
    if isinstance(messages, list):
        return [entry for value in messages for entry in flat(value, path)]
    return [{"key": "/".join(path), "message": str(messages)}]


def update_policies(arguments: dict[str, Any]) -> dict[str, Any]:
    """What an update would change, and in which states of a cluster the library would allow it. No call to AWS.

    ``current`` and ``wanted`` are configurations, ``cluster_name`` their cluster. Gives
    ``{"changes": [{"key", "old", "new", "policy"}], "states": [{"fleet": "RUNNING", "login_nodes": true,
    "strategy": "DRAIN", "verdicts": [{"allowed", "reason", "action"}]}]}``; verdicts are in the order of the changes.
    """
    import copy
    import itertools
    from types import SimpleNamespace

    os.environ.setdefault("AWS_DEFAULT_REGION", str(arguments["wanted"].get("Region") or "us-east-1"))
    from pcluster.config.config_patch import ConfigPatch

    name = arguments.get("cluster_name") or "cluster"
    states, changes = [], []
    for fleet, login_nodes, strategy in itertools.product(
        ("RUNNING", "STOPPED"), (True, False), ("COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE")
    ):
        cluster = SimpleNamespace(
            name=name,
            stack_name=name,
            head_node_instance=SimpleNamespace(state="running"),
            has_running_capacity=lambda fleet=fleet, **_options: fleet == "RUNNING",
            has_running_login_nodes=lambda running=login_nodes, **_options: running,
        )
        wanted = copy.deepcopy(arguments["wanted"])
        wanted["Scheduling"].setdefault("SlurmSettings", {})["QueueUpdateStrategy"] = strategy
        patch = ConfigPatch(cluster, arguments["current"], wanted)
        shown = [change for change in patch.changes if change.update_policy.name != "IGNORED"]
        changes = [
            {
                "key": "/".join([*change.path, change.key]),
                "old": change.old_value,
                "new": change.new_value,
                "policy": change.update_policy.name,
            }
            for change in shown
        ]
        verdicts = [update_verdict(change, patch) for change in shown]
        states.append({"fleet": fleet, "login_nodes": login_nodes, "strategy": strategy, "verdicts": verdicts})
    return {"changes": changes, "states": states}


def update_verdict(change: Any, patch: Any) -> dict[str, Any]:
    """The library's word on one change; a check of its that breaks would make the update fail as well."""
    try:
        result, reason, action, _shown = change.update_policy.check(change, patch)
    except Exception as error:
        broken = f"ParallelCluster's own check of it breaks ({type(error).__name__})"
        return {"allowed": False, "reason": broken, "action": ""}
    allowed = result.value == "SUCCEEDED"
    return {"allowed": allowed, "reason": "" if allowed else str(reason or ""), "action": str(action or "")}


def cluster_state(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """A cluster and the configuration that it was last given; None where there is no such cluster.

    ``{"installed": "3.16.1", "version": "3.16.1", "cluster": {describe_cluster's answer}, "configuration": {...}}``.
    For a cluster of a newer ParallelCluster than the installed one, ``cluster`` and ``configuration`` are None; so is
    ``configuration`` where it cannot be read.
    """
    import pcluster.lib
    import yaml
    from packaging.version import parse
    from pcluster.api.controllers.common import configure_aws_region
    from pcluster.aws.common import StackNotFoundError
    from pcluster.models.cluster import Cluster
    from pcluster.utils import get_installed_version

    installed = str(get_installed_version())
    cluster = Cluster(arguments["cluster_name"])
    try:
        # The decorator is how the library sets and checks the region.
        made_by = configure_aws_region()(lambda region: cluster.stack.version)(region=arguments.get("region"))
    except StackNotFoundError:
        return None
    state: dict[str, Any] = {"installed": installed, "version": made_by, "cluster": None, "configuration": None}
    if not made_by or parse(made_by) > parse(installed):
        return state
    state["cluster"] = pcluster.lib.describe_cluster(**arguments)
    try:
        state["configuration"] = yaml.safe_load(cluster.source_config_text)
    except Exception:
        # A cluster that is coming or going may have none yet or no more.
        state["configuration"] = None
    return state


def delete_cluster_keep_logs(arguments: dict[str, Any]) -> None:
    """Delete a cluster and keep its log group, also where its configuration says that it goes with the cluster."""
    from pcluster.api.controllers.common import configure_aws_region, convert_errors, validate_cluster
    from pcluster.models.cluster import Cluster

    @configure_aws_region()
    @convert_errors()
    def delete(region: str | None = None) -> None:
        cluster = Cluster(arguments["cluster_name"])
        validate_cluster(cluster)
        cluster.delete(keep_logs=True)

    delete(region=arguments.get("region"))


OWN_OPERATIONS = {
    "version": version,
    "schema": schema,
    "update_policies": update_policies,
    "cluster_state": cluster_state,
    "delete_cluster_keep_logs": delete_cluster_keep_logs,
}
# These neither call AWS nor take a region.
OFFLINE = ("version", "schema", "update_policies")


def run(operation: str, arguments: dict[str, Any], region: str | None) -> Any:
    """The operation's result, ready for JSON."""
    if region and operation not in OFFLINE:
        arguments = {"region": region, **arguments}
    own = OWN_OPERATIONS.get(operation)
    if own:
        return own(arguments)
    import pcluster.lib

    function = getattr(pcluster.lib, operation, None)
    if operation.startswith("_") or not callable(function):
        raise TypeError(f"aws-parallelcluster has no operation {operation}")
    return function(**arguments)


def described(error: BaseException) -> dict[str, Any]:
    """An exception as ``{"code", "message", "content"}``; the library's own carry their words in attributes."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pcluster":
        return {"code": NO_LIBRARY, "message": "aws-parallelcluster is not installed", "content": {}}
    content: Any = getattr(error, "content", None)
    if content is None:
        content = getattr(error, "data", None)
    if content is not None and not isinstance(content, (dict, str)):
        from pcluster.api.encoder import JSONEncoder

        content = json.loads(JSONEncoder().encode(content))
    if isinstance(content, dict):
        message = str(content.get("message") or "")
    else:
        message, content = str(content or str(error) or type(error).__name__), {}
    return {"code": getattr(error, "code", None) or BROKEN, "message": message, "content": content}


def main() -> None:
    # The library and node print; what they say goes to stderr, so that stdout carries the answer and nothing else.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    try:
        answer: dict[str, Any] = {
            "result": run(request["operation"], dict(request["arguments"]), request.get("region"))
        }
        text = json.dumps(answer, default=str)
    except (Exception, SystemExit) as error:
        text = json.dumps({"error": described(error)}, default=str)
    answers.write(text)
    answers.close()


if __name__ == "__main__":
    main()
