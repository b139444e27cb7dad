"""What becomes of an error of the SDK, and of an answer that is none of AWS's."""

from __future__ import annotations

import io
import time
from typing import Any

import boto3
import pytest
from ansible_collections.amazon.aws.plugins.module_utils.exceptions import AnsibleAWSError
from ansible_collections.trainium.cluster.plugins.module_utils._common import aws
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from botocore import exceptions
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.parsers import ResponseParserError


def answered(code: str, message: str = "no") -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "RunInstances")


def raised(error: Exception) -> AwsCallError:
    @aws.one_call("launch the instances")
    def call() -> None:
        raise error

    with pytest.raises(AwsCallError) as found:
        call()
    assert found.value.__cause__ is error
    return found.value


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("VcpuLimitExceeded", "; ask AWS for a higher quota of vCPUs"),
        ("MaxSpotInstanceCountExceeded", "; ask AWS for a higher quota of spot vCPUs"),
        ("AddressLimitExceeded", "; ask AWS for more Elastic IPs, or set public_ip=none"),
        ("UnauthorizedOperation", "; have the permission granted"),
        ("AccessDeniedException", "; have the permission granted"),
        ("AuthFailure", "; check the AWS credentials"),
        ("InsufficientInstanceCapacity", ""),
    ],
)
def test_an_answer_is_told_with_its_code_and_what_to_do(code: str, advice: str) -> None:
    error = raised(answered(code, "so it\n is. "))
    assert str(error) == f"AWS would not launch the instances: so it is ({code}){advice}"
    assert (error.code, error.reason, error.transient) == (code, "so it is", False)
    assert error.details == {"error_code": code}


@pytest.mark.parametrize(
    "code",
    # The first five of "Error codes for the Amazon EC2 API"; botocore takes the status where there is no code.
    ["RequestLimitExceeded", "InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "503", "500"],
)
def test_what_may_soon_succeed_is_transient(code: str) -> None:
    assert raised(answered(code)).transient


@pytest.mark.parametrize("error", [exceptions.NoCredentialsError(), None])
def test_without_credentials_it_says_where_to_put_them(error: Exception | None) -> None:
    found = raised(error or exceptions.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"))
    said = "cannot launch the instances: no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID"
    assert (str(found), found.code, found.transient) == (said, "", False)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.EndpointConnectionError(endpoint_url="https://ec2.us-west-2.amazonaws.com"),
        exceptions.ReadTimeoutError(endpoint_url="https://ec2.us-west-2.amazonaws.com"),
        exceptions.ProxyConnectionError(proxy_url="http://proxy"),
    ],
)
def test_without_a_way_to_aws_it_may_succeed_soon(error: Exception) -> None:
    found = raised(error)
    assert str(found).startswith("cannot launch the instances: ")
    assert str(found).endswith("; check the network, the region and AWS_ENDPOINT_URL")
    assert (found.code, found.transient) == ("", True)


def test_an_answer_that_cannot_be_read_may_be_another_one_soon() -> None:
    found = raised(ResponseParserError("<html>"))
    said = "what came is not an answer of AWS; check the proxy, the region and AWS_ENDPOINT_URL"
    assert (str(found), found.transient) == (f"cannot launch the instances: {said}", True)


def test_any_other_error_of_the_sdk_has_its_reason() -> None:
    found = raised(exceptions.ProfileNotFound(profile="mine"))
    reason = "The config profile (mine) could not be found"
    assert (str(found), found.reason) == (f"cannot launch the instances: {reason}", reason)
    assert (found.code, found.transient) == ("", False)


def test_an_error_of_amazon_aws_is_what_it_wraps() -> None:
    @aws.one_call("launch the instances")
    def call(error: Exception) -> None:
        raise error

    for wrapped, said in (
        (AnsibleAWSError(exception=answered("AuthFailure")), "AWS would not launch the instances: no (AuthFailure)"),
        (AnsibleAWSError(message="odd"), "cannot launch the instances: odd"),
    ):
        with pytest.raises(AwsCallError) as found:
            call(wrapped)
        assert str(found.value).startswith(said)


@pytest.mark.parametrize("code", ["InvalidGroup.NotFound", "InvalidGroupId.NotFound", "NoSuchEntity"])
def test_codes_are_passed_over_by_name_or_by_pattern(code: str) -> None:
    with aws.passing_over("InvalidGroup*.NotFound", "NoSuchEntity"):
        raise answered(code)


@pytest.mark.parametrize("code", ["InvalidGroup.InUse", "nosuchentity", "NoSuchEntityException"])
def test_no_other_code_is_passed_over(code: str) -> None:
    with pytest.raises(exceptions.ClientError), aws.passing_over("InvalidGroup*.NotFound", "NoSuchEntity"):
        raise answered(code)


@pytest.mark.parametrize(
    "answer", [{"A": 1}, {"A": None, "ResponseMetadata": {}}, {"ResponseMetadata": {"RequestId": "1"}}]
)
def test_an_answer_of_aws_has_a_field_or_the_number_of_the_request(answer: dict[str, Any]) -> None:
    assert aws.checked(answer) is answer


@pytest.mark.parametrize("answer", [{}, {"ResponseMetadata": {}}, {"ResponseMetadata": {"RequestId": ""}}])
def test_an_answer_without_anything_is_none_of_aws(answer: dict[str, Any]) -> None:
    with pytest.raises(ResponseParserError, match="nothing that AWS's would have"):
        aws.checked(answer)
    with pytest.raises(ResponseParserError):
        aws.field_of(answer, "A")


def test_a_field_that_is_asked_for_must_be_there() -> None:
    assert aws.field_of({"A": None}, "A") is None
    with pytest.raises(ResponseParserError, match="the answer has no B"):
        aws.field_of({"A": 1}, "B")


KEYS: Any = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "region_name": "us-west-2"}
PAGE = "<html><body>Log in</body></html>"


def client_of(service: str, body: str) -> Any:
    """A client to which a proxy answers with some text."""
    client = boto3.client(service, **KEYS)  # type: ignore[call-overload]

    def answer(request: Any, **_more: Any) -> AWSResponse:
        raw = io.BytesIO(body.encode())
        raw.stream = lambda **_options: iter([body.encode()])  # type: ignore[attr-defined]
        return AWSResponse(request.url, 200, HTTPHeaders(), raw)

    client.meta.events.register("before-send", answer)
    return client


@pytest.mark.parametrize(
    ("service", "operation", "key"),
    [
        ("ec2", "describe_instances", "Reservations"),
        ("iam", "list_instance_profiles", "InstanceProfiles"),
        ("fsx", "describe_file_systems", "FileSystems"),
    ],
)
def test_the_page_of_a_proxy_is_no_empty_list(service: str, operation: str, key: str) -> None:
    look = aws.list_of("list them", operation, key)
    with pytest.raises(AwsCallError, match="cannot list them: what came is not an answer of AWS") as found:
        look(client_of(service, PAGE))
    assert found.value.transient


def test_a_call_without_a_field_gives_nothing_and_one_of_sts_who_calls() -> None:
    text = (
        "<R xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/a</Arn>"
        "</GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></R>"
    )
    client = client_of("sts", text)
    assert aws.caller_arn(client) == "arn:aws:iam::1:user/a"
    assert aws.call_of("ask", "get_caller_identity")(client) is None


@pytest.mark.parametrize("body", [PAGE, "{}", ""])
def test_the_page_of_a_proxy_says_of_nobody_who_calls(body: str) -> None:
    """Where it is well-formed, botocore looks for an element in it that is not there."""
    for ask in (aws.caller_arn, aws.call_of("ask who is calling", "get_caller_identity", "Arn")):
        with pytest.raises(AwsCallError, match="cannot ask who is calling: what came is not an answer of AWS"):
            ask(client_of("sts", body))


def test_a_mistake_of_ours_is_no_answer_of_a_proxy() -> None:
    """It would be tried again until the time is over."""

    class Client:
        def get_caller_identity(self) -> dict[str, str]:
            raise KeyError("Arn")

    with pytest.raises(KeyError):
        aws.caller_arn(Client())


def test_filters_are_lists_of_text() -> None:
    found = aws.filters_of({"vpc-id": "vpc-1", "tag:Name": ["a", "b"], "default-for-az": True})
    assert found == [
        {"Name": "vpc-id", "Values": ["vpc-1"]},
        {"Name": "tag:Name", "Values": ["a", "b"]},
        {"Name": "default-for-az", "Values": ["true"]},
    ]


class Module:
    """Keeps what a module ends with."""

    def __init__(self, diff: bool = False) -> None:
        self._diff, self.ended = diff, {}  # type: bool, dict[str, Any]

    def fail_json(self, **result: Any) -> None:
        self.ended = result

    def exit_json(self, **result: Any) -> None:
        self.ended = result


def test_a_failure_names_the_resource_and_has_the_details() -> None:
    module = Module()
    with aws.failing(module, "workers", None, "in us-west-2"):
        raise TrainiumError("is gone", missing=["i-1"])
    assert module.ended == {"msg": "workers in us-west-2: is gone.", "missing": ["i-1"]}
    with pytest.raises(KeyError), aws.failing(module, "workers"):
        raise KeyError("a mistake of ours")


@pytest.mark.parametrize(("wanted", "more"), [(True, {"diff": {"before": {}}}), (False, {})])
def test_a_difference_is_shown_to_who_wants_it(wanted: bool, more: dict[str, Any]) -> None:
    module = Module(wanted)
    aws.finish(module, {"changed": True, "diff": {"before": {}}})
    assert module.ended == {"changed": True, **more}


# Of EC2 and IAM, and of services with JSON.
@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling", "ThrottlingException"])
def test_who_is_throttled_asks_again_after_a_pause(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    answers: list[Any] = [answered(code)] * 3

    @aws.retried
    def call() -> str:
        if answers:
            raise answers.pop()
        return "done"

    assert call() == "done"
    assert len(pauses) == 3
    answers[:] = [answered(code)] * 99
    with pytest.raises(exceptions.ClientError):
        call()
    assert sum(pauses) < 200


def test_who_is_refused_does_not_ask_again() -> None:
    asked = []

    @aws.retried
    def call() -> None:
        asked.append(1)
        raise answered("UnauthorizedOperation")

    with pytest.raises(exceptions.ClientError):
        call()
    assert len(asked) == 1
