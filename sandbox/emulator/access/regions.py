"""Regions that the account has not enabled; stock moto answers in all of them.

"AWS Regions" in the Account Management guide lists those that are enabled by default. In another one EC2 says that it
cannot validate the credentials, and services that speak JSON that the token is invalid ("Enable or disable AWS
Regions", troubleshooting).
"""

from __future__ import annotations

ENABLED = {
    *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1"),
    *("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3"),
    *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
}


def refusal(region: str, service: str) -> tuple[int, str, str] | None:
    """Status, code and sentence for a call in a region that is not enabled, else None; '' is no region."""
    if not region or region in ENABLED:
        return None
    if service == "ec2":
        return 401, "AuthFailure", "AWS was not able to validate the provided access credentials"
    return 400, "UnrecognizedClientException", "The security token included in the request is invalid."
