# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a container image has to have for a training, beside what its base has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import (
    Definition,
    Presets,
    preset_of,
    requirements_of,
)

# What the collection's own scripts read data with, in versions that go together; a base may have others, which stay.
USUAL = {"h5py": "3.16.0", "tokenizers": "0.23.3"}


def contents_of(definition: Definition, presets: Presets) -> dict[str, Any]:
    """``packages`` of the distribution, ``requirements`` of pip, and ``missing``: requirements that are only for a base
    that does not have them in any version."""
    preset: Mapping[str, Any] = preset_of(definition, presets)
    packages = definition.get("packages", preset.get("packages"))
    wanted = requirements_of(definition, presets)
    requirements = [one for one in wanted if one not in USUAL]
    # A script of the user's own names what it needs.
    names = [one for one in wanted if one in USUAL] if wanted or "script" in definition else list(USUAL)
    missing = [f"{name}=={USUAL[name]}" for name in names]
    return {
        "packages": [one for one in packages if isinstance(one, str)] if isinstance(packages, (list, tuple)) else [],
        "requirements": requirements,
        "missing": missing,
    }
