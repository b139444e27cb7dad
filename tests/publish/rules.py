"""What others' rules say: ansible-lint, and ansible-test sanity of three releases of Ansible."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.publish.check import Check
from tests.publish.users import REPOSITORY, FailedError, User


def lint(check: Check) -> str:
    """ansible-lint with the profile production, on the installed copy"""
    tools, user = check.tools(), check.galaxy()
    copy = check.folder / "lint/ansible_collections/trainium/cluster"
    shutil.rmtree(check.folder / "lint", ignore_errors=True)
    shutil.copytree(user.collection, copy, symlinks=True)
    # It checks the syntax of each playbook by a run of its own, and none of these needs an inventory.
    tools.run(
        *("ansible-lint", "--offline", "--strict", "--profile", "production", "--project-dir", copy),
        *("--config-file", check.clone / ".ansible-lint"),
        where=copy,
        ANSIBLE_INVENTORY=os.devnull,
        ANSIBLE_COLLECTIONS_PATH=os.pathsep.join([str(copy.parents[2]), user.collections.split(os.pathsep)[-1]]),
    )
    return "nothing found"


def sanity(check: Check) -> str:
    """ansible-test sanity on the clone, with shellcheck"""
    _sanity(check, REPOSITORY / ".venv")
    return "nothing found, nothing ignored"


def sanity_of_users(check: Check) -> str:
    """ansible-test sanity as users of the oldest and of the newest Ansible run it"""
    told = []
    # Both are run, so that what one finds does not hide the other.
    wrong = []
    for user in (check.oldest(), check.newest()):
        try:
            _sanity(check, user.folder / "venv")
            told.append(_ansible(user))
        except FailedError as error:
            wrong.append(f"{_ansible(user)}: {error}")
    if wrong:
        raise FailedError("; ".join(wrong))
    return f"nothing found, nothing ignored by {' and '.join(told)}"


def _ansible(user: User) -> str:
    return user.versions().split(",")[0]


def _sanity(check: Check, venv: Path) -> None:
    if kept := list((check.clone / "tests").glob("sanity/ignore*")):
        raise FailedError(f"{kept[0].name} has entries that hide what ansible-test finds")
    # Alone in a folder, so that no other program comes from there.
    tools = check.tools()
    alone = tools.folder / "shellcheck"
    alone.mkdir(exist_ok=True)
    shutil.copy2(tools.programs / "shellcheck", alone)
    path = os.pathsep.join([str(venv / "bin"), str(alone), os.environ["PATH"]])
    check.here("tests/run-sanity", PATH=path, SANITY_VENV=str(venv))
