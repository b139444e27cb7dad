"""What the daemons of a head node do to a cluster's state, where nobody runs the hosts.

The state of the compute fleet lives in the DynamoDB table of the cluster: a head node that is ready says RUNNING, and
what was requested comes true a little later. A host that runs for real does this by itself.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.ec2.models import ec2_backends

from sandbox.emulator import state

KEY = {"S": "COMPUTE_FLEET"}
NEXT = {
    "STOP_REQUESTED": "STOPPING",
    "STOPPING": "STOPPED",
    "START_REQUESTED": "STARTING",
    "STARTING": "RUNNING",
}


def _item(status: str) -> dict[str, Any]:
    now = str(datetime.now(tz=timezone.utc))
    return {"Id": KEY, "Data": {"M": {"status": {"S": status}, "lastStatusUpdatedTime": {"S": now}}}}


def tick(stack: Any) -> None:
    """One look at the cluster of a stack."""
    cluster = (stack.tags or {}).get("parallelcluster:cluster-name")
    ready = stack.status.endswith("_COMPLETE") and not stack.status.startswith(("DELETE", "ROLLBACK"))
    if state.WAITING["mode"] != "succeed" or not cluster or not ready:
        return
    backend, name = dynamodb_backends[stack.account_id][stack.region_name], f"parallelcluster-{cluster}"
    if name not in backend.tables:
        return
    found = backend.get_item(name, {"Id": KEY})
    if found is None:
        backend.put_item(name, _item("RUNNING"))
        return
    status = found.to_json()["Attributes"]["Data"]["M"]["status"]["S"]
    if status in NEXT:
        if status == "STOPPING":
            _terminate(stack, cluster)
        backend.put_item(name, _item(NEXT[status]))


def _terminate(stack: Any, cluster: str) -> None:
    """The compute nodes of a fleet that stops."""
    backend = ec2_backends[stack.account_id][stack.region_name]
    wanted = {"parallelcluster:cluster-name": cluster, "parallelcluster:node-type": "Compute"}
    for reservation in backend.reservations.values():
        for instance in reservation.instances:
            if wanted.items() <= backend.tags.get(instance.id, {}).items():
                instance.terminate()
