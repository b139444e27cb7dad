# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a training job takes from its nodes: packages of their system, and data that somebody brings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import shown
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import NONE, OF_A_SCRIPT

# The role installs packages with apt.
PACKAGED = ("Debian", "Ubuntu")
_DATA = re.compile(r"\{directory\}(/data/[^\],]+)")

Definition = Mapping[str, Any]


def preset_of(definition: Definition, presets: Mapping[str, Definition]) -> Definition:
    """What the definition takes from its preset; nothing from one that does not exist."""
    preset = presets.get(str(definition.get("preset", "bert")), {}) if definition.get("preset") != NONE else {}
    return {key: value for key, value in preset.items() if "script" not in definition or key not in OF_A_SCRIPT}


def data_of(definition: Definition, presets: Mapping[str, Definition], directory: str) -> dict[str, str]:
    """Argument -> path of the data that a preset looks for and does not make by itself."""
    preset = preset_of(definition, presets)
    own = definition.get("args") if isinstance(definition.get("args"), Mapping) else {}
    made = set(map(str, (preset.get("prepare") or {}).get("args", {}).values()))
    found = {}
    for name, value in (preset.get("args") or {}).items():
        match = (
            _DATA.search(value) if isinstance(value, str) and value not in made and name not in (own or {}) else None
        )
        if match:
            found[name] = directory + match.group(1)
    return found


def covers(folder: str, path: str) -> bool:
    """Whether a path lies in a folder, or the folder below the path."""
    folder, path = folder.rstrip("/") + "/", path.rstrip("/") + "/"
    return path.startswith(folder) or folder.startswith(path)


def problem(
    definition: Definition,
    presets: Mapping[str, Definition],
    directory: str,
    system: Mapping[str, str],
    brought: Sequence[str],
    unknown: bool,
) -> str:
    """Why nodes cannot have what the job takes; '' where they can.

    ``system``: distribution and its version, empty where they are not known. ``brought``: folders that a dataset or a
    mount fills. ``unknown``: whether the nodes may have data from elsewhere, an image's or what was copied to them.
    """
    packages = definition.get("packages", preset_of(definition, presets).get("packages"))
    if packages and system and system["distribution"] not in PACKAGED:
        return (
            f"The training job needs the packages {shown(', '.join(map(str, packages)))}, which apt installs, and the "
            f"nodes have {system['distribution']} {system['distribution_version']}; use an image with Ubuntu or "
            "Debian, or a definition without packages."
        )
    for name, path in data_of(definition, presets, directory).items():
        if not unknown and not any(covers(folder, path) for folder in brought):
            return (
                f"{name} of the training job is {shown(path)}, and nothing brings data there: set trainium_dataset, "
                f"mount storage that has it, or set {name} in args of trainium_training."
            )
    return ""
