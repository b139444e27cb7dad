"""What FSx is asked, and what it answers, call by call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.stub import ANY, Stubber

from tests.unit.fsx.test_plan import item

ID = "fs-0a1b2c3d4e5f60010"
ARN = f"arn:aws:fsx:us-west-2:123456789012:file-system/{ID}"
CLIENT: Any = boto3.client("fsx", region_name="us-west-2", aws_access_key_id="id", aws_secret_access_key="secret")


def known(**changes: Any) -> dict[str, Any]:
    """The file system of the other tests, with ids as the API has them; ``more`` are further tags."""
    more = changes.pop("more", {})
    tags = {"Name": "data", "trainium:cluster": "c1", **more}
    ids = {"FileSystemId": ID, "ResourceARN": ARN, "SubnetIds": ["subnet-0a1b2c3d4e5f6"], "VpcId": "vpc-0a1b2c3d4e5f6"}
    found = item(Tags=[{"Key": key, "Value": value} for key, value in tags.items()], **{**ids, **changes})
    return {key: value for key, value in found.items() if value is not None}


class Fsx:
    """Answers in order; a call that is not expected, or another than that, fails the test."""

    def __init__(self, stub: Stubber) -> None:
        self._stub, self.client = stub, CLIENT

    def lists(self, *found: dict[str, Any]) -> None:
        self._stub.add_response("describe_file_systems", {"FileSystems": list(found)}, {})

    def shows(self, found: dict[str, Any]) -> None:
        asked = {"FileSystemIds": [found["FileSystemId"]]}
        self._stub.add_response("describe_file_systems", {"FileSystems": [found]}, asked)

    def has_none(self, identity: str = ID) -> None:
        asked = {"FileSystemIds": [identity]}
        self._stub.add_client_error("describe_file_systems", "FileSystemNotFound", "", 400, None, asked)

    def makes(self, found: dict[str, Any]) -> None:
        self._stub.add_response("create_file_system", {"FileSystem": found})

    def changes(self, **update: Any) -> None:
        asked = {"FileSystemId": ID, "ClientRequestToken": ANY, **update}
        self._stub.add_response("update_file_system", {"FileSystem": known()}, asked)

    def tags(self, arn: str = ARN, **tags: str) -> None:
        asked = {"ResourceARN": arn, "Tags": [{"Key": key, "Value": tags[key]} for key in sorted(tags)]}
        self._stub.add_response("tag_resource", {}, asked)

    def deletes(self, identity: str = ID, error: str = "") -> None:
        asked = {"FileSystemId": identity}
        if error:
            self._stub.add_client_error("delete_file_system", error, "", 400, None, asked)
        else:
            self._stub.add_response("delete_file_system", {"FileSystemId": identity, "Lifecycle": "DELETING"}, asked)


@contextmanager
def answering() -> Iterator[Fsx]:
    """Until its end all that was to be answered has been asked."""
    with Stubber(CLIENT) as stub:
        yield Fsx(stub)
        stub.assert_no_pending_responses()
