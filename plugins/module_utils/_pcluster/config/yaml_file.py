# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read a configuration of ParallelCluster that is given as a dictionary or as a YAML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.yaml import HAS_YAML, yaml_load
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError


def read_configuration(params: Mapping[str, Any]) -> dict[str, Any]:
    """The option ``configuration``, or the content of ``configuration_file``. Raises TrainiumError."""
    if params.get("configuration") is not None:
        return dict(params["configuration"])
    path = params["configuration_file"]
    if not HAS_YAML:
        raise TrainiumError(f"{path} cannot be read without PyYAML; install it for Ansible's interpreter there")
    try:
        with open(path, encoding="utf-8") as stream:
            content = yaml_load(stream)
    except OSError as error:
        raise TrainiumError(f"configuration_file {path}: {error.strerror}") from error
    except Exception as error:
        # The parser's own classes differ between its versions; its text says line and column.
        raise TrainiumError(f"configuration_file {path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise TrainiumError(f"configuration_file {path} holds no dictionary")
    # Dates become text, as they are when a configuration goes through Ansible.
    plain: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return plain
