"""Tokens of ``aws eks get-token``, made by botocore as the AWS CLI makes them."""

from __future__ import annotations

import base64
import datetime

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sandbox.kubernetes.inside import token

SECRET = "made up"
HOST = "sts.us-west-2.amazonaws.com"


def made(cluster: str | None = "trn", secret: str = SECRET, host: str = HOST, action: str = "GetCallerIdentity") -> str:
    """A token as customizations/eks/get_token.py of the AWS CLI makes it."""
    request = AWSRequest("GET", f"https://{host}/?Action={action}&Version=2011-06-15")
    if cluster is not None:
        request.headers[token.CLUSTER_HEADER] = cluster
    SigV4QueryAuth(Credentials("AKIASANDBOX", secret), "sts", "us-west-2", expires=60).add_auth(request)
    return encoded(str(request.url))


def encoded(url: str) -> str:
    return token.PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def read(word: str, minutes: float = 0) -> token.Call:
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    return token.read(word, frozenset({"127.0.0.1:5199"}), now)


def test_the_signature_is_that_of_the_secret_and_the_cluster() -> None:
    call = read(made())
    assert call.access_key == "AKIASANDBOX"
    assert token.signature(call, "trn", SECRET) == call.parameters["X-Amz-Signature"]
    assert token.signature(call, "other", SECRET) != call.parameters["X-Amz-Signature"]
    assert token.signature(call, "trn", "another") != call.parameters["X-Amz-Signature"]


def test_a_token_for_the_emulator_is_read() -> None:
    assert read(made(host="127.0.0.1:5199")).host == "127.0.0.1:5199"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("eyJhbGciOi", "prefix"),
        (token.PREFIX + "%%%", "holds no URL|unexpected"),
        (encoded("https://attacker.example/?Action=GetCallerIdentity"), "unexpected hostname"),
        (encoded(f"https://{HOST}/elsewhere?Action=GetCallerIdentity"), "unexpected path"),
        (made(cluster=None), "did not sign the x-k8s-aws-id"),
        (made(action="GetSessionToken"), "unexpected action"),
        (encoded(f"https://{HOST}/?Action=GetCallerIdentity&Redirect=1"), "non-whitelisted query parameter 'Redirect'"),
    ],
)
def test_what_is_no_token_is_refused(word: str, reason: str) -> None:
    with pytest.raises(token.TokenError, match=reason):
        read(word)


def test_an_old_token_is_refused() -> None:
    word = made()
    assert read(word, minutes=14)
    with pytest.raises(token.TokenError, match="expired"):
        read(word, minutes=16)
