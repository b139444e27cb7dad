"""A signature says who made an EFA installer and not which one it is: an older one is signed as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[2] / "roles" / "efa"


def accepted(said: str, **given: Any) -> bool:
    """Whether the role goes on with an installer that says this of its version."""
    variables: dict[str, Any] = {}
    for file in ("defaults/main.yml", "vars/main.yml"):
        variables.update(yaml.safe_load((ROLE / file).read_text(encoding="utf-8")))
    variables = {
        name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()
    }
    tasks = yaml.safe_load((ROLE / "tasks" / "install.yml").read_text(encoding="utf-8"))
    (task,) = [
        task
        for block in tasks
        for task in block.get("block", [])
        if task["name"] == "Refuse another version than the wanted one"
    ]
    condition = task["ansible.builtin.assert"]["that"]
    variables.update(given, __efa_fetched={"stdout": said})
    return bool(
        Templar(loader=DataLoader(), variables=variables).template(trust_as_template("{{ " + condition + " }}"))
    )


@pytest.mark.parametrize(
    ("version", "said", "sha256", "goes_on"),
    [
        ("1.51.0", "1.51.0", "", True),
        ("1.51.0", "1.30.0", "", False),
        ("1.51.0", "", "", False),
        ("1.51.0", "", "a" * 64, True),
        # Its checksum is published, and was compared before.
        ("1.47.0", "", "", True),
        ("1.47.0", "1.30.0", "", False),
        ("latest", "1.52.0", "", True),
        ("latest", "", "", False),
    ],
)
def test_an_installer_of_another_or_of_no_version_is_refused(
    version: str, said: str, sha256: str, goes_on: bool
) -> None:
    assert accepted(said, efa_version=version, efa_sha256=sha256) is goes_on
