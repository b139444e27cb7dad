"""Connection options as an environment."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import aws_environment


def test_nothing_named_changes_nothing() -> None:
    assert aws_environment({"profile": None, "region": "us-west-2", "validate_certs": True}) == {}


def test_keys_overrule_a_profile_and_another_sessions_token() -> None:
    assert aws_environment({"access_key": "a", "secret_key": "b"}) == {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_PROFILE": None,
        "AWS_SESSION_TOKEN": None,
    }


def test_a_profile_overrules_keys() -> None:
    variables = aws_environment({"profile": "work", "endpoint_url": "http://127.0.0.1:5000"})
    assert variables["AWS_PROFILE"] == "work"
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:5000"
    assert variables["AWS_ACCESS_KEY_ID"] is variables["AWS_SECRET_ACCESS_KEY"] is None


def test_certificates_are_not_silently_verified() -> None:
    with pytest.raises(TrainiumError, match="aws_ca_bundle"):
        aws_environment({"validate_certs": False})
