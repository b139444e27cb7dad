# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What every call of AWS has in common: errors of one sentence, pages, retries. amazon.aws's functions do the rest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, TypeVar, cast

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws
    from botocore.paginate import PageIterator
    from botocore.parsers import ResponseParserError

from ansible_collections.amazon.aws.plugins.module_utils.exceptions import AnsibleAWSError
from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.amazon.aws.plugins.module_utils.transformation import ansible_dict_to_boto3_filter_list
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import (
    AwsCallError,
    TrainiumError,
    one_line,
)

Client = Any
Item = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

# For a call that is throttled: once more, after growing pauses. amazon.aws does not know the code of JSON services.
retried = AWSRetry.jittered_backoff(retries=6, delay=1, max_delay=20, catch_extra_error_codes=["ThrottlingException"])

# Codes with which the same call may succeed soon. Where a failure says nothing, botocore takes the HTTP status as code.
TRANSIENT_CODES = (
    "RequestLimitExceeded",
    "RequestThrottled",
    "Throttling",
    "ThrottlingException",
    "InternalError",
    "InternalFailure",
    "ServiceUnavailable",
    "Unavailable",
    "500",
    "502",
    "503",
    "504",
)

# EC2 answers RequestExpired for expired temporary credentials and for a wrong clock alike; other services have a code
# for them (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html).
LOG_IN = "log in to AWS again and run it once more"
_ADVICE = {
    "AuthFailure": "check the AWS credentials",
    "UnauthorizedOperation": "have the permission granted",
    "AccessDeniedException": "have the permission granted",
    "ExpiredToken": LOG_IN,
    "ExpiredTokenException": LOG_IN,
    "RequestExpired": f"{LOG_IN}, or set this machine's clock",
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
            except (aws.ClientError, aws.BotoCoreError, ResponseParserError) as error:
                raise call_error(description, error) from error

        return cast(Function, wrapper)

    return decorate


def call_error(description: str, error: BaseException) -> AwsCallError:
    """One sentence for an error of the SDK."""
    response = getattr(error, "response", None)
    if response:
        stated = response.get("Error") or {}
        code, reason = str(stated.get("Code", "")), one_line(Exception(stated.get("Message", "")))
        advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
        message = f"AWS would not {description}: {reason} ({code}){advice}"
        return AwsCallError(message, code, reason, transient=code in TRANSIENT_CODES)
    if isinstance(error, ResponseParserError):
        return unreadable(description)
    reason = one_line(error)
    if isinstance(error, (aws.NoCredentialsError, aws.PartialCredentialsError)):
        return AwsCallError(
            f"cannot {description}: no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID"
        )
    if isinstance(error, (aws.HTTPClientError, aws.ConnectionError)):
        advice = "check the network, the region and AWS_ENDPOINT_URL"
        return AwsCallError(f"cannot {description}: {reason}; {advice}", transient=True)
    return AwsCallError(f"cannot {description}: {reason}", "", reason)


def unreadable(description: str) -> AwsCallError:
    """For an answer that is not AWS's, such as the page of a proxy; what it says is of no use to the reader."""
    advice = "check the proxy, the region and AWS_ENDPOINT_URL"
    return AwsCallError(f"cannot {description}: what came is not an answer of AWS; {advice}", transient=True)


@contextmanager
def passing_over(*codes: str) -> Iterator[None]:
    """Go on after an answer with one of these codes of AWS, such as that what is to be deleted is gone already.

    A ``*`` in a code stands for anything.
    """
    try:
        yield
    except aws.ClientError as error:
        if not any(fnmatchcase(error.response["Error"]["Code"], code) for code in codes):
            raise


def checked(answer: Item) -> Item:
    """The answer of a call as it is, if it is one of AWS.

    A page that is well-formed XML, and any page in place of JSON, is read as an answer without fields, as if nothing
    were there. Where AWS's own has none, it still has the number of the request.
    """
    if not set(answer) - {"ResponseMetadata"} and not answer.get("ResponseMetadata", {}).get("RequestId"):
        raise ResponseParserError("the answer has nothing that AWS's would have")
    return answer


@contextmanager
def _parsing() -> Iterator[None]:
    """A page without the outermost element, for which botocore looks in answers of IAM and STS, is none of AWS."""
    try:
        yield
    except KeyError as error:
        at = error.__traceback__
        while at and at.tb_next:
            at = at.tb_next
        # Else it is a mistake of ours.
        if at is None or at.tb_frame.f_globals.get("__name__") != "botocore.parsers":
            raise
        raise ResponseParserError(f"the answer has no {error}") from error


def pages(client: Client, operation: str, **request: Any) -> Item:
    """All pages of a describe call, each retried when throttled."""

    class Pages(PageIterator):
        def __iter__(self) -> Iterator[Item]:
            with _parsing():
                yield from map(checked, super().__iter__())

    @retried
    def collect() -> Item:
        paginator = client.get_paginator(operation)
        paginator.PAGE_ITERATOR_CLS = Pages
        return dict(paginator.paginate(**request).build_full_result())

    return collect()


def _answer(call: Callable[..., Item], **request: Any) -> Item:
    """Of one call, retried when throttled."""
    with _parsing():
        return cast(Item, retried(call)(**request))


@one_call("ask who is calling")
def caller_arn(client: Client) -> str:
    """The ARN of whoever calls; ``client`` is one of STS."""
    return str(field_of(_answer(client.get_caller_identity), "Arn"))


def filters_of(filters: Mapping[str, Any]) -> list[Item]:
    return cast("list[Item]", ansible_dict_to_boto3_filter_list(dict(filters)))


@contextmanager
def failing(module: Any, *called: str | None) -> Iterator[None]:
    """What is wrong becomes the module's failure, after what it and its resource are ``called``."""
    try:
        yield
    except TrainiumError as error:
        module.fail_json(msg=f"{' '.join(filter(None, called))}: {error}.", **error.details)


def finish(module: Any, result: Item) -> None:
    """Give a module's result back; what changed in it is shown only where the user wants to see that."""
    difference = result.pop("diff")
    module.exit_json(**result, **({"diff": difference} if module._diff else {}))


def field_of(answer: Item, key: str) -> Any:
    """A field of an answer; what stands in AWS's place may give one without it."""
    if key not in checked(answer):
        raise ResponseParserError(f"the answer has no {key}")
    return answer[key]


def call_of(description: str, operation: str, key: str = "", passed: tuple[str, ...] = ()) -> Callable[..., Any]:
    """A function of one call, which takes a client and the request, and gives the field ``key`` of the answer.

    None without a key, and where AWS answers with one of the codes ``passed``, such as that there is no such thing.
    """

    @one_call(description)
    def call(client: Client, **request: Any) -> Any:
        with passing_over(*passed):
            answer = _answer(getattr(client, operation), **request)
            return field_of(answer, key) if key else None
        return None

    return call


def list_of(description: str, operation: str, key: str, passed: tuple[str, ...] = ()) -> Callable[..., list[Any]]:
    """The same for all pages of a list; empty where AWS answers with one of the codes ``passed``."""

    @one_call(description)
    def call(client: Client, **request: Any) -> list[Any]:
        with passing_over(*passed):
            return list(pages(client, operation, **request).get(key, ()))
        return []

    return call
