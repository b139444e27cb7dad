"""In which ways tasks of an action plugin may run: in the background, in check mode, without a host."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

ACTIONS = Path(__file__).resolve().parents[3] / "plugins/action"
NAMES = sorted(
    str(path.relative_to(ACTIONS).with_suffix("")).replace("/", ".")
    for path in ACTIONS.rglob("*.py")
    if path.name != "__init__.py"
)


LOADED: dict[str, Any] = {
    name: importlib.import_module(f"ansible_collections.trainium.cluster.plugins.action.{name}") for name in NAMES
}


def action(name: str) -> Any:
    told = SimpleNamespace(action=f"trainium.cluster.{name}", args={}, check_mode=False, async_val=0)
    return LOADED[name].ActionModule(told, SimpleNamespace(_shell=SimpleNamespace(tmpdir="/")), None, None, None)


# They say how far it is, or are over at once: in the background nobody would see them.
IN_FRONT = ("dataset", *(f"internal.{name}" for name in ("cluster_lease", "job_files", "long_command", "node_look")))


@pytest.mark.parametrize("name", [*IN_FRONT, "internal.node_ready", "internal.validate"])
def test_what_speaks_to_the_screen_does_not_run_in_the_background(name: str) -> None:
    found = action(name)
    found._task.async_val = 10
    with pytest.raises(AnsibleActionFail, match="does not support async"):
        ActionBase.run(found)


def test_launches_may_run_in_the_background() -> None:
    found = action("efa_instance")
    found._task.async_val = 10
    assert ActionBase.run(found) == {}


@pytest.mark.parametrize("name", NAMES)
def test_each_runs_in_check_mode(name: str) -> None:
    """Or a play that only foresees would leave it out, and all that goes by its result."""
    found = action(name)
    found._task.check_mode = True
    assert not ActionBase.run(found).get("skipped")


@pytest.mark.parametrize("name", NAMES)
def test_what_works_on_the_controller_alone_needs_no_connection(name: str) -> None:
    """Ansible connects before a task that needs it, also to hosts that are not there yet."""
    alone = name in {f"internal.{one}" for one in ("acceptance_report", "child_playbook", "validate")}
    assert action(name)._requires_connection is not alone
