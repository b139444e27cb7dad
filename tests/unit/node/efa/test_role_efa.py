"""With which options the role efa starts the installer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[4] / "roles" / "efa"


def arguments(**given: Any) -> list[str]:
    """The installer's options on a node, but for ``--yes``."""
    variables: dict[str, Any] = {}
    for part in ("defaults", "vars"):
        variables.update(yaml.safe_load((ROLE / part / "main.yml").read_text()))
    trusted = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
    templar = Templar(loader=DataLoader(), variables={**trusted, "__efa_container": False, **given})
    first, *found = templar.template(trust_as_template("{{ __efa_arguments }}"))
    assert first == "--yes"
    return found


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"efa_interfaces": 8}, []),
        # Its own test wants a device, and fails without one.
        ({"efa_interfaces": 0}, ["--no-verify"]),
        ({"efa_interfaces": 8, "efa_skip_kmod": True}, ["--skip-kmod", "--no-verify"]),
        ({"efa_interfaces": 0, "__efa_container": True}, ["--skip-kmod", "--no-verify"]),
    ],
)
def test_the_installer_tests_only_what_is_there(given: dict[str, Any], options: list[str]) -> None:
    assert [one for one in arguments(**given) if not one.startswith("--mpi")] == options
