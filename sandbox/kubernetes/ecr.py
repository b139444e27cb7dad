"""ECR's API, as the registry asks it."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import ClientError

from sandbox.account import api
from sandbox.account.environment import REGION, key


class Client:
    """The emulator's ECR."""

    def __init__(self) -> None:
        keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), key(), strict=True))
        self.ecr: Any = boto3.client("ecr", region_name=REGION, endpoint_url=api.endpoint(), **keys)  # type: ignore[call-overload]

    def has_repository(self, name: str) -> bool:
        return self._known(self.ecr.describe_repositories, repositoryNames=[name])

    def has_image(self, name: str, reference: str) -> bool:
        """Whether an image is there by its tag; one by its digest is what a tag has led to."""
        if reference.startswith("sha256:"):
            return True
        return self._known(self.ecr.describe_images, repositoryName=name, imageIds=[{"imageTag": reference}])

    def put_image(self, name: str, tag: str, manifest: str, media_type: str) -> None:
        """Let the API know what was pushed, unless it knows."""
        more = {} if tag.startswith("sha256:") else {"imageTag": tag}
        kind = {"imageManifestMediaType": media_type} if media_type else {}
        try:
            self.ecr.put_image(repositoryName=name, imageManifest=manifest, **more, **kind)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ImageAlreadyExistsException":
                raise

    def _known(self, call: Any, **question: Any) -> bool:
        try:
            call(**question)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("RepositoryNotFoundException", "ImageNotFoundException"):
                raise
            return False
        return True
