# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The acceptance report: one record for a program to read, and lines for the screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import FAILED, HELD, PASSED

Record = Mapping[str, Any]

LOST = {
    "name": "reached",
    "result": "failed",
    "found": "lost",
    "wanted": "reached",
    "reason": "lost in the middle of the run",
    "message": "Ansible lost it earlier in this run; see the task that failed on it.",
}
# Shown of a node that passed, in this order.
_SHOWN = (("devices", "devices"), ("cores", "cores"), ("efa", "EFA interfaces"))


def make_report(nodes: Sequence[Record], gate: Sequence[Record], collective: Record) -> dict[str, Any]:
    """``nodes`` are what the nodes say (a lost one only its name), ``gate`` what the head says, in the same order."""
    seen = {node["name"]: node for node in nodes}
    shown = []
    for verdict in gate:
        node = seen.get(verdict["name"]) or {}
        checks = [*(node.get("checks") or [dict(LOST)]), *verdict["checks"]]
        shown.append(
            {
                "name": verdict["name"],
                "address": verdict.get("address") or "",
                "instance_id": node.get("instance_id") or "",
                "instance_type": node.get("instance_type") or "",
                "result": verdict["result"],
                "slurm_reason": verdict["slurm_reason"],
                "checks": checks,
            }
        )
    return {
        "passed": [node["name"] for node in shown if node["result"] == PASSED],
        "failed": [node["name"] for node in shown if node["result"] == FAILED],
        "held": [node["name"] for node in shown if node["result"] == HELD],
        "collective": dict(collective),
        "nodes": shown,
    }


def settle(report: dict[str, Any], before: Any) -> dict[str, Any]:
    """The report with the old figures of checks that passed then and pass now: free space alone is no news."""
    try:
        old = {
            (node["name"], node["instance_id"], check["name"], str(check["wanted"])): check
            for node in before["nodes"]
            for check in node["checks"]
            if check["result"] == "ok"
        }
    except (KeyError, TypeError):
        return report
    for node in report["nodes"]:
        for check in node["checks"]:
            known = old.get((node["name"], node["instance_id"], check["name"], str(check["wanted"])))
            if known and check["result"] == "ok":
                check["found"] = known["found"]
    return report


def _summary(node: Record) -> str:
    if node["result"] == HELD:
        return f"drained in Slurm, left so: {node['slurm_reason'] or 'no reason given'}"
    if node["result"] == FAILED:
        return ", ".join(check["reason"] for check in node["checks"] if check["result"] == "failed")
    found = {check["name"]: check for check in node["checks"] if check["result"] == "ok"}
    parts = [f"{found[name]['found']} {noun}" for name, noun in _SHOWN if name in found]
    skipped = [check["name"] for check in node["checks"] if check["result"] == "skipped"]
    return ", ".join([*parts, *([f"not checked: {' '.join(skipped)}"] if skipped else [])])


def collective_line(collective: Record) -> str:
    """What the collective test showed, in one line."""
    if collective.get("skipped"):
        return f"collective: not run, {collective['skipped']}"
    kind = {"nccom": "nccom-test", "gloo": "gloo"}.get(str(collective.get("kind")), str(collective.get("kind")))
    if not collective.get("passed"):
        return f"collective: {kind} FAILED: {collective.get('message', '')}"
    text = f"collective: {kind} all-reduce over {len(collective['nodes'])} nodes, {collective['ranks']} ranks: "
    return text + f"{collective['bus_bandwidth']:g} GB/s bus bandwidth"


def table(report: Record, drained: Mapping[str, str], resumed: Sequence[str], dry: bool = False) -> list[str]:
    """One line a node, one line a failure, then what Slurm was told, or would be, and the collective test."""
    nodes = report["nodes"]
    width = max((len(node["name"]) for node in nodes), default=4)
    lines = [f"acceptance: {len(report['passed'])} of {len(nodes)} nodes passed{', as they are now' if dry else ''}"]
    for node in nodes:
        result = node["result"].upper() if node["result"] == FAILED else node["result"]
        lines.append(f"  {node['name']:<{width}}  {result:<6}  {_summary(node)}".rstrip())
    lines += [
        f"  {node['name']}: {check['name']}: {check['message']}"
        for node in nodes
        for check in node["checks"]
        if check["result"] == "failed"
    ]
    would = "would be " if dry else ""
    lines += [f'  {name}: {would}drained in Slurm, "{reason}"' for name, reason in drained.items()]
    lines += [f"  {name}: {would}resumed in Slurm" for name in resumed]
    return [*lines, f"  {collective_line(report['collective'])}"]
