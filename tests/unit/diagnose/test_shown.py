"""What the role diagnose shows and writes, by its templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
from ansible.plugins.filter import core
from ansible_collections.trainium.cluster.plugins.filter import slurm

TEMPLATES = Path(__file__).parents[3] / "roles/diagnose/templates"
FAULT = {
    "fault": "fork with EFA",
    "node": "n[1-2]",
    "source": "n2:/var/log/a",
    "line": "fork()",
    "cause": "C.",
    "remedy": "R.",
}
EMPTY: dict[str, Any] = {"faults": [], "nodes": ["n1"], "streams": [], "silent": [], "notes": []}


def shown(template: str, **variables: Any) -> list[str]:
    environment = jinja2.Environment(  # noqa: S701 - no page is made of it
        loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    own = {f"trainium.cluster.{name}": function for name, function in slurm.FilterModule().filters().items()}
    environment.filters.update({**own, "to_nice_yaml": core.FilterModule().filters()["to_nice_yaml"]})
    names = {"ansible_check_mode": False, "diagnose_directory": "/tmp/found", **variables}  # noqa: S108
    return environment.get_template(template).render(names).splitlines()


def summary(check: bool = False, **result: Any) -> list[str]:
    return shown("summary.j2", diagnose_result={**EMPTY, **result}, ansible_check_mode=check)


def test_every_fault_is_shown_with_its_cause_and_remedy() -> None:
    other = {**FAULT, "fault": "claim pending", "node": "", "source": "events"}
    lines = ["  seen:   fork()", "  cause:  C.", "  remedy: R."]
    assert summary(faults=[FAULT, other]) == [
        *("fork with EFA (n[1-2]; n2:/var/log/a)", *lines),
        *("claim pending (events)", *lines),
        "The logs are in /tmp/found.",
    ]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({}, "No known fault was found."),
        ({"nodes": [], "streams": ["ip-192-0-2-1.i-0a.slurmd"]}, "No known fault was found."),
        ({"nodes": []}, "No known fault was found, as there was nothing to read."),
    ],
)
def test_it_is_said_when_there_was_nothing_to_read(result: dict[str, Any], said: str) -> None:
    assert summary(**result) == [said, "The logs are in /tmp/found."]


def test_what_was_not_read_and_why_is_said_and_a_check_writes_nothing() -> None:
    assert summary(check=True, silent=["n2", "n1", "n4"], notes=["No region is known.", "No stack."]) == [
        "No known fault was found.",
        "Not read: n[1-2,4].",
        "No region is known.",
        "No stack.",
    ]


def test_what_the_cloud_knows_has_a_name_before_each_part() -> None:
    events = [{"time": time, "status": "S", "type": "T", "resource": "A", "reason": "no"} for time in ("t2", "t1")]
    stream = [{"time": "t3", "message": "one"}, {"time": "t4", "message": "two"}]
    variables = {
        "__diagnose_cloud": {"log_events": {"ip-1.i-0a.slurmd": stream}, "stack_events": events},
        "parallelcluster_description": {"cluster_status": "CREATE_COMPLETE"},
    }
    # Stack events come newest first, and a log is read from its beginning.
    stack = shown("stack.j2", **variables)
    assert stack == ["t1 S T A no", "t2 S T A no"]
    assert shown("cloud.j2", **variables, __diagnose_stack_text="\n".join(stack)) == [
        "==> stack events <==",
        *stack,
        "==> cluster <==",
        "cluster_status: CREATE_COMPLETE",
        "",
        "==> ip-1.i-0a.slurmd <==",
        "t3 one",
        "t4 two",
    ]


def test_where_the_cloud_was_not_asked_there_is_nothing_of_it() -> None:
    assert shown("stack.j2", __diagnose_cloud={}) == []
    assert shown("cloud.j2", __diagnose_cloud={"failed": True}, __diagnose_stack_text="")[:3] == [
        "==> stack events <==",
        "",
        "==> cluster <==",
    ]
