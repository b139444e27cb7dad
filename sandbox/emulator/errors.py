"""Errors as EC2 answers them."""

from __future__ import annotations

from typing import NoReturn

from moto.ec2.exceptions import EC2ClientError


def refuse(code: str, message: str) -> NoReturn:
    """Answer the request with an EC2 error."""
    raise EC2ClientError(code, message)
