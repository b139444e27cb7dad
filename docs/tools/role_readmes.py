"""Writes roles/*/README.md from what the roles say of themselves: argument specs, meta, tags, playbooks, scenarios.

What stands between lines NOTES and END_OF_NOTES before "Supported systems" is written by hand and is kept. A role for
which a play that lists it would be a bad example has its own in meta/example.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

NOTES = "<!-- notes: written by hand, kept by 'make readmes' -->"
END_OF_NOTES = "<!-- end of notes; all else is generated from meta/argument_specs.yml by 'make readmes' -->"
COLLECTION = "trainium.cluster"
# Galaxy shows each page alone, so that addresses are whole.
PAGES = "https://github.com/trainium/cluster/blob/main/roles"
SUPPORT = "https://github.com/trainium/cluster/blob/main/docs/support.md"
# A letter, then a bracket whose content may hold brackets itself.
MARKUP = re.compile(r"\b([A-Z]{1,2})\(((?:[^()]|\([^()]*\))*)\)")

Spec = dict[str, Any]


def markdown(text: str) -> str:
    """Ansible's markup as Markdown.

    >>> markdown("The default is O(trainium_region), see P(trainium.cluster.network#role).")
    'The default is `trainium_region`, see [network](https://github.com/trainium/cluster/blob/main/roles/network/README.md).'
    """

    def replace(match: re.Match[str]) -> str:
        kind, content = match.groups()
        if kind in {"C", "O", "V", "E", "M", "RV"}:
            return f"`{content}`"
        if kind == "P":
            name, _hash, plugin = content.partition("#")
            short = name.removeprefix(f"{COLLECTION}.")
            return f"[{short}]({PAGES}/{short}/README.md)" if plugin == "role" and short != name else f"`{name}`"
        if kind == "U":
            return f"<{content}>"
        if kind == "L":
            label, _comma, address = content.rpartition(",")
            return f"[{label.strip()}]({address.strip()})"
        return {"B": f"**{content}**", "I": f"*{content}*"}.get(kind, match.group())

    return MARKUP.sub(replace, " ".join(text.split()))


def paragraphs(description: str | list[str] | None) -> list[str]:
    """A description's paragraphs, as Markdown."""
    return [markdown(text) for text in ([description] if isinstance(description, str) else description or [])]


def on_controller(meta: Spec) -> bool:
    """Whether the role works on the controller, whatever Linux that is."""
    return any(platform["name"] == "GenericLinux" for platform in meta.get("platforms", ()))


def platforms(meta: Spec) -> str:
    """The supported systems: one page has them, from the tables that the roles refuse by."""
    return "any Linux: it runs on the controller" if on_controller(meta) else f"those of [docs/support.md]({SUPPORT})"


def variables(options: Spec) -> list[str]:
    """The table of variables, and one for the keys of each that is a dictionary."""
    lines = ["| Variable | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
    after: list[str] = []
    described: dict[str, str] = {}
    for name, option in options.items():
        keys = option.get("options")
        text = " ".join(paragraphs(option.get("description")))
        if option.get("choices"):
            text += f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}."
        if keys:
            other = described.setdefault(json.dumps(keys), name)
            text += f" Its keys are those of `{other}`, below."
            if other == name:
                after += ["", f"### Keys of `{name}`", "", *variables(keys)]
        kind = option.get("type", "str")
        if kind == "list" and "elements" in option:
            kind = f"list of {option['elements']}"
        default = "**required**" if option.get("required") else _default(option.get("default"))
        cells = [cell.replace("|", r"\|") for cell in (f"`{name}`", kind, default, text)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines + after


def _default(value: Any) -> str:
    return "" if value is None else f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


def tags(tasks: Any) -> Iterator[str]:
    """The tags of tasks, in the order in which they come, more than once where they are given more than once."""
    for task in tasks or []:
        found = task.get("tags", [])
        yield from [found] if isinstance(found, str) else found
        for block in ("block", "rescue", "always"):
            yield from tags(task.get(block))


def used(play: Spec) -> set[str]:
    """The roles that a play lists, and those that its tasks include whole."""
    listed = {entry.get("role") for entry in play.get("roles", [])}
    tasks = [*play.get("pre_tasks", []), *play.get("tasks", [])]
    included = [task.get(f"ansible.builtin.{way}_role", {}) for task in tasks for way in ("import", "include")]
    return listed | {one.get("name") for one in included if "tasks_from" not in one}


def usage(role: str, plays: Iterable[Spec], controller: bool = False) -> Spec:
    """Where and how the collection's own plays use the role; else on the controller, or as root on all nodes."""
    for play in plays:
        if f"{COLLECTION}.{role}" in used(play):
            return {key: play[key] for key in ("hosts", "connection", "become") if key in play}
    return {"hosts": "localhost", "connection": "local"} if controller else {"hosts": "compute:head", "become": True}


def example(role: str, options: Spec, play: Spec, needs_public: bool) -> list[str]:
    """A play that uses the role."""
    lines = [f"- hosts: {play['hosts']}"]
    lines += [f"  {key}: {json.dumps(play[key]).strip(chr(34))}" for key in ("connection", "become") if key in play]
    lines.append("  roles:")
    if needs_public:
        # Its public variables are defaults of this role's.
        lines.append(
            f"    - role: {COLLECTION}.trainium  # its variables are defaults below; needless where those are set"
        )
    lines.append(f"    - role: {COLLECTION}.{role}")
    required = [f"        {name}: ..." for name, option in options.items() if option.get("required")]
    return lines + (["      vars:", *required] if required else [])


def readme(folder: Path, plays: list[Spec], scenario: Path, old: str) -> str:
    """The README of the role in ``folder``; the notes come from ``old``."""
    role = folder.name
    specs: Spec = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]
    main = specs["main"]
    options = main.get("options", {})
    meta = yaml.safe_load((folder / "meta/main.yml").read_text())["galaxy_info"]
    files = sorted((folder / "tasks").rglob("*.yml"), key=lambda path: (path.name != "main.yml", path))
    found = dict.fromkeys(tag for path in files for tag in tags(yaml.safe_load(path.read_text())))
    defaults = folder / "defaults/main.yml"
    public = role != "trainium" and defaults.exists() and bool(re.search(r"\btrainium_\w", defaults.read_text()))

    blocks = [f"# {role}", _sentence(main["short_description"]), *paragraphs(main.get("description"))]
    notes = old.partition(NOTES)[2].partition(END_OF_NOTES)[0].strip()
    blocks += [f"{NOTES}\n\n{notes}\n\n{END_OF_NOTES}"] if notes else []
    named = ", ".join(f"`{tag}`" for tag in found if tag not in {"always", "never"})
    blocks.append(f"Supported systems: {platforms(meta)}.{f' Tags: {named}.' if named else ''}")
    own = folder / "meta/example.md"
    if own.exists():
        shown = own.read_text().strip()
    else:
        play = example(role, options, usage(role, plays, on_controller(meta)), public)
        shown = "\n".join(["```yaml", *play, "```"])
    blocks += ["## Example", shown]
    entries = []
    for name, spec in specs.items():
        if name != "main":
            text = [_sentence(spec["short_description"]), *paragraphs(spec.get("description"))]
            text += [] if spec.get("options", {}) == options else ["Its variables have a table of their own."]
            entries.append(_wrapped(f"* `tasks_from: {name}`: {' '.join(text)}"))
    if entries:
        same = "It has more entry points, with the same variables unless said otherwise:"
        blocks.append("\n".join([same, "", *entries]))
    if options:
        blocks += ["## Variables", "\n".join(variables(options))]
    for name, spec in specs.items():
        if name != "main" and spec.get("options") and spec["options"] != options:
            blocks += [f"## Variables with `tasks_from: {name}`", "\n".join(variables(spec["options"]))]
    if scenario.exists():
        blocks += ["## What is tested", f"`molecule/{role}`: {_comment(scenario.read_text())}"]
    return "\n\n".join(map(_wrapped, blocks)) + "\n"


def _sentence(text: str) -> str:
    return markdown(text).rstrip(".") + "."


def _comment(text: str) -> str:
    """The comment at the beginning of a file of YAML, as one line."""
    lines = text.removeprefix("---\n").splitlines()
    end = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return " ".join(line.lstrip("# ") for line in lines[:end])


def _wrapped(block: str) -> str:
    if "\n" in block or block.startswith(("#", "|")):
        return block
    return textwrap.fill(block, 120, break_long_words=False, break_on_hyphens=False)


def stale(root: Path) -> dict[Path, str]:
    """The READMEs that are not what they should be, with what they should be."""
    plays = [play for path in sorted((root / "playbooks").glob("*.yml")) for play in yaml.safe_load(path.read_text())]
    result = {}
    for specs in sorted(root.glob("roles/*/meta/argument_specs.yml")):
        folder = specs.parent.parent
        path = folder / "README.md"
        old = path.read_text() if path.exists() else ""
        new = readme(folder, plays, root / "molecule" / folder.name / "molecule.yml", old)
        if new != old:
            result[path] = new
    return result


def main() -> int:
    """Write the READMEs, or with --check name those that are stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a README is stale")
    check = parser.parse_args().check
    root = Path(__file__).resolve().parents[2]
    found = stale(root)
    for path, text in found.items():
        if check:
            print(f"{path.relative_to(root)} is stale; run make readmes", file=sys.stderr)
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(root)}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
