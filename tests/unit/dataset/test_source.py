"""The objects of a bucket as the controller lists and signs them, by a client that keeps what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import run_source
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import unwrapped
from botocore import UNSIGNED
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

REGION = "us-west-2"
Item = dict[str, Any]


def listed(*keys: str, region: str = REGION, **more: Any) -> Item:
    found = [{"Key": key, "Size": len(key), "ETag": f'"{key}"'} for key in keys]
    headers = {"x-amz-bucket-region": region} if region else {}
    return {"Contents": found, "ResponseMetadata": {"HTTPHeaders": headers}, **more}


class S3:
    """Connects to S3 as the module does; what a client is asked has its answer from ``expect``."""

    def __init__(self) -> None:
        self.settings: list[Item] = []
        self._answers: list[tuple[str, Any, Item]] = []

    def expect(self, call: str, answer: Any, **asked: Any) -> None:
        self._answers.append((call, answer, asked))

    def connect(self, settings: Item) -> Any:
        self.settings.append(settings)
        client: Any = boto3.client(
            "s3",
            region_name=settings.get("region", REGION),
            endpoint_url=settings.get("endpoint"),
            config=settings["config"],
            aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
            aws_secret_access_key="secret",
        )
        stubber = Stubber(client)
        for call, answer, asked in self._answers:
            if isinstance(answer, dict):
                stubber.add_response(call, answer, asked)
            else:
                code, text, *status = answer
                stubber.add_client_error(call, code, text, status[0] if status else 400, expected_params=asked)
        self._answers = []
        stubber.activate()
        return client

    def describe(self, source: str, signed: bool = True, expires: int = 60, host_endpoint: str = "") -> Item:
        return run_source.describe(self.connect, source, signed, expires, host_endpoint)


@pytest.fixture
def s3() -> Iterator[S3]:
    yield S3()


def test_the_objects_of_a_prefix(s3: S3) -> None:
    s3.expect("list_objects_v2", listed("p/", "p/a", "p/b/c"), Bucket="bucket", Prefix="p/")
    found = s3.describe("s3://bucket/p/")
    assert [(file["path"], file["size"], file["tag"]) for file in found["files"]] == [
        ("a", 3, '"p/a"'),
        ("b/c", 5, '"p/b/c"'),
    ]
    assert (found["size"], found["md5_tags"]) == (8, True)
    url = urlsplit(unwrapped(found["files"][1]["url"]))
    assert (url.hostname, url.path) == ("bucket.s3.amazonaws.com", "/p/b/c")
    query = parse_qs(url.query)
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert f"/{REGION}/s3/" in query["X-Amz-Credential"][0]
    assert len(s3.settings) == 1
    assert "region" not in s3.settings[0]


def test_all_of_a_bucket_over_several_pages(s3: S3) -> None:
    more: Item = {"IsTruncated": True, "NextContinuationToken": "more"}
    s3.expect("list_objects_v2", listed("a", **more), Bucket="bucket", Prefix="")
    s3.expect("list_objects_v2", listed("b", region=""), Bucket="bucket", Prefix="", ContinuationToken="more")
    assert [file["path"] for file in s3.describe("s3://bucket")["files"]] == ["a", "b"]


def test_an_object_needs_no_right_to_list(s3: S3) -> None:
    answer = {"ContentLength": 7, "ETag": '"a"', "ResponseMetadata": {"HTTPHeaders": {}}}
    s3.expect("head_object", answer, Bucket="bucket", Key="p/a b")
    (file,) = s3.describe("s3://bucket/p/a b")["files"]
    assert (file["path"], file["size"], file["tag"]) == ("a b", 7, '"a"')
    assert urlsplit(unwrapped(file["url"])).path == "/p/a%20b"


def test_addresses_are_of_the_region_of_the_bucket(s3: S3) -> None:
    s3.expect("list_objects_v2", listed("a", region="eu-west-1"), Bucket="bucket", Prefix="")
    (file,) = s3.describe("s3://bucket")["files"]
    assert [given.get("region") for given in s3.settings] == [None, "eu-west-1"]
    assert "%2Feu-west-1%2Fs3%2F" in unwrapped(file["url"])


def test_addresses_are_of_the_endpoint_of_the_hosts(s3: S3) -> None:
    s3.expect("list_objects_v2", listed("a"), Bucket="bucket", Prefix="")
    (file,) = s3.describe("s3://bucket", host_endpoint="http://10.0.0.1:4566")["files"]
    # A host that is known by its address has no names of buckets.
    assert unwrapped(file["url"]).startswith("http://10.0.0.1:4566/bucket/a?")
    assert s3.settings[1]["endpoint"] == "http://10.0.0.1:4566"


def test_a_public_bucket_is_asked_without_a_signature(s3: S3) -> None:
    s3.expect("list_objects_v2", listed("a"), Bucket="bucket", Prefix="")
    (file,) = s3.describe("s3://bucket", signed=False)["files"]
    assert unwrapped(file["url"]) == "https://bucket.s3.amazonaws.com/a"
    assert s3.settings[0]["config"].signature_version is UNSIGNED


def test_tags_of_express_buckets_are_no_md5(s3: S3) -> None:
    s3.expect("list_objects_v2", listed("a"), Bucket="b--usw2-az1--x-s3", Prefix="")
    client = s3.connect
    # Its sessions are another call.
    kept = run_source.s3.object_url
    try:
        run_source.s3.object_url = lambda *_given: "https://x"
        assert run_source.describe(client, "s3://b--usw2-az1--x-s3", False, 60)["md5_tags"] is False
    finally:
        run_source.s3.object_url = kept


@pytest.mark.parametrize(("expires", "good"), [(0, False), (1, True), (604800, True), (604801, False)])
def test_how_long_addresses_may_be_valid(s3: S3, expires: int, good: bool) -> None:
    s3.expect("list_objects_v2", listed("a"), Bucket="bucket", Prefix="")
    if good:
        assert s3.describe("s3://bucket", expires=expires)["size"] == 1
    else:
        with pytest.raises(ValueError, match=f"^expires is {expires}; take 1 to 604800 seconds$"):
            s3.describe("s3://bucket", expires=expires)


def test_too_many_objects_are_refused(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_source, "MOST_OBJECTS", 2)
    s3.expect("list_objects_v2", listed(*"ab"), Bucket="bucket", Prefix="")
    assert len(s3.describe("s3://bucket")["files"]) == 2
    s3.expect("list_objects_v2", listed(*"abc"), Bucket="bucket", Prefix="")
    with pytest.raises(TrainiumError, match=r"^s3://bucket has more than 2 objects; pack them into archives"):
        s3.describe("s3://bucket")


@pytest.mark.parametrize(
    ("call", "answer", "source"),
    [
        ("list_objects_v2", listed("p/"), "s3://bucket/p/"),
        ("list_objects_v2", {}, "s3://bucket/p/"),
        ("head_object", ("404", "Not Found", 404), "s3://bucket/p"),
    ],
)
def test_where_there_is_nothing(s3: S3, call: str, answer: Any, source: str) -> None:
    s3.expect(call, answer, Bucket="bucket", **({"Key": "p"} if call == "head_object" else {"Prefix": "p/"}))
    with pytest.raises(TrainiumError, match=f"^There is nothing at {source}; check the source"):
        s3.describe(source)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("NoSuchBucket", "there is no such bucket; check the source"),
        ("AccessDenied", "it must not be read; check the policy of the bucket and of the controller's credentials"),
        ("403", "it must not be read; check the policy of the bucket and of the controller's credentials"),
        ("ExpiredToken", "the credentials have expired; "),
        ("400", "the credentials may have expired, or its region is another; log in to AWS again, or set the region"),
        ("PermanentRedirect", "it is in another region; set the region"),
        ("Strange", "Strange words"),
    ],
)
def test_a_refusal_of_s3_is_a_sentence(s3: S3, code: str, said: str) -> None:
    s3.expect("list_objects_v2", (code, "words"), Bucket="bucket", Prefix="")
    with pytest.raises(AwsCallError) as error:
        s3.describe("s3://bucket")
    assert str(error.value).startswith(f"The bucket bucket was not read: {said}")
    assert error.value.code == code


def raising(error: Exception) -> Any:
    def paginate(**_given: Any) -> Any:
        raise error

    return SimpleNamespace(get_paginator=lambda _call: SimpleNamespace(paginate=paginate))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NoCredentialsError(), "the controller has no credentials; give it some, or set signed to false for a public"),
        (EndpointConnectionError(endpoint_url="https://x"), "Could not connect to the endpoint URL"),
        (
            # botocore's types do not know the region, which S3 tells here alone.
            ClientError({"Error": {"Code": "PermanentRedirect", "Region": "eu-west-1"}}, "ListObjectsV2"),  # type: ignore[typeddict-unknown-key]
            "it is in another region; set the region eu-west-1",
        ),
    ],
)
def test_what_was_not_reached_is_a_sentence(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with pytest.raises(AwsCallError, match=f"^The bucket bucket was not read: {said}"):
        run_source.describe(lambda _settings: raising(error), "s3://bucket", True, 60)
