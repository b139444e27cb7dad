"""Where images are pushed to: the sandbox's registry; stock moto names a host that is AWS's.

Podman, buildah and docker push to the host in an image's name, whatever their settings say of mirrors, so
``repositoryUri`` and ``proxyEndpoint`` name one that is there.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from moto.core.responses import ActionResult
from moto.ecr.models import Image, Repository, ecr_backends
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


def _digest(self: Any) -> None:
    """Of the manifest, as registries and builders count it; stock moto takes the layers alone."""
    text = self.image_manifest if isinstance(self.image_manifest, str) else json.dumps(self.image_manifest)
    self._image_digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def repositories() -> list[str]:
    """What there is to push to, which the reconciler starts the registry for."""
    regions = [backend for backends in list(ecr_backends.values()) for backend in list(backends.values())]
    return sorted(name for backend in regions for name in list(backend.repositories))


def install() -> None:
    Repository.__init__ = _made
    Image._create_digest = _digest
    ECRResponse.get_authorization_token = _authorized
