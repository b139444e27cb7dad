# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of a proof, as JSON and as Markdown for an issue. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import Evidence, versions
from ansible_collections.trainium.cluster.plugins.module_utils._prove.rows import (
    NOT_LOOKED,
    REFUTED,
    SEEN,
    judged,
    outcome,
)
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import hostless, is_of_aws, public

Item = Mapping[str, Any]
# A proof that lacks one of these has shown nothing that counts.
NEEDED = ("validate", "network", "account", "compute", "boot", "nodes", "training", "ready", "teardown")


def make(page: str, seen: Evidence, run: Item) -> dict[str, Any]:
    """The report. ``run`` has what is known without looking: ``collection``, ``ansible``, ``price``, ``left``."""
    missing = [name for name in NEEDED if not seen.ok(name)]
    left = run.get("left") or {}
    return {
        "proved": not missing and not left,
        "missing": missing,
        "left": {kind: len(names) for kind, names in left.items()},
        # Of what answers there the report says nothing about AWS.
        "endpoint": hostless(str(seen.account.get("endpoint") or "")),
        "region": run["region"],
        "instance_type": run["instance_type"],
        "began": run["began"],
        "seconds": round(sum(step.seconds for step in seen.steps), 1),
        "price": run["price"],
        "versions": {"trainium.cluster": run["collection"], "ansible-core": run["ansible"], **versions(seen)},
        "steps": [
            {"name": step.name, "ok": step.ok, "seconds": step.seconds, "why": public(step.why)} for step in seen.steps
        ],
        "dry_runs": [{**one, "said": public(one["said"])} for one in seen.account.get("dry_runs") or ()],
        "notes": [public(note) for note in (seen.account.get("capacity") or {}).get("notes") or ()],
        "training": {
            key: seen.job[key]
            for key in ("steps", "processes", "initial_loss", "final_loss", "throughput", "state")
            if key in seen.job
        },
        "rows": judged(page, seen),
    }


def _cell(text: Any) -> str:
    """Text in a table: on one line, and without what would end the cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def _code(text: Any) -> str:
    """What somebody else has written: as code, in which nothing is a link, a picture or a person."""
    line = " ".join(str(text).split()).replace("`", "'")
    return f"`{line}`" if line else ""


def _section(title: str, head: tuple[str, ...], lines: list[tuple[Any, ...]]) -> list[str]:
    """A heading and a table below it."""
    above = ["", f"## {title}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*above, *(f"| {' | '.join(map(_cell, line))} |" for line in lines)]


def sentence(report: Item) -> str:
    """The outcome in one sentence."""
    if report["proved"]:
        counts = Counter(row["verdict"] for row in report["rows"])
        return (
            f"All {len(report['steps'])} steps succeeded and nothing is left; of the rows of docs/fidelity.md "
            f"{counts[SEEN]} were seen, {counts[REFUTED]} refuted and {counts[NOT_LOOKED]} not looked at."
        )
    failed = [step for step in report["steps"] if not step["ok"]]
    why = f"Step {failed[0]['name']} failed" if failed else f"Steps did not run: {', '.join(report['missing'])}"
    left = f"; of the cluster is left: {', '.join(report['left'])}" if report["left"] else ""
    return f"{why}{left}."


def markdown(report: Item) -> str:
    """The report as a page."""
    lines = [f"# Proof of trainium.cluster {report['versions']['trainium.cluster']}", "", sentence(report)]
    if report["endpoint"] and not is_of_aws(report["endpoint"]):
        lines += ["", f"The API was {_code(report['endpoint'])}, not AWS's own: this says nothing about AWS."]
    lines += [
        "",
        f"{report['instance_type']} in {report['region']}, begun {report['began']}.",
        f"{duration(report['seconds'])} in all. At most {report['price']:.2f} USD without traffic.",
        *_section(
            "Steps",
            ("step", "outcome", "time", "why"),
            [
                (step["name"], "ok" if step["ok"] else "failed", duration(step["seconds"]), _code(step["why"]))
                for step in report["steps"]
            ],
        ),
        *_section("Versions", ("what", "version"), [(name, _code(one)) for name, one in report["versions"].items()]),
        *_section(
            "Dry runs of big launches",
            ("type", "layout", "interfaces", "outcome", "said"),
            [
                (*(run[key] for key in ("instance_type", "layout", "interfaces")), outcome(run), _code(run["said"]))
                for run in report["dry_runs"]
            ],
        ),
    ]
    if report["training"]:
        lines += _section("Training", ("what", "value"), [(key, _code(one)) for key, one in report["training"].items()])
    lines += _section(
        "Rows of docs/fidelity.md",
        ("part", "stands for", "verdict", "evidence"),
        [(row["part"], row["stands_for"], row["verdict"], _code(row["evidence"])) for row in report["rows"]],
    )
    if report["notes"]:
        lines += ["", "## What AWS did not tell", "", *(f"* {_code(note)}" for note in report["notes"])]
    return "\n".join(lines) + "\n"
