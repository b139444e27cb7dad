# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the update of a cluster would take: nothing, a queue update strategy, a stopped fleet, or a new cluster.

ParallelCluster itself says what it would allow in each state of a cluster (the worker's operation ``update_policies``);
this chooses the mildest state that serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

DEFAULT_STRATEGY = "COMPUTE_FLEET_STOP"
# Milder first: DRAIN lets jobs end, TERMINATE does not.
STRATEGIES = ("DRAIN", "TERMINATE")
RUNNING, STOPPED = "RUNNING", "STOPPED"

NOTHING = "nothing"
STRATEGY = "queue_update_strategy"
STOP_FLEET = "stopped_fleet"
STOP_LOGIN = "stopped_login_nodes"
STOP_BOTH = "stopped_fleet_and_login_nodes"
NEW_CLUSTER = "new_cluster"
# The mildest first.
NEEDS = (NOTHING, STRATEGY, STOP_FLEET, STOP_LOGIN, STOP_BOTH, NEW_CLUSTER)


class Situation(NamedTuple):
    """How the cluster is: its fleet RUNNING or STOPPED, whether login nodes run, and the configured strategy."""

    fleet: str
    login_nodes: bool
    strategy: str


def situation(fleet_status: str, current: Mapping[str, Any], wanted: Mapping[str, Any]) -> Situation:
    """The situation that an update meets. A fleet that is not fully stopped counts as running, as in ParallelCluster.

    The strategy is the wanted configuration's, the login nodes are the current one's.
    """
    settings = ((wanted.get("Scheduling") or {}).get("SlurmSettings")) or {}
    pools = (current.get("LoginNodes") or {}).get("Pools") or []
    return Situation(
        STOPPED if fleet_status.upper() == STOPPED else RUNNING,
        any(int(pool.get("Count") or 0) > 0 for pool in pools),
        str(settings.get("QueueUpdateStrategy") or DEFAULT_STRATEGY),
    )


def plan_impact(answer: Mapping[str, Any], now: Situation) -> dict[str, Any]:
    """The impact of an update.

    Args:
        answer: {"changes": [{key, old, new, policy}], "states": [{fleet, login_nodes, strategy, verdicts: [{allowed,
            reason, action}]}]}, the verdicts in the order of the changes.
        now: the situation.

    Returns:
        {"changes": [{key, old, new, policy, allowed, needs, strategies, reason}], "allowed", "needs", "strategies",
        "message"}. ``needs`` is one of NEEDS, for the whole the mildest state in which every change is allowed;
        ``strategies`` are the queue update strategies that would do while the fleet runs.
    """
    states = {
        Situation(state["fleet"], state["login_nodes"], state["strategy"]): state["verdicts"]
        for state in answer["states"]
    }
    changes = []
    for index, change in enumerate(answer["changes"]):
        allowed = {state: bool(verdicts[index]["allowed"]) for state, verdicts in states.items()}
        needs, strategies = _needs(allowed, now)
        changes.append(
            {
                **change,
                "allowed": needs == NOTHING,
                "needs": needs,
                "strategies": strategies,
                "reason": states[now][index]["reason"],
            }
        )
    together = {state: all(item["allowed"] for item in verdicts) for state, verdicts in states.items()}
    needs, strategies = _needs(together, now)
    return {
        "changes": changes,
        "allowed": needs == NOTHING,
        "needs": needs,
        "strategies": strategies,
        "message": _message(changes, needs, strategies),
    }


def _needs(allowed: Mapping[Situation, bool], now: Situation) -> tuple[str, list[str]]:
    """The mildest remedy, and the strategies that would do with the fleet as it is."""
    strategies = [name for name in STRATEGIES if allowed[now._replace(strategy=name)]]
    if allowed[now]:
        return NOTHING, strategies
    if strategies:
        return STRATEGY, strategies
    if allowed[now._replace(fleet=STOPPED)]:
        return STOP_FLEET, []
    if any(allowed[now._replace(login_nodes=False, strategy=name)] for name in (now.strategy, *STRATEGIES)):
        return STOP_LOGIN, []
    if allowed[now._replace(fleet=STOPPED, login_nodes=False)]:
        return STOP_BOTH, []
    return NEW_CLUSTER, []


def _message(changes: Iterable[Mapping[str, Any]], needs: str, strategies: list[str]) -> str:
    changes = list(changes)
    if not changes:
        return "The configurations do not differ in anything that ParallelCluster updates"
    keys = ", ".join(change["key"] for change in changes if change["needs"] == needs) or "these changes together"
    remedies = {
        NOTHING: "The update is allowed as the cluster is",
        STRATEGY: f"{keys}: set QueueUpdateStrategy to {' or '.join(strategies)}, or stop the compute fleet",
        STOP_FLEET: f"{keys}: stop the compute fleet first",
        STOP_LOGIN: f"{keys}: stop the login nodes first, by a Count of 0 in an update of its own",
        STOP_BOTH: f"{keys}: stop the compute fleet first, and the login nodes by a Count of 0 in an update of its own",
        NEW_CLUSTER: f"{keys}: no update can change it; restore it, or make a new cluster",
    }
    return remedies[needs]
