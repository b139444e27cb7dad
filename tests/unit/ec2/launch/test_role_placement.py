"""When the role efa_nodes puts its nodes into a placement group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("reservation", "group"),
    [
        ({}, "bert"),
        # No capacity in particular: "This is also true if you launch the instance into a placement group" (EC2 user
        # guide, "Placement group rules and limitations").
        ({"preference": "open"}, "bert"),
        ({"preference": "none"}, "bert"),
        ({"id": "", "preference": "open"}, "bert"),
        ({"id": "cr-1"}, ""),
        ({"resource_group_arn": "arn:aws:resource-groups:us-west-2:1:group/a"}, ""),
    ],
)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_preference_names_no_capacity(reservation: dict[str, Any], group: str, wanted: bool) -> None:
    variables = yaml.safe_load((REPOSITORY / "roles/efa_nodes/vars/main.yml").read_text())
    environment = jinja2.Environment(autoescape=True)
    environment.filters["bool"] = bool
    given = {
        "efa_nodes_name": "bert",
        "efa_nodes_placement_group": wanted,
        "efa_nodes_capacity_reservation": reservation,
    }
    assert environment.from_string(variables["__efa_nodes_group"]).render(given) == (group if wanted else "")


def test_the_image_and_the_roles_of_the_nodes_want_one_sdk() -> None:
    defaults = [
        str(yaml.safe_load((REPOSITORY / f"roles/{role}/defaults/main.yml").read_text())[f"{role}_sdk_version"])
        for role in ("neuron", "neuron_venv", "efa_nodes")
    ]
    wanted = defaults[0]
    assert defaults[1:] == [f"{{{{ neuron_sdk_version | default('{wanted}') }}}}"] * 2
