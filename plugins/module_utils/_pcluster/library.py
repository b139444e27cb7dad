# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""ParallelCluster's library as a module reaches it: which interpreter, which region, which credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls as pcluster

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
# The option of every module that needs the library; documented in doc_fragments/pcluster.py.
LIBRARY_ARGUMENTS: dict[str, dict[str, Any]] = {"pcluster_python": {"type": "path"}}


class Library:
    """The operations of ``pcluster.lib`` with a module's connection. All raise PclusterError."""

    def __init__(self, python: str | None, region: str, environment: dict[str, str | None]) -> None:
        self._python, self._region, self._environment = python, region, environment

    def call(self, operation: str, **arguments: Any) -> Any:
        """The answer of an operation; arguments that are None are left out."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return pcluster.call(self._python, operation, given, region=self._region, environment=self._environment)

    def dry_run(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Whether AWS and the library would accept; ``changeSet`` and ``validationMessages`` if so."""
        try:
            answer = self.call(operation, **arguments, dryrun=True)
        except pcluster.PclusterError as error:
            if error.code != pcluster.DRY_RUN:
                raise
            return error.content
        return dict(answer or {})

    def all_pages(self, operation: str, field: str, **arguments: Any) -> list[Any]:
        """The ``field`` of every page of a listing."""
        items: list[Any] = []
        token: str | None = None
        while True:
            page = self.call(operation, next_token=token, **arguments)
            items.extend(page.get(field) or ())
            token = page.get("nextToken")
            if not token:
                return items


def library_of(module: Any) -> Library:
    """The library with the options of an AnsibleAWSModule. Raises TrainiumError."""
    if not module.region:
        raise TrainiumError("the region is not known; set region, or AWS_REGION")
    return Library(module.params["pcluster_python"], module.region, aws_environment(module.params))


def snake(answer: dict[str, Any]) -> dict[str, Any]:
    """A library answer with the names of Ansible, tags as a dictionary, and without links that let anyone in."""
    named: dict[str, Any] = camel_dict_to_snake_dict(
        {key: value for key, value in answer.items() if key not in ("tags", "clusterConfiguration")}
    )
    if "tags" in answer:
        named["tags"] = {tag["key"]: tag["value"] for tag in answer["tags"] or ()}
    return named


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
