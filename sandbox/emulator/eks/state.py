"""What the emulated EKS keeps of its clusters, and what its parts share: errors, pages, updates that take time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.eks.exceptions import EKSError
from moto.eks.models import eks_backends
from moto.eks.responses import EKSResponse
from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random
from moto.utilities.utils import get_partition

from sandbox.emulator import state
from sandbox.emulator.records import CLUSTERS, Record

DELAY = {"seconds": 0.0}
# What happens to a cluster in time.
SETTLE: dict[str, Callable[[Any], None]] = {}
PAGE = 100
STATUS = {"ResourceInUseException": 409, "ResourceNotFoundException": 404}


class EksError(EKSError):
    """A refusal, in the form in which moto sends it."""

    def __init__(self, code: str, message: str) -> None:
        self.TYPE, self.STATUS = code, STATUS.get(code, 400)
        super().__init__(message=message)


def refuse(code: str, message: str) -> NoReturn:
    raise EksError(code, message)


def wrong(message: str) -> NoReturn:
    """What is wrong with a parameter."""
    refuse("InvalidParameterException", message)


def not_now(message: str) -> NoReturn:
    """What the state or the combination does not allow."""
    refuse("InvalidRequestException", message)


@dataclass
class Cluster:
    """``shown`` is what DescribeCluster shows. Times are of the monotonic clock, 0 for never."""

    shown: Record
    account: str
    region: str
    token: tuple[str, str]
    ready: float
    gone: float = 0.0
    updates: dict[str, Record] = field(default_factory=dict)
    entries: dict[str, Record] = field(default_factory=dict)
    addons: dict[str, Record] = field(default_factory=dict)
    associations: dict[str, Record] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    interfaces: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.shown["name"])

    def arn(self, kind: str, *parts: str) -> str:
        return f"arn:aws:eks:{self.region}:{self.account}:{kind}/{'/'.join((self.name, *parts))}"


def clusters_of(account: str, region: str) -> dict[str, Cluster]:
    """They go with moto's backend when it is reset."""
    found: dict[str, Cluster] = eks_backends[account][region].__dict__.setdefault(CLUSTERS, {})
    return found


def every_cluster() -> list[Cluster]:
    return [
        cluster
        for regions in list(eks_backends.values())
        for backend in list(regions.values())
        for cluster in list(backend.__dict__.get(CLUSTERS, {}).values())
    ]


def find(response: EKSResponse, name: str) -> Cluster:
    """The cluster of a name, after what time has brought."""
    known = clusters_of(response.current_account, response.region)
    if name in known:
        SETTLE["cluster"](known[name])
    if name not in known:
        refuse("ResourceNotFoundException", f"No cluster found for name: {name}.")
    return known[name]


def find_active(response: EKSResponse) -> Cluster:
    """That of the request, which must be there."""
    cluster = find(response, response.params["clusterName"])
    if cluster.shown["status"] not in ("ACTIVE", "UPDATING"):
        not_now(f"Cluster '{cluster.name}' is not in ACTIVE status")
    return cluster


def later() -> float:
    return time.monotonic() + DELAY["seconds"]


def is_over(moment: float) -> bool:
    return bool(moment) and time.monotonic() >= moment


def hosted() -> bool:
    """Whether somebody makes control planes, and says when one is there."""
    return bool(state.WAITING["mode"] == "signal")


def new_update(updates: dict[str, Record], kind: str, params: Record, apply: Callable[[], Any]) -> Record:
    """An update that is in progress, and applied when its time has come; ``apply`` may give errors, then it failed."""
    identity = str(mock_random.uuid4())
    values = [
        {"type": key, "value": value if isinstance(value, str) else json.dumps(value)} for key, value in params.items()
    ]
    update = {
        "id": identity,
        "status": "InProgress",
        "type": kind,
        "params": values,
        "createdAt": utcnow(),
        "errors": [],
    }
    updates[identity] = {**update, "_done": later(), "_apply": apply}
    settle_updates(updates)
    return updates[identity]


def settle_updates(updates: dict[str, Record]) -> bool:
    """Apply what is due; whether some are still in progress."""
    for update in updates.values():
        if update["status"] == "InProgress" and is_over(update["_done"]):
            update["status"] = "Successful"
            if errors := update["_apply"]():
                update.update(status="Failed", errors=errors)
    return any(update["status"] == "InProgress" for update in updates.values())


def public(record: Record) -> Record:
    return {key: value for key, value in record.items() if not key.startswith("_")}


def page(response: EKSResponse, name: str, items: list[Any]) -> ActionResult:
    """One page of a list."""
    first = int(response.params.get("nextToken") or 0)
    last = first + int(response.params.get("maxResults") or PAGE)
    answer: Record = {name: items[first:last]}
    if last < len(items):
        answer["nextToken"] = str(last)
    return ActionResult(answer)


def role_of(account: str, region: str, arn: str) -> Any:
    """The role of an ARN, None where there is none."""
    roles = iam_backends[account][get_partition(region)].roles.values()
    return next((role for role in roles if role.arn == arn), None)


def trusts(role: Any, service: str) -> bool:
    """Whether a role can be assumed by a service."""
    document = role.assume_role_policy_document
    return service in (document if isinstance(document, str) else json.dumps(document))


def certificate() -> str:
    """What stands for the CA where no control plane is made."""
    body = base64.b64encode(mock_random.get_random_string(600).encode()).decode()
    return base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n".encode()).decode()
