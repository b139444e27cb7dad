"""What a service of AWS needs of IAM when it acts for a caller."""

from __future__ import annotations

from sandbox.emulator.access.ec2 import ACCOUNT
from sandbox.emulator.access.statements import Need


def linked(service: str, name: str = "AWSServiceRole") -> Need:
    """A service makes its own role; here always, in AWS where the account has none yet."""
    role = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/{name}"
    context = {"iam:AWSServiceName": [service]}
    return {"action": "iam:CreateServiceLinkedRole", "resources": [(role, {})], "context": context}
