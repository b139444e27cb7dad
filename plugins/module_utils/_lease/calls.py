# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of SSM each, for the parameter that is the lease."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    call_of,
    one_call,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list

_ABSENT = ("ParameterNotFound",)

_parameter = call_of("read the lease of the cluster", "get_parameter", "Parameter", _ABSENT)
delete = call_of("delete the lease of the cluster", "delete_parameter", passed=_ABSENT)


@one_call("take the lease of the cluster")
@retried
def create(client: Client, name: str, text: str, tags: Mapping[str, str]) -> bool:
    """Write the parameter; False where it exists."""
    with passing_over("ParameterAlreadyExists"):
        client.put_parameter(Name=name, Value=text, Type="String", Overwrite=False, Tags=tag_list(tags))
        return True
    return False


def read(client: Client, name: str) -> tuple[str, int] | None:
    """The parameter and its version; None where there is none."""
    found = _parameter(client, Name=name)
    return (str(found["Value"]), int(found["Version"])) if found else None


@one_call("write the lease of the cluster")
def replace(client: Client, name: str, text: str) -> int:
    """Write the parameter that exists; its version then. Not repeated, since each write counts one up."""
    return int(client.put_parameter(Name=name, Value=text, Type="String", Overwrite=True)["Version"])
