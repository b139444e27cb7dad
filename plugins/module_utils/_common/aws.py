# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What every call of AWS has in common: errors of one sentence, pages, retries. amazon.aws's functions do the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.amazon.aws.plugins.module_utils.exceptions import AnsibleAWSError
from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.amazon.aws.plugins.module_utils.transformation import ansible_dict_to_boto3_filter_list
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError

Client = Any
Item = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_ADVICE = {
    "AuthFailure": "check the AWS credentials",
    "UnauthorizedOperation": "have the permission granted",
    "RequestExpired": "check this machine's clock",
    "InstanceLimitExceeded": "ask AWS for a higher quota of vCPUs",
    "VcpuLimitExceeded": "ask AWS for a higher quota of vCPUs",
    "MaxSpotInstanceCountExceeded": "ask AWS for a higher quota of spot vCPUs",
    "AddressLimitExceeded": "ask AWS for more Elastic IPs, or set public_ip=none",
}


def one_call(description: str) -> Callable[[Function], Function]:
    """Turn whatever the SDK or amazon.aws raise into an AwsCallError; ``description`` says what was tried."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except AnsibleAWSError as error:
                raise call_error(description, error.exception or error) from error
            except (aws.ClientError, aws.BotoCoreError) as error:
                raise call_error(description, error) from error

        return cast(Function, wrapper)

    return decorate


def call_error(description: str, error: BaseException) -> AwsCallError:
    """One sentence for an error of the SDK."""
    response = getattr(error, "response", None)
    if response:
        code = response["Error"].get("Code", "")
        reason = str(response["Error"].get("Message", "")).strip().rstrip(".")
        advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
        return AwsCallError(f"AWS would not {description}: {reason} ({code}){advice}", code, reason)
    reason = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, (aws.NoCredentialsError, aws.PartialCredentialsError)):
        return AwsCallError(
            f"cannot {description}: no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID"
        )
    if isinstance(error, (aws.HTTPClientError, aws.ConnectionError)):
        return AwsCallError(f"cannot {description}: {reason}; check the network, the region and AWS_ENDPOINT_URL")
    return AwsCallError(f"cannot {description}: {reason}", "", reason)


def pages(client: Client, operation: str, **request: Any) -> Item:
    """All pages of a describe call, each retried when throttled."""

    @AWSRetry.jittered_backoff(retries=6, delay=1, max_delay=20)
    def collect() -> Item:
        return dict(client.get_paginator(operation).paginate(**request).build_full_result())

    return collect()


def filters_of(filters: Mapping[str, Any]) -> list[Item]:
    return cast("list[Item]", ansible_dict_to_boto3_filter_list(dict(filters)))
