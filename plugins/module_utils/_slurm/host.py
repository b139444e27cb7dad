# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node's programs say of Slurm on it. Pure."""

from __future__ import annotations

import re

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import expand

# A munge key that the role slurm made: text, so that it passes through templates unharmed. A key that a package or an
# image brought is binary.
_TEXT_KEY = re.compile(rb"[A-Za-z0-9]{128}")
_NODE_NAME = re.compile(r"^\s*NodeName\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def is_text_key(key: bytes) -> bool:
    """Whether the munge key is one that the role slurm made."""
    return _TEXT_KEY.fullmatch(key) is not None


def hardware_of(shown: str) -> dict[str, str]:
    """``slurmd -C`` as parameters of a NodeName line, without the node's own name; {} where there is none."""
    for line in shown.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if fields.pop("NodeName", None):
            return fields
    return {}


def nodes_of(configuration: str) -> list[str]:
    """The nodes that a slurm.conf names, in its order.

    Raises HostlistError for a NodeName that is no hostlist.
    """
    found: dict[str, None] = {}
    for hostlist in _NODE_NAME.findall(configuration):
        if hostlist.upper() != "DEFAULT":
            found.update(dict.fromkeys(expand(hostlist)))
    return list(found)
