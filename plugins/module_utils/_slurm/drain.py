# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which nodes get jobs: the verdicts on the nodes and what Slurm says of them -> whom to drain, whom to resume. Pure.

A drain of ours has a reason that begins with ``acceptance: ``. Nobody else's drain is ever touched, but that of a node
whose instance was replaced, which is a matter of the instance that is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode

PREFIX = "acceptance: "
# Slurm shows longer reasons cut off in most places.
LONGEST_REASON = 200

_MARK = re.compile(r"trainium: replaces (i-[0-9a-z]+)(?:, was (.*))?")

PASSED, FAILED, HELD = "passed", "failed", "held"


@dataclass
class Plan:
    """What Slurm is to be told, by node."""

    drain: dict[str, str] = field(default_factory=dict)
    resume: list[str] = field(default_factory=list)


class Mark(NamedTuple):
    """Of which instance Slurm says that it is to go, and why the node was drained before; '' where it was not."""

    instance_id: str
    before: str


def mark_of(node: SlurmNode | None) -> Mark | None:
    """None for a node that is not drained to be replaced."""
    found = _MARK.fullmatch(node.reason) if node is not None and node.out else None
    return Mark(found[1], found[2] or "") if found else None


def back_to(before: str) -> list[str]:
    """What scontrol is told of a node that stays after all: it is out of service for what it was ``before``, or, where
    that is '', gets jobs. ``state=resume`` would end a drain, a failure and a down alike (scontrol(1), State)."""
    return ["state=drain", f"reason={before}"] if before else ["state=resume"]


def reason_for(instance_id: str, node: SlurmNode) -> str:
    """By which a node is drained that is to go."""
    mark = mark_of(node)
    before = mark.before if mark else node.reason if node.kept_out else ""
    text = f"trainium: replaces {instance_id}" + (f", was {before}" if before not in ("", "none") else "")
    return text[:LONGEST_REASON].rstrip()


def is_ours(node: SlurmNode, instance_id: str = "") -> bool:
    """Whether it is drained for a reason of ours, or was to go and has another instance by now."""
    mark = mark_of(node)
    renewed = mark is not None and instance_id not in ("", mark.instance_id)
    return renewed or (node.drained and node.reason.startswith(PREFIX))


def drain_reason(reasons: Iterable[str]) -> str:
    """One line for Slurm, without what would need quoting."""
    text = re.sub(r"[^\x20-\x7e]|[\"'`\\]", " ", PREFIX + ", ".join(reasons))
    text = re.sub(r" +", " ", text).strip()
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3].rstrip() + "..."


def plan_gate(
    failures: Mapping[str, Sequence[str]], slurm: Mapping[str, SlurmNode], instances: Mapping[str, str] | None = None
) -> Plan:
    """``failures`` are the reasons by node, empty for a sound one; nodes that Slurm does not know are left out.

    ``instances`` are the ids by node, where they are known. One that was to be replaced and still has its instance is
    what it was before.
    """
    plan, instances = Plan(), instances or {}
    for name, reasons in failures.items():
        node = slurm.get(name)
        if node is None:
            continue
        mark = mark_of(node)
        if mark and mark.instance_id == instances.get(name):
            if mark.before and not mark.before.startswith(PREFIX):
                plan.drain[name] = mark.before
            elif reasons:
                plan.drain[name] = drain_reason(reasons)
            else:
                plan.resume.append(name)
        elif not reasons:
            if is_ours(node, instances.get(name, "")):
                plan.resume.append(name)
        elif not node.drained or (is_ours(node, instances.get(name, "")) and node.reason != drain_reason(reasons)):
            plan.drain[name] = drain_reason(reasons)
    return plan


def slurm_check(name: str, node: SlurmNode | None) -> dict[str, Any]:
    """The check ``slurm`` of a node that Slurm should use, in the shape of an acceptance check."""
    if node is None:
        message = "Slurm does not know it; name it in slurm_compute_nodes and run the role slurm."
        return _check("slurm", "failed", None, "usable", "unknown to Slurm", message)
    if node.usable:
        return _check("slurm", "ok", "usable", "usable")
    if node.drained:
        return _check("slurm", "skipped", "drained", "usable", message=f"drained: {node.reason}")
    why = f" ({node.reason})" if node.reason not in ("", "none") else ""
    message = f"Slurm has it as {node.state}{why}; look into /var/log/slurm/slurmd.log on {name}."
    return _check("slurm", "failed", node.state, "usable", f"{node.state} in Slurm", message)


def tcp_check(check: str, port: int, error: str | None) -> dict[str, Any]:
    """Whether the head reached a port of a node; None: it did."""
    if error is None:
        return _check(check, "ok", "open", "open")
    reason = f"port {port} cannot be reached from the head ({error})"
    advice = "let the cluster's security group pass all traffic within itself, and see whether the service runs"
    return _check(check, "failed", error, "open", reason, f"{reason}; {advice}.")


def _check(
    name: str, result: str, found: str | None, wanted: str, reason: str = "", message: str = ""
) -> dict[str, Any]:
    return {"name": name, "result": result, "found": found, "wanted": wanted, "reason": reason, "message": message}


def outcome(reasons: Sequence[str], node: SlurmNode | None, resumed: bool = False) -> str:
    """PASSED nodes run jobs, FAILED ones do not, HELD ones are sound but drained; ``resumed`` ones would not be."""
    if reasons:
        return FAILED
    return HELD if node is not None and node.drained and not resumed else PASSED


def reasons_of(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong according to some checks."""
    return [check["reason"] for check in checks if check["result"] == "failed"]


def verdicts(
    addresses: Mapping[str, str],
    checks: Mapping[str, list[dict[str, Any]]],
    reasons: Mapping[str, Sequence[str]],
    slurm: Mapping[str, SlurmNode],
    order: Sequence[str],
    resumed: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """One record a node: those of ``order`` first, then the others. ``resumed`` are nodes that would be resumed."""
    place = {name: index for index, name in enumerate(order)}
    found = []
    for name, against in sorted(reasons.items(), key=lambda item: place.get(item[0], len(place))):
        node = slurm.get(name)
        found.append(
            {
                "name": name,
                "address": addresses.get(name, ""),
                "result": outcome(against, node, name in resumed),
                "slurm_reason": node.reason if node is not None and node.drained else "",
                "checks": checks[name],
            }
        )
    return found
