"""Where images are pushed to: the sandbox's registry; stock moto names a host that is AWS's.

Podman, buildah and docker push to the host in an image's name, whatever their settings say of mirrors, so
``repositoryUri`` and ``proxyEndpoint`` name one that is there.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ecr.models import Repository
from moto.ecr.responses import ECRResponse

from sandbox.kubernetes.registry import OWN

_init, _token = Repository.__init__, ECRResponse.get_authorization_token


def _made(self: Any, *arguments: Any, **named: Any) -> None:
    _init(self, *arguments, **named)
    self.uri = f"{OWN}/{self.name}"


def _authorized(self: ECRResponse) -> ActionResult:
    answer: Any = _token(self)
    for one in answer.result["authorizationData"]:
        one["proxyEndpoint"] = f"https://{OWN}"
    return ActionResult(answer.result)


def install() -> None:
    Repository.__init__ = _made
    ECRResponse.get_authorization_token = _authorized
