# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What pcluster_config does: render, check, compare. The rules decide, ParallelCluster's library is asked offline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls as pcluster
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.arguments import CLUSTER_ARGUMENTS
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.impact import plan_impact, situation
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import merge, without_nothing
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import with_preset
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.render import (
    known_reservations,
    render,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.rules import errors, lint
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import WARNING, Finding, View


def variables_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The given variables with those of the preset below. Raises TrainiumError."""
    variables = without_nothing({key: params.get(key) for key in CLUSTER_ARGUMENTS if key != "overrides"})
    variables = with_preset(params.get("preset"), variables)
    # Here None has a meaning: the key is removed.
    variables["overrides"] = params.get("overrides") or {}
    return variables


def prepare(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """The configuration, and what is wrong with it. Raises TrainiumError.

    Without ``lint`` nothing is looked at.
    """
    given = params.get("configuration")
    if given is None:
        variables = variables_of(params)
        configuration = render(variables)
    else:
        variables = {}
        configuration = merge(given, params.get("overrides") or {})
    # Parts that occur twice would be written as anchors and aliases of YAML.
    configuration = json.loads(json.dumps(configuration, default=str))
    if params["lint"] == "none":
        return configuration, []
    owners = known_reservations(variables)
    view = View(
        configuration,
        params["cluster_name"],
        tuple(owners["aws"]),
        (*owners["self"], *(params.get("own_reservations") or ())),
        params.get("neuron_sdk_version") or "",
    )
    schema = pcluster.call(
        params.get("pcluster_python"),
        "schema",
        {"configuration": configuration, "cluster_name": params["cluster_name"]},
    )
    return configuration, lint(view, schema)


def refuse(findings: list[Finding], cluster_name: str) -> None:
    """Raise TrainiumError with every error's sentence, if there is one."""
    wrong = errors(findings)
    if wrong:
        what = "an error" if len(wrong) == 1 else f"{len(wrong)} errors"
        sentences = ". ".join(finding.message for finding in wrong)
        raise TrainiumError(
            f"the configuration of cluster {cluster_name} has {what}. {sentences}", findings=shown(findings)
        )


def impact(params: Mapping[str, Any], configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What the update from ``current`` would take. Raises TrainiumError."""
    current = params["current"]
    answer = pcluster.call(
        params.get("pcluster_python"),
        "update_policies",
        {"current": current, "wanted": configuration, "cluster_name": params["cluster_name"]},
    )
    return plan_impact(answer, situation(params["fleet_status"], current, configuration))


def shown(findings: list[Finding]) -> list[dict[str, str]]:
    return [{"key": one.key, "message": one.message, "severity": one.severity} for one in findings]


def warnings(findings: list[Finding], lint_mode: str) -> list[str]:
    """The sentences that are shown as warnings: all where nothing is refused."""
    return [finding.message for finding in findings if lint_mode == "warn" or finding.severity == WARNING]
