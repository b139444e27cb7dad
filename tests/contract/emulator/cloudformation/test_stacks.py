"""Stacks that wait, fail, roll back and go; by templates of a few resources."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from typing import Any

import pytest

Item = dict[str, Any]
HANDLE = {"Type": "AWS::CloudFormation::WaitConditionHandle"}


class Stacks:
    """CloudFormation in short form."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self.cfn = lab.client("cloudformation")

    def create(self, resources: Item, **options: Any) -> str:
        """The id of the new stack."""
        outputs = options.pop("outputs", {})
        body = json.dumps({"Resources": resources, "Outputs": outputs})
        return str(self.cfn.create_stack(StackName="one", TemplateBody=body, **options)["StackId"])

    def waiting(self, timeout: int = 60, **more: Any) -> Item:
        """The resources of a stack that waits for a signal."""
        properties = {"Handle": {"Ref": "Handle"}, "Timeout": str(timeout), "Count": 1}
        return {
            "Handle": HANDLE,
            "Ready": {"Type": "AWS::CloudFormation::WaitCondition", "Properties": properties},
            **more,
        }

    def show(self, name: str = "one") -> Item:
        found: Item = self.cfn.describe_stacks(StackName=name)["Stacks"][0]
        return found

    def end(self, name: str = "one", seconds: float = 300) -> str:
        """The status in which the stack comes to rest."""
        deadline = time.monotonic() + seconds
        while (status := str(self.show(name)["StackStatus"])).endswith("IN_PROGRESS"):
            assert time.monotonic() < deadline, status
            time.sleep(0.05)
        return status

    def events(self, name: str = "one") -> list[Item]:
        """The oldest first."""
        return list(reversed(self.cfn.describe_stack_events(StackName=name)["StackEvents"]))

    def failures(self, name: str = "one") -> dict[str, str]:
        return {
            event["LogicalResourceId"]: event.get("ResourceStatusReason", "")
            for event in self.events(name)
            if event["ResourceStatus"] == "CREATE_FAILED"
        }

    def handle(self) -> str:
        """The URL that takes the signal."""
        detail = self.cfn.describe_stack_resource(StackName="one", LogicalResourceId="Handle")["StackResourceDetail"]
        return str(detail["PhysicalResourceId"])

    def signal(self, status: str, reason: str = "", unique: str = "i-1", data: str = "") -> int:
        """As cfn-signal does it; returns the HTTP status."""
        document = {"Status": status, "Reason": reason, "UniqueId": unique, "Data": data}
        return self.put(self.handle(), json.dumps(document))

    @staticmethod
    def put(url: str, body: str) -> int:
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=300)
        connection.request("PUT", f"{parts.path}?{parts.query}", body, {"Content-Type": ""})
        try:
            return connection.getresponse().status
        finally:
            connection.close()

    def group(self) -> Item:
        return {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"GroupDescription": "for the test", "VpcId": self.lab.vpc},
        }


@pytest.fixture
def stacks(lab: Any) -> Stacks:
    lab.api.control("POST", "waiting", {"mode": "signal", "delay": 0.3})
    return Stacks(lab)


def test_a_stack_waits_for_its_signal(stacks: Stacks) -> None:
    data = {"Data": {"Value": {"Fn::GetAtt": ["Ready", "Data"]}}}
    stacks.create(stacks.waiting(Group=stacks.group()), outputs=data)
    time.sleep(0.6)
    shown = stacks.show()
    assert (shown["StackStatus"], shown.get("Outputs")) == ("CREATE_IN_PROGRESS", None)
    stacks.signal("SUCCESS", data="hello")
    assert stacks.end() == "CREATE_COMPLETE"
    assert json.loads(stacks.show()["Outputs"][0]["OutputValue"]) == {"i-1": "hello"}
    seen = [(event["LogicalResourceId"], event["ResourceStatus"]) for event in stacks.events()]
    assert seen[0] == ("one", "CREATE_IN_PROGRESS")
    assert seen[-2:] == [("Ready", "CREATE_COMPLETE"), ("one", "CREATE_COMPLETE")]
    assert seen.index(("Group", "CREATE_IN_PROGRESS")) < seen.index(("Group", "CREATE_COMPLETE"))


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "rolled back"])
def test_a_failed_signal_is_the_reason_of_the_failure(stacks: Stacks, keep: bool) -> None:
    stacks.create(stacks.waiting(Group=stacks.group()), DisableRollback=keep)
    stacks.signal("FAILURE", "Failed to run OnNodeConfigured script.")
    assert stacks.end() == ("CREATE_FAILED" if keep else "ROLLBACK_COMPLETE")
    text = "WaitCondition received failed message: 'Failed to run OnNodeConfigured script.' for uniqueId: i-1"
    assert stacks.failures()["Ready"] == text
    names = [group["GroupName"] for group in stacks.lab.ec2.describe_security_groups()["SecurityGroups"]]
    assert any(name.startswith("one-Group") for name in names) is keep


def test_no_signal_is_a_failure_after_the_timeout(stacks: Stacks) -> None:
    stacks.create(stacks.waiting(timeout=1))
    assert stacks.end() == "ROLLBACK_COMPLETE"
    assert stacks.failures()["Ready"] == "WaitCondition timed out. Received 0 conditions when expecting 1"


def test_signals_by_the_api_and_by_nobody(stacks: Stacks) -> None:
    stacks.create(stacks.waiting())
    signal = {"StackName": "one", "LogicalResourceId": "Ready", "UniqueId": "i-2", "Status": "SUCCESS"}
    stacks.cfn.signal_resource(**signal)
    assert stacks.end() == "CREATE_COMPLETE"
    assert stacks.lab.code_of(lambda: stacks.cfn.signal_resource(**signal)) == "ValidationError"
    stacks.cfn.delete_stack(StackName="one")
    stacks.lab.api.control("POST", "waiting", {"mode": "fail", "reason": "no disk"})
    stacks.lab.api.control("POST", "clear")
    assert stacks.lab.api.control("GET", "waiting")["mode"] == "succeed"


def test_a_bad_signal_is_refused(stacks: Stacks) -> None:
    stacks.create(stacks.waiting())
    assert stacks.signal("PERHAPS") == 400
    assert stacks.put(f"{stacks.lab.api.url}/wait-conditions/none", "{}") == 404
    assert stacks.signal("SUCCESS") == 200


def test_a_resource_that_cannot_be_made_cancels_the_rest(stacks: Stacks) -> None:
    fault = {"service": "cloudformation", "match": {"Type": "AWS::EC2::SecurityGroup"}}
    stacks.lab.api.fault("CreateResource", "any", **fault)
    identity = stacks.create(stacks.waiting(Group=stacks.group()))
    assert stacks.end() == "ROLLBACK_COMPLETE"
    assert stacks.failures() == {"Group": "for the test", "Ready": "Resource creation cancelled"}
    refused = stacks.lab.code_of(lambda: stacks.cfn.update_stack(StackName="one", TemplateBody="{'Resources': {}}"))
    assert refused == "ValidationError"
    stacks.cfn.delete_stack(StackName="one")
    assert stacks.end(identity) == "DELETE_COMPLETE"


def test_an_instance_that_is_not_to_be_had_fails_the_stack(stacks: Stacks) -> None:
    stacks.lab.api.capacity("m5.xlarge", stacks.lab.zones[0], 0)
    properties = {"ImageId": stacks.lab.image, "InstanceType": "m5.xlarge", "SubnetId": stacks.lab.subnet}
    stacks.create({"Head": {"Type": "AWS::EC2::Instance", "Properties": properties}})
    assert stacks.end() == "ROLLBACK_COMPLETE"
    assert "sufficient m5.xlarge capacity" in stacks.failures()["Head"]
    assert not stacks.lab.shown()


def test_an_update_waits_and_a_failed_one_is_undone(stacks: Stacks) -> None:
    stacks.create({"Group": stacks.group()})
    assert stacks.end() == "CREATE_COMPLETE"
    body = json.dumps({"Resources": stacks.waiting(Group=stacks.group(), Table=_table())})
    stacks.cfn.update_stack(StackName="one", TemplateBody=body)
    tables = stacks.lab.client("dynamodb").list_tables
    assert tables()["TableNames"] == ["fleet"]
    assert stacks.show()["StackStatus"] == "UPDATE_IN_PROGRESS"
    assert stacks.lab.code_of(lambda: stacks.cfn.update_stack(StackName="one", TemplateBody=body)) == "ValidationError"
    stacks.signal("FAILURE", "Update failed")
    assert stacks.end() == "UPDATE_ROLLBACK_COMPLETE"
    assert tables()["TableNames"] == []
    unchanged = json.dumps({"Resources": {"Group": stacks.group()}, "Outputs": {}})
    message = r"No updates are to be performed"
    with pytest.raises(stacks.cfn.exceptions.ClientError, match=message):
        stacks.cfn.update_stack(StackName="one", TemplateBody=unchanged)


def test_a_deletion_that_cannot_be_and_then_can(stacks: Stacks) -> None:
    identity = stacks.create({"Kept": {**_table("kept"), "DeletionPolicy": "Retain"}, "Table": _table()})
    assert stacks.end() == "CREATE_COMPLETE"
    stacks.lab.api.fault("DeleteResource", "any", service="cloudformation")
    stacks.cfn.delete_stack(StackName="one")
    assert stacks.end() == "DELETE_FAILED"
    assert "for the test" in stacks.events()[-1]["ResourceStatusReason"]
    stacks.cfn.delete_stack(StackName="one")
    assert stacks.end(identity) == "DELETE_COMPLETE"
    assert stacks.lab.client("dynamodb").list_tables()["TableNames"] == ["kept"]
    assert stacks.lab.code_of(stacks.show) == "ValidationError"


def test_metadata_of_a_resource_is_resolved(stacks: Stacks) -> None:
    metadata = {
        "AWS::CloudFormation::Init": {"deployFiles": {"files": {"/etc/handle": {"content": {"Ref": "Handle"}}}}}
    }
    stacks.create({"Handle": HANDLE, "Group": {**stacks.group(), "Metadata": metadata}})
    detail = stacks.cfn.describe_stack_resource(StackName="one", LogicalResourceId="Group")["StackResourceDetail"]
    files = json.loads(detail["Metadata"])["AWS::CloudFormation::Init"]["deployFiles"]["files"]
    assert files["/etc/handle"]["content"] == stacks.handle()


def _table(name: str = "fleet") -> Item:
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
        },
    }
