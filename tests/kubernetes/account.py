"""The emulated account of a test, with the sandbox's own services beside it, and the tokens of its users."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from typing import Any

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sandbox import lifecycle
from sandbox.account import api
from sandbox.account import environment as account
from sandbox.account import token as control
from sandbox.kubernetes.inside.token import CLUSTER_HEADER, PREFIX
from sandbox.paths import Paths
from sandbox.podman import Podman
from tests.contract.emulator.eks.conftest import Kubernetes

POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKS{}Policy"


def wait(what: str, condition: Callable[[], Any], seconds: float) -> Any:
    """What the condition gives when it is no longer false or an error.

    Raises:
        TimeoutError: it did not become so in time.
    """
    until, last = time.monotonic() + seconds, ""
    while time.monotonic() < until:
        try:
            found = condition()
        except Exception as error:
            found, last = None, f" ({error})"
        if found:
            return found
        time.sleep(0.3)
    raise TimeoutError(f"{what}: not after {seconds:.0f} s{last}")


class Emulator:
    """The emulated API as the contract tests take it; a new account, so that nothing needs a reset."""

    url = api.endpoint()

    def reset(self) -> None:
        """Nothing: it has just been started."""


class Account(Kubernetes):
    """Emulator and reconciler as ``python -m sandbox up`` starts them, but no mirror: a node of EKS needs none."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        paths.mark()
        paths.make()
        Podman(paths).configure()
        (paths.mirror / "sandbox.gpg").parent.mkdir(parents=True, exist_ok=True)
        (paths.mirror / "sandbox.gpg").touch()
        os.environ["TRAINIUM_SANDBOX_DIR"] = str(paths.root)
        control.renew(paths.token)
        lifecycle._wait_for_emulator(paths, lifecycle._start(paths, "emulator"), 1200)
        lifecycle._start(paths, "reconciler")
        super().__init__(Emulator())

    def shown_cluster(self) -> dict[str, Any]:
        return dict(self.eks.describe_cluster(name="c1")["cluster"])

    def make_user(self, name: str) -> tuple[str, str, str]:
        """A user of IAM: its ARN, access key and secret."""
        arn = self.iam.create_user(UserName=name)["User"]["Arn"]
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        return arn, key["AccessKeyId"], key["SecretAccessKey"]


def token(cluster: str = "c1", key: str = "", secret: str = "") -> str:
    """What ``aws eks get-token`` gives (customizations/eks/get_token.py of the AWS CLI)."""
    own = account.key()
    request = AWSRequest("GET", f"{api.endpoint()}/?Action=GetCallerIdentity&Version=2011-06-15")
    request.headers[CLUSTER_HEADER] = cluster
    SigV4QueryAuth(Credentials(key or own[0], secret or own[1]), "sts", "us-west-2", expires=60).add_auth(request)
    return PREFIX + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")
