"""Writes docs/refusals.md from the tables in roles/*/tasks/validate.yml, which are what refuses.

A kind that asks a subject has examples of wrong values in plugin_utils/_refusals.py; what it says to them is shown.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._common import rules
from ansible_collections.trainium.cluster.plugins.plugin_utils._refusals import SUBJECTS, refusal

ACTION = "trainium.cluster.internal.validate"
HEAD = """\
# What is refused before anything costs money

`playbooks/validate.yml` includes `tasks/validate.yml` of every role that will run with the backend. They work offline
and change nothing. A role that is used alone includes its own first. A value of another type, or one that is none of
the choices in the role's README, is refused as well, and everything that is wrong with a role is told at once. Those of
node_image, prove, diagnose and teardown are checked when they run, those of monitoring here with `trainium_monitoring`.
A sentence without `...` is shown for an example.

Not in the tables are the keys of `trainium_training` (role training_job), and what `validate.yml` asks the account:
a name whose nodes the other backend made, nodes that nobody could log in to (`trainium_public_ip`,
`trainium_connection`, `trainium_bastion`, `trainium_private_access`), a cluster of another owner (`trainium_owner`),
one that another run works on (`trainium_break_lease`), fewer nodes than there are
(`trainium_allow_shrink`), a type, zone or image that EC2 does not have, a configuration that ParallelCluster refuses.
`teardown.yml` does not run without `trainium_cluster_name`.

This page is written from the same tables by `make readmes`. In the sentences `...` stands for the value.
"""
Rule = dict[str, Any]


def tables(root: Path) -> Iterator[tuple[str, list[Rule]]]:
    """Each role with its rules."""
    for path in sorted(root.glob("roles/*/tasks/validate.yml")):
        # The same for all hosts once, and for those with values of their own, is one table.
        lists = {
            id(task[ACTION]): task[ACTION]
            for task in yaml.safe_load(path.read_text(encoding="utf-8"))
            if ACTION in task
        }
        yield path.parts[-3], [rule for arguments in lists.values() for rule in arguments.get("rules", [])]


def rows(rule: Rule) -> Iterator[tuple[str, str]]:
    """Condition and sentence of one rule; several where a subject refuses for several reasons."""
    subject = SUBJECTS.get(rule["kind"])
    if subject and "sentence" not in rule:
        for example in subject.examples:
            # What the table takes from other variables is not known here.
            own = {key: value for key, value in rule.items() if "{{" not in str(value)}
            sentence = refusal({**own, **example.more}, example.value)
            if not sentence:
                raise ValueError(f"{rule['variable']}: {example.condition} is not refused; correct the example")
            yield example.condition, sentence
        return
    wanted = "" if subject else rules.wanted_of(rule)
    condition = rule.get("condition") or (
        subject.examples[0].condition
        if subject
        else f"{'one of them is' if rule.get('each') else 'is'} anything but {wanted}"
    )
    yield condition, rules.sentence_of(rule, wanted, "...", "...")


def page(root: Path) -> str:
    """The whole page."""
    blocks = [HEAD]
    for role, table in tables(root):
        lines = [
            f"## [{role}](../roles/{role}/README.md)",
            "",
            "| Variable | Refused where | Sentence |",
            "| --- | --- | --- |",
        ]
        for rule in table:
            when = re.sub(r"^\{\{ *(.*?) *\}\}$", r"\1", str(rule.get("when", "")), flags=re.DOTALL)
            for condition, sentence in rows(rule):
                where = f"{condition} (if `{when}`)" if when else condition
                cells = [cell.replace("|", r"\|") for cell in (f"`{rule['variable']}`", where, sentence)]
                lines.append(f"| {' | '.join(cells)} |")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def main() -> int:
    """Write the page, or with --check say that it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is stale")
    check = parser.parse_args().check
    root = Path(__file__).resolve().parents[2]
    path = root / "docs/refusals.md"
    text = page(root)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print("docs/refusals.md is stale; run make readmes", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8")
    print("wrote docs/refusals.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
