# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The collective test across the nodes that passed: which one, whether it is due, and what came of it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

AUTO, NCCOM, GLOO, NONE = "auto", "nccom", "gloo", "none"
KINDS = (AUTO, NCCOM, GLOO, NONE)

Node = Mapping[str, Any]

_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z]+\d+\s+")
_AVERAGE = re.compile(r"^\s*Avg bus bandwidth:\s*([0-9.]+)\s*GB/s", re.MULTILINE)
_GONE_WRONG = re.compile(r"^.*(?:Failure running|errors? found|not running!).*$", re.MULTILINE)


def choose(wanted: str, nodes: Sequence[Node]) -> tuple[str, str]:
    """The test to run on the nodes, and why there is none or why it cannot run ('' otherwise)."""
    if wanted == NONE:
        return NONE, "switched off"
    if not nodes:
        return NONE, "no node passed"
    have_nccom = all(node["nccom"] and node["cores"] for node in nodes)
    lacking = [node["name"] for node in nodes if not node["torchrun"]]
    if wanted == NCCOM or (wanted == AUTO and have_nccom):
        missing = [node["name"] for node in nodes if not node["nccom"]]
        return NCCOM, f"no nccom-test on {', '.join(missing)}" if missing else ""
    if wanted == AUTO and lacking:
        return NONE, f"neither nccom-test with Neuron devices nor torchrun on {', '.join(lacking)}"
    return GLOO, f"no torchrun on {', '.join(lacking)}" if lacking else ""


def digest(kind: str, nodes: Sequence[Node], settings: Any) -> str:
    """The same for the same instances since the same boot, with the same software and the same test."""
    known = [kind, sorted((node["name"], node["address"], node["identity"]) for node in nodes), settings]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def is_due(record: Mapping[str, Any], wanted: str, minimum: float, repeat: bool) -> bool:
    """Whether the test has to run: it did not pass before with what is there now."""
    if repeat or record.get("digest") != wanted:
        return True
    result = record.get("result") or {}
    return not result.get("passed") or float(result.get("bus_bandwidth") or 0) < minimum


def parse_nccom(text: str) -> dict[str, Any]:
    """The table of nccom-test: the average bus bandwidth and the last, largest row."""
    wrong = _GONE_WRONG.search(text)
    average = _AVERAGE.search(text)
    rows = [line.split() for line in text.splitlines() if _ROW.match(line)]
    if wrong or not average or not rows:
        return {"error": wrong.group().strip() if wrong else "nccom-test printed no bandwidth"}
    last = rows[-1]
    try:
        return {"bus_bandwidth": float(average.group(1)), "bytes": int(last[0]), "microseconds": float(last[3])}
    except (IndexError, ValueError):
        return {"error": "nccom-test printed a table of an unknown form"}


def parse_gloo(text: str) -> dict[str, Any]:
    """The line that the first rank of the gloo all-reduce prints, among whatever else was printed."""
    for line in text.splitlines():
        start = line.find('{"all_reduce"')
        if start < 0:
            continue
        try:
            found = json.loads(line[start:])["all_reduce"]
            if not found["correct"]:
                return {"error": "the all-reduce gave a wrong sum"}
            kinds = {"bus_bandwidth": float, "bytes": int, "microseconds": float}
            return {name: kind(found[name]) for name, kind in kinds.items()}
        except (ValueError, KeyError, TypeError):
            break
    return {"error": "the all-reduce printed no result"}


def judge(kind: str, code: int, out: str, err: str, minimum: float) -> dict[str, Any]:
    """``passed``, the figures and a message for a failure. Bandwidths are in GB/s."""
    found = parse_nccom(out) if kind == NCCOM else parse_gloo(out)
    tool = "nccom-test" if kind == NCCOM else "the gloo all-reduce"
    if code:
        lines = [line.strip() for line in (err.strip() or out.strip()).splitlines() if line.strip()]
        told = "did not end in time" if code in (124, 137) else f"ended with {code}"
        found = {"error": f"{tool} {told}: {_telling(lines)}" if lines else f"{tool} {told}"}
    if "error" in found:
        advice = "look whether the nodes reach each other on all ports, then run again"
        return {"kind": kind, "passed": False, "message": f"{found['error']}; {advice}."}
    result = {"kind": kind, **found}
    if found["bus_bandwidth"] < minimum:
        reason = f"bus bandwidth {found['bus_bandwidth']:g} GB/s is below the {minimum:g} GB/s wanted"
        advice = "look for a slow interface, or lower acceptance_collective_minimum_bandwidth"
        return {**result, "passed": False, "message": f"{reason}; {advice}."}
    return {**result, "passed": True, "message": ""}


def _telling(lines: Sequence[str]) -> str:
    """The line that says most: the last with an error in it, else the last."""
    for line in reversed(lines):
        if re.search(r"error|fail|refused|unable|cannot|no such", line, re.IGNORECASE) and "srun:" not in line:
            return line[:300]
    return lines[-1][:300]


def result_of(
    plan: Mapping[str, Any], outcome: Mapping[str, Any], minimum: float, ranks: int, dry: bool
) -> dict[str, Any]:
    """The test for the report: judged now, known from before, not possible, or not run (``skipped`` says why).

    No word of it says whether it ran now or before, so that a second run reports the same.
    """
    base = {"kind": plan["kind"], "nodes": list(plan["nodes"]), "ranks": ranks}
    if not plan["wanted"]:
        return {"kind": plan["kind"], "skipped": plan["problem"]}
    if plan["problem"]:
        message = f"{plan['problem']}; install what is missing or set acceptance_collective."
        return {**base, "passed": False, "message": message}
    if not plan["due"]:
        return {**base, **plan["known"]}
    if dry or not outcome:
        return {"kind": plan["kind"], "skipped": "not in check mode"}
    code, out, err = int(outcome.get("rc") or 0), str(outcome.get("stdout") or ""), str(outcome.get("stderr") or "")
    return {**base, **judge(plan["kind"], code, out, err, minimum)}
