# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a proof has seen: its steps, what the account answered, and what the node showed. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import shortened
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import nameless, public

Item = Mapping[str, Any]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,60}")


class Step(NamedTuple):
    """A playbook of the proof; ``why`` it failed, '' where it did not."""

    name: str
    ok: bool
    seconds: float
    why: str = ""


class Evidence(NamedTuple):
    """Answers of AWS (``account``, ``launched``), looks at the node (``boot``, ``ready``), the ``job``'s report."""

    steps: Sequence[Step]
    account: Item
    launched: Item
    boot: Mapping[str, str]
    ready: Mapping[str, str]
    job: Item

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)

    def ok(self, *names: str) -> bool:
        """Whether all of these steps succeeded."""
        return all((found := self.step(name)) is not None and found.ok for name in names)


def sections(text: str) -> dict[str, str]:
    """The answers of look.sh by their names.

    >>> sections("== kernel\\n6.8.0\\n== none\\n")
    {'kernel': '6.8.0', 'none': ''}
    """
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("== "):
            lines = found.setdefault(line[3:].strip(), [])
        else:
            lines.append(line)
    return {name: "\n".join(held).strip() for name, held in found.items()}


def evidence(steps: Sequence[Item], account: Item, launched: Item, boot: str, ready: str, job: Item) -> Evidence:
    """From what the files and tasks of a proof hold."""
    done = [Step(item["name"], bool(item["ok"]), float(item["seconds"]), str(item.get("why", ""))) for item in steps]
    return Evidence(done, account, launched, sections(boot), sections(ready), job)


def versions(seen: Evidence) -> dict[str, str]:
    """What ran on the node, by name; what was not seen is left out."""
    known = {
        "operating system": seen.ready.get("system", "") or seen.boot.get("system", ""),
        "kernel": seen.ready.get("kernel", "") or seen.boot.get("kernel", ""),
        "image": str((seen.launched.get("image") or {}).get("name") or ""),
        "EFA installer": seen.ready.get("efa_installer", ""),
        "Slurm": seen.ready.get("slurm", ""),
    }
    # These have versions of four numbers.
    found = {"Neuron driver": seen.ready.get("neuron_module", "")}
    lines = (*seen.ready.get("neuron_packages", "").splitlines(), *seen.ready.get("wheels", "").splitlines())
    for line in filter(str.strip, lines):
        name, *version = line.replace("==", " ").split()
        if version:
            found[name] = version[0]
    job = seen.job.get("versions")
    found.update(
        {f"{name} in the training": str(text) for name, text in job.items()} if isinstance(job, Mapping) else {}
    )
    shown = {
        **{name: public(text) for name, text in known.items()},
        **{name: nameless(text) for name, text in found.items()},
    }
    # A node may write what it likes, also as the name of a package.
    return {name: first_line(text) for name, text in shown.items() if text and _NAME.fullmatch(name)}


def first_line(text: str, most: int = 160) -> str:
    """The first line of a text, not too long; '' of none."""
    return next((shortened(line.strip(), most) for line in text.splitlines() if line.strip()), "")
