"""What EKS and the services beside it are asked, and what they answer, call by call."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

MAKE: Any = boto3.client
KEYS = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
CLIENTS = {name: MAKE(name, region_name="us-west-2", **KEYS) for name in ("eks", "ec2", "logs", "elb", "elbv2")}
ABSENT = "ResourceNotFoundException"


class Aws:
    """Answers in order for each service; a call that is not expected, or another than that, fails the test."""

    def __init__(self, stubs: dict[str, Stubber]) -> None:
        self._stubs, self.clients = stubs, CLIENTS
        self.eks, self.ec2 = CLIENTS["eks"], CLIENTS["ec2"]

    def says(self, service: str, operation: str, answer: Any, **asked: Any) -> None:
        """An answer that is text is the code of an error."""
        if isinstance(answer, str):
            self._stubs[service].add_client_error(operation, answer, "for the test", 400, None, asked)
        else:
            self._stubs[service].add_response(operation, copy.deepcopy(answer), asked)

    def cluster(self, found: Any, name: str = "bert") -> None:
        self.says("eks", "describe_cluster", {"cluster": found} if found else ABSENT, name=name)

    def group(self, found: Any, name: str = "trn") -> None:
        answer = {"nodegroup": found} if isinstance(found, dict) else found or ABSENT
        self.says("eks", "describe_nodegroup", answer, clusterName="bert", nodegroupName=name)

    def groups(self, *names: str, of: str = "bert") -> None:
        self.says("eks", "list_nodegroups", {"nodegroups": list(names)}, clusterName=of)

    def update(self, identity: str, status: str, errors: Any = (), **names: str) -> None:
        """What becomes of an update; '' for one that is not shown yet."""
        answer = {"update": {"id": identity, "status": status, "errors": list(errors)}} if status else ABSENT
        self.says("eks", "describe_update", answer, updateId=identity, **{"name": "bert", **names})


@pytest.fixture
def api() -> Iterator[Aws]:
    with ExitStack() as stack:
        stubs = {name: stack.enter_context(Stubber(client)) for name, client in CLIENTS.items()}
        yield Aws(stubs)
        for stub in stubs.values():
            stub.assert_no_pending_responses()
