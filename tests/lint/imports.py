"""The contracts of imports that hold the tree together; part of ``make lint``.

import-linter does not see namespace packages without ``__init__.py``, which is how Ansible wants module_utils to lie.

* A pure file imports the standard library's pure part and pure files: no SDK, no process, no network, no Ansible.
* ``calls`` never imports ``run``; a ``run`` is imported by its own subject and by plugins only.
* A subject imports only from subjects that stand before it in `SUBJECTS`, so that there is no cycle.
* In ``sandbox/`` no two files and no two folders import each other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.trainium.cluster.plugins.module_utils"
# Each may import from those before it.
SUBJECTS = (
    *("_common", "_hardware", "_ec2", "_network", "_iam", "_capacity", "_fsx", "_efs", "_ecr", "_eks", "_slurm"),
    *("_node", "_pcluster", "_training", "_dataset", "_diagnose", "_kubernetes", "_teardown", "_lease", "_prove"),
)
# Files beside `calls` and `run` that reach out of the process.
EFFECTS = frozenset(
    {
        "_common.at_once",
        "_common.aws",
        "_common.commands",
        "_common.file_systems",
        "_common.files",
        "_common.folders",
        "_common.owned",
        "_common.progress",
        "_common.waiting",
        "_dataset.background",
        "_dataset.extract",
        "_dataset.fetch",
        "_dataset.http_range",
        "_dataset.lease_files",
        "_dataset.stage",
        "_ec2.waiting",
        "_node.etc_hosts.look",
        "_node.gpg",
        "_node.observe",
        "_node.service_state",
        "_node.software",
        "_node.storage.unit_files",
        "_node.tools",
        "_pcluster.config.yaml_file",
        "_pcluster.library",
        "_pcluster.worker",
        "_slurm.look",
    }
)
# What a pure file may have of the standard library.
PURE_LIBRARY = frozenset(
    [
        "__future__",
        "base64",
        "binascii",
        "bisect",
        "calendar",
        "collections",
        "contextlib",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fnmatch",
        "functools",
        "gzip",
        "hashlib",
        "html",
        "io",
        "ipaddress",
        "itertools",
        "json",
        "math",
        "operator",
        "pathlib.PurePosixPath",
        "posixpath",
        "re",
        "shlex",
        "stat",
        "statistics",
        "string",
        "struct",
        "sys",
        "tarfile",
        "textwrap",
        # Declarations only, in the component that is ours.
        "torchx.specs",
        "typing",
        "unicodedata",
        "urllib.parse",
        "zlib",
    ]
)


class Import(NamedTuple):
    """``name`` as it is imported, whole, and the line."""

    name: str
    line: int


def imports_of(source: str) -> Iterator[Import]:
    """Every import of a file, those inside of functions too; ``from a import b`` as ``a.b``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(item.name, node.lineno) for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (Import(f"{node.module or ''}.{item.name}", node.lineno) for item in node.names)


def is_run(name: str) -> bool:
    """Whether ``_subject.folder.file`` puts calls in order."""
    return name.rpartition(".")[2].startswith("run")


def is_pure(name: str) -> bool:
    """Whether ``_subject.folder.file`` decides only."""
    return name not in EFFECTS and not name.rpartition(".")[2].startswith(("run", "calls"))


def _file_of(name: str, files: frozenset[str]) -> str:
    """The file that an import below module_utils means: ``_ec2.plan.Plan`` is ``_ec2.plan``."""
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name


def problems_of(me: str, source: str, files: frozenset[str]) -> Iterator[str]:
    """What one file of module_utils breaks, a sentence each; ``me`` and ``files`` are dotted, below module_utils."""
    subject = me.partition(".")[0]
    if subject not in SUBJECTS:
        yield f"{me}: {subject} is not a subject; add it to SUBJECTS in tests/lint/imports.py"
        return
    for found in imports_of(source):
        where = f"{me}, line {found.line}"
        if not found.name.startswith(f"{PACKAGE}."):
            parents = found.name.split(".")
            if is_pure(me) and not {".".join(parents[: end + 1]) for end in range(len(parents))} & PURE_LIBRARY:
                yield f"{where}: a pure file imports {found.name}; let a file named calls or run do it"
            continue
        other = _file_of(found.name[len(PACKAGE) + 1 :], files)
        theirs = other.partition(".")[0]
        if theirs not in SUBJECTS:
            yield f"{where}: {found.name} is no file of a subject"
            continue
        if SUBJECTS.index(theirs) > SUBJECTS.index(subject):
            yield f"{where}: {subject} imports {theirs}, which comes after it; move what both need to _common"
        if is_pure(me) and not is_pure(other):
            yield f"{where}: a pure file imports {other}, which reaches out of the process"
        if me.rpartition(".")[2].startswith("calls") and is_run(other):
            yield f"{where}: calls never import run, and this imports {other}"
        if is_run(other) and theirs != subject:
            yield f"{where}: {other} is the run of another subject; take what is needed out of it"


def cycles(edges: dict[str, set[str]]) -> list[str]:
    """One sentence for each cycle that a walk through the rooms meets first."""
    found: list[str] = []
    done: set[str] = set()

    def walk(room: str, path: tuple[str, ...]) -> None:
        if room in path:
            found.append("these import each other: " + " -> ".join((*path[path.index(room) :], room)))
            return
        if room in done:
            return
        for other in sorted(edges.get(room, ())):
            walk(other, (*path, room))
        done.add(room)

    for room in sorted(edges):
        walk(room, ())
    return found


def module_utils(root: Path = ROOT) -> list[str]:
    """All problems in plugins/module_utils."""
    top = root / "plugins/module_utils"
    paths = {".".join(path.relative_to(top).with_suffix("").parts): path for path in sorted(top.rglob("*.py"))}
    files = frozenset(paths)
    return [problem for name, path in paths.items() for problem in problems_of(name, path.read_text(), files)]


def rooms_of(imports: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Edges between neighbours: ``a.b.x`` that imports ``a.c.y`` is the folder ``a.b`` that imports ``a.c``."""
    edges: dict[str, set[str]] = {}
    for me, other in imports:
        mine, theirs = me.split("."), other.split(".")
        depth = next((at for at, (one, two) in enumerate(zip(mine, theirs)) if one != two), None)
        # A package that lists its parts is no cycle, nor is a part that reads what its package says of itself.
        if depth is not None:
            edges.setdefault(".".join(mine[: depth + 1]), set()).add(".".join(theirs[: depth + 1]))
    return edges


def sandbox_rooms(root: Path = ROOT) -> list[str]:
    """Cycles in sandbox/: no two files of a folder, and no two folders side by side, import each other."""
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "sandbox").rglob("*.py"))
        if "rootfs" not in path.parts
    }
    files = frozenset(paths)
    imports = (
        (me, _file_of(found.name, files)) for me, path in paths.items() for found in imports_of(path.read_text())
    )
    return cycles(rooms_of((me, other) for me, other in imports if other))


def main() -> int:
    problems = [*module_utils(), *sandbox_rooms()]
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
