"""A dataset from the emulated S3: listed and signed in one place, fetched in another without credentials."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import unwrapped

from tests.contract.conftest import CREDENTIALS, REGION, Account

CONTENT = os.urandom(3 * 1024 * 1024)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def bucket(cloud: Account) -> Any:
    s3 = boto3.resource(
        "s3",
        region_name=REGION,
        endpoint_url=cloud.api.url,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )
    made = s3.create_bucket(Bucket="datasets", CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in ("wiki/a.bin", "wiki/b c+ü#?.bin"):
        made.put_object(Key=key, Body=CONTENT)
    made.put_object(Key="wiki/", Body=b"")
    made.put_object(Key="wiki-other", Body=b"other")
    cloud.api.clear_calls()
    return made


def fetch(tmp_path: Path, source: str, found: dict[str, Any], **options: Any) -> dict[str, Any]:
    """dataset, as on a host without credentials."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    arguments = {"source": source, "destination": str(tmp_path / "data"), "files": found["files"], "md5_tags": True}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.trainium.cluster.plugins.modules.dataset"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, **options}}),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "Signature" not in done.stdout
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("signed", [True, False])
def test_a_prefix(cloud: Account, bucket: Any, tmp_path: Path, signed: bool) -> None:
    if not signed:
        bucket.Acl().put(ACL="public-read")
        for item in bucket.objects.all():
            item.Acl().put(ACL="public-read")
        cloud.api.clear_calls()
    found = cloud.run("dataset_source_info", {"source": "s3://datasets/wiki/", "signed": signed})
    assert not found.get("failed"), found
    assert [file["path"] for file in found["files"]] == ["a.bin", "b c+ü#?.bin"]
    assert found["size"] == 2 * len(CONTENT)
    assert all(("X-Amz-Signature=" in unwrapped(file["url"])) == signed for file in found["files"])
    assert len(cloud.api.calls()) == 1
    result = fetch(tmp_path, "s3://datasets/wiki/", found, checksums={"a.bin": SHA256})
    assert result.get("complete"), result
    assert all((tmp_path / "data" / name).read_bytes() == CONTENT for name in ("a.bin", "b c+ü#?.bin"))
    assert not fetch(tmp_path, "s3://datasets/wiki/", found, checksums={"a.bin": SHA256})["changed"]


def test_one_object(cloud: Account, bucket: Any, tmp_path: Path) -> None:
    found = cloud.run("dataset_source_info", {"source": "s3://datasets/wiki/a.bin", "expires": 60})
    assert [file["path"] for file in found["files"]] == ["a.bin"]
    assert "X-Amz-Expires=60" in unwrapped(found["files"][0]["url"])
    assert fetch(tmp_path, "s3://datasets/wiki/a.bin", found)["complete"]


def test_a_session_token_in_an_address_is_not_masked(cloud: Account, bucket: Any, tmp_path: Path) -> None:
    cloud.environment["AWS_SESSION_TOKEN"] = "token"
    found = cloud.run("dataset_source_info", {"source": "s3://datasets/wiki/a.bin"})
    assert "X-Amz-Security-Token=token&" in unwrapped(found["files"][0]["url"])
    assert fetch(tmp_path, "s3://datasets/wiki/a.bin", found)["complete"]


def test_calls_grow_with_pages_only(cloud: Account, bucket: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: bucket.put_object(Key=f"many/{number}", Body=b"x"), range(1001)))
    cloud.api.clear_calls()
    found = cloud.run("dataset_source_info", {"source": "s3://datasets/many/"})
    assert len(found["files"]) == 1001
    assert len(cloud.api.calls()) == 2


def test_an_endpoint_of_the_hosts(cloud: Account, bucket: Any) -> None:
    found = cloud.run(
        "dataset_source_info", {"source": "s3://datasets/wiki/a.bin", "host_endpoint": "http://s3.inside:1234"}
    )
    assert unwrapped(found["files"][0]["url"]).startswith("http://s3.inside:1234/datasets/wiki/a.bin?")
    assert len(cloud.api.calls()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"source": "s3://no-such-bucket/"}, "there is no such bucket; check the source"),
        ({"source": "s3://no-such-bucket/a"}, "There is nothing at s3://no-such-bucket/a; check the source"),
        ({"source": "s3://datasets/wiki/missing"}, "There is nothing at s3://datasets/wiki/missing"),
        ({"source": "s3://datasets/wiki"}, "a prefix ends with a slash"),
        ({"source": "s3://datasets/wiki/", "expires": 0}, "take 1 to 604800 seconds"),
        ({"source": "https://datasets/wiki/"}, "names no bucket"),
    ],
)
def test_refusals(cloud: Account, bucket: Any, arguments: dict[str, Any], sentence: str) -> None:
    result = cloud.run("dataset_source_info", arguments)
    assert result.get("failed")
    assert sentence in result["msg"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("s3://datasets/wiki/", "the credentials have expired; log in to AWS again"),
        # To HEAD it answers without a reason.
        ("s3://datasets/wiki/a.bin", "the credentials may have expired, or its region is another"),
    ],
)
def test_expired_credentials(cloud: Account, bucket: Any, source: str, sentence: str) -> None:
    cloud.api.control("POST", "weather", {"share": 1, "kinds": ["expired"]})
    result = cloud.run("dataset_source_info", {"source": source})
    cloud.api.control("DELETE", "weather")
    assert result.get("failed")
    assert sentence in result["msg"]


def test_objects_whose_key_is_no_path(cloud: Account, bucket: Any) -> None:
    bucket.put_object(Key="bad/../../etc/passwd", Body=b"x")
    result = cloud.run("dataset_source_info", {"source": "s3://datasets/bad/"})
    assert "whose name is no path below the destination" in result["msg"]
