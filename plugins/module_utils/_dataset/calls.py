# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a bucket and the addresses from which anybody may fetch them for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    LOG_IN,
    Client,
    Item,
    one_call,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError


@retried
def _list(client: Client, bucket: str, prefix: str, most: int) -> Item:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": most}
    )
    found, region = [], ""
    for page in pages:
        found += page.get("Contents", ())
        headers = page.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region", region)
    return {"objects": found[:most], "region": region}


@retried
def _head(client: Client, bucket: str, key: str) -> Item:
    found = client.head_object(Bucket=bucket, Key=key)
    region = found.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region", "")
    return {"objects": [{"Key": key, "Size": found["ContentLength"], "ETag": found["ETag"]}], "region": region}


def list_objects(client: Client, bucket: str, prefix: str, most: int) -> Item:
    """``objects`` (``Contents[]`` items, at most ``most``) below a prefix, and the bucket's ``region``, '' if not told.

    Raises AwsCallError.
    """
    with _explained(bucket):
        return _list(client, bucket, prefix, most)


def find_object(client: Client, bucket: str, key: str) -> Item:
    """The same of one object, which needs no right to list the bucket; no ``objects`` where it is not there."""
    with _explained(bucket), passing_over("404", "NoSuchKey", "NoSuchBucket"):
        return _head(client, bucket, key)
    return {"objects": [], "region": ""}


@contextmanager
def _explained(bucket: str) -> Iterator[None]:
    """Errors of the SDK as sentences."""
    try:
        yield
    except aws.ClientError as error:
        raise _refused(bucket, error) from error
    except aws.BotoCoreError as error:
        raise _unreached(bucket, error) from error


def _refused(bucket: str, error: aws.ClientError) -> AwsCallError:
    answer = error.response.get("Error", {})
    code = answer.get("Code", "")
    forbidden = "it must not be read; check the policy of the bucket and of the controller's credentials"
    hints = {
        "NoSuchBucket": "there is no such bucket; check the source",
        "AccessDenied": forbidden,
        "403": forbidden,
        "ExpiredToken": f"the credentials have expired; {LOG_IN}",
        # The answer to HEAD has no body, and this one has several reasons.
        "400": "the credentials may have expired, or its region is another; log in to AWS again, or set the region",
        "PermanentRedirect": f"it is in another region; set the region {answer.get('Region', '')}".rstrip(),
    }
    reason = hints.get(code, f"{code} {answer.get('Message', '')}".strip())
    return AwsCallError(f"The bucket {bucket} was not read: {reason}", code, reason)


def _unreached(bucket: str, error: Exception) -> AwsCallError:
    if isinstance(error, aws.NoCredentialsError):
        reason = "the controller has no credentials; give it some, or set signed to false for a public bucket"
    else:
        reason = str(error)
    return AwsCallError(f"The bucket {bucket} was not read: {reason}", "", reason)


@one_call("sign an address")
def object_url(client: Client, bucket: str, key: str, seconds: int) -> str:
    """The address of an object, valid for ``seconds``; computed, without a call."""
    url: str = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds)
    return url


def settings(signed: bool, region: str = "", endpoint: str = "") -> dict[str, Any]:
    """Further arguments for a client of S3; an ``endpoint`` has buckets in its path, since its name knows none."""
    from botocore import UNSIGNED
    from botocore.config import Config

    style: Any = {"addressing_style": "path"} if endpoint else {}
    found = {"config": Config(signature_version="s3v4" if signed else UNSIGNED, s3=style), "region": region}
    return {name: value for name, value in {**found, "endpoint": endpoint}.items() if value}
