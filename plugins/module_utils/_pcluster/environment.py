# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The connection options of an AWS module as the environment of a program that uses the AWS SDK. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html
_VARIABLES = {
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "profile": "AWS_PROFILE",
    "endpoint_url": "AWS_ENDPOINT_URL",
    "aws_ca_bundle": "AWS_CA_BUNDLE",
}
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def aws_environment(params: Mapping[str, Any]) -> dict[str, str | None]:
    """Variables for a child process; None takes one away, so that what the task names is not overruled by what is set.

    Raises TrainiumError for an option that cannot be passed on this way.
    """
    if params.get("validate_certs") is False:
        raise TrainiumError(
            "validate_certs=false cannot be handed to ParallelCluster; name the certificate with aws_ca_bundle"
        )
    variables: dict[str, str | None] = {
        name: str(params[option]) for option, name in _VARIABLES.items() if params.get(option)
    }
    if params.get("profile"):
        variables.update({name: None for name in _KEYS if name not in variables})
    if params.get("access_key"):
        variables.update({name: None for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN") if name not in variables})
    return variables
