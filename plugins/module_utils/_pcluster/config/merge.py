# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Merging of variables over a preset, and of a user's own keys over a rendered configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What tells the items of a list apart, first match first; lists of other things are replaced as a whole.
IDENTITIES = ("Name", "name", "Key", "BucketName", "bucket", "Policy")


def given(**section: Any) -> dict[str, Any]:
    """A section without what is None or an empty section."""
    return {key: value for key, value in section.items() if value is not None and value not in ({}, [])}


def without_nothing(value: Any) -> Any:
    """A copy without the options that were not given, which Ansible hands over as None."""
    if isinstance(value, Mapping):
        return {key: without_nothing(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [without_nothing(item) for item in value if item is not None]
    return value


def merge(base: Any, over: Any) -> Any:
    """``over`` laid upon ``base``; neither is changed.

    Mappings are merged key by key, and None removes a key. Lists whose items all have a name (or a tag's key, a
    bucket's name, a policy) are merged item by item, new ones at the end; any other list is replaced.
    """
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        merged = dict(base)
        for key, value in over.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(base.get(key), value)
        return merged
    if isinstance(base, list) and isinstance(over, list):
        identity = _identity(base + over)
        return _merge_named(base, over, identity) if identity else list(over)
    if isinstance(over, Mapping):
        return {key: merge(None, value) for key, value in over.items() if value is not None}
    return list(over) if isinstance(over, list) else over


def _identity(items: list[Any]) -> str | None:
    """The key by which all items have a name, or None: what is no text or number names nothing."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    return next((key for key in IDENTITIES if all(isinstance(item.get(key), (str, int)) for item in items)), None)


def _merge_named(base: list[Any], over: list[Any], identity: str) -> list[Any]:
    known = {item[identity] for item in base}
    upon = {item[identity]: item for item in over}
    if len(upon) < len(over):
        # A name given twice is a mistake; replaced as a whole, both stay visible to the checks.
        return list(over)
    merged = [merge(item, upon[item[identity]]) if item[identity] in upon else item for item in base]
    return merged + [merge(None, item) for item in over if item[identity] not in known]
