# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a role's check went by, so that the plays of one run do not check the same again. Private.

Nothing is templated for it: a value is what its text is, with all variables that the text names, and theirs. A run
keeps it in the folder that Ansible makes for the run, and removes at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible import constants
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain

_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_TEMPLATE = re.compile(r"{{.*?}}|{%.*?%}", re.DOTALL)
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
# With these a variable is taken by its name as a text.
_BY_NAME = re.compile(r"\b(vars|hostvars|varnames)\b")
# All variables of all hosts: a template that names them names what it takes of them as well.
_EVERYTHING = ("hostvars", "vars")


def named_in(text: str) -> set[str]:
    """Words in a text's templates that may be variables."""
    found: set[str] = set()
    for template in _TEMPLATE.findall(text):
        bare = template if _BY_NAME.search(template) else _QUOTED.sub("", template)
        # A quote within quotes.
        found.update(_WORD.findall(template if "'" in bare or '"' in bare else bare))
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(key)
            yield from _texts(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)


def digest_of(variables: Mapping[str, Any], names: Iterable[str]) -> str:
    """Of the variables with these names, and of all that their templates name, however far."""
    found: dict[str, str] = {}
    left = set(names)
    while left:
        name = left.pop()
        if name in found or name in _EVERYTHING or name not in variables:
            continue
        value = plain(variables[name])
        found[name] = repr(value)
        left.update(*map(named_in, _texts(value)))
    return sha256(repr(sorted(found.items())).encode("utf-8", "surrogateescape")).hexdigest()


def digest_of_role(role: Path, variables: Mapping[str, Any]) -> str:
    """Of each variable that begins as the role's own do, and of all that its rules name.

    Whatever the host: where all is the same, so is what comes of it.
    """
    rules = named_in((role / "tasks" / "validate.yml").read_text(encoding="utf-8"))
    own = [name for name in variables if name.startswith(f"{role.name}_")]
    return digest_of(variables, {*own, *rules})


def _file(role: Path, variables: Mapping[str, Any]) -> Path:
    return Path(constants.DEFAULT_LOCAL_TMP) / f"checked-{role.name}-{digest_of_role(role, variables)}"


def is_checked(role: Path, variables: Mapping[str, Any]) -> bool:
    """Whether this run has found all these values right."""
    return _file(role, variables).exists()


def note(role: Path, variables: Mapping[str, Any]) -> None:
    """Remember that all values are right. Where that cannot be, they are checked again."""
    with suppress(OSError):
        _file(role, variables).touch()
