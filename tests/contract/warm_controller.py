"""All that Ansible's commands import before they read their configuration: for the server of `warm_ansible`."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Iterator

# Its import reads configuration, which is the client's: whatever imports it is imported after the fork.
sys.modules["ansible.constants"] = None  # type: ignore[assignment]
FAMILIES = (
    *("ansible._internal", "ansible.config", "ansible.errors", "ansible.inventory", "ansible.module_utils.common"),
    *("ansible.parsing", "ansible.utils", "ansible.vars"),
)
OTHERS = (
    *("ansible.context", "ansible.module_utils.compat.paramiko", "concurrent.futures", "cryptography.exceptions"),
    *("cryptography.hazmat.backends", "cryptography.hazmat.primitives.asymmetric.rsa", "importlib.metadata"),
    *("cryptography.hazmat.primitives.serialization.ssh", "jinja2.nativetypes", "multiprocessing.queues"),
    *("packaging.specifiers", "yaml"),
)


def _below(name: str) -> Iterator[str]:
    """A module and all below it."""
    yield name
    with contextlib.suppress(ImportError):
        paths = getattr(importlib.import_module(name), "__path__", [])
        yield from (found.name for found in pkgutil.walk_packages(paths, f"{name}.", onerror=lambda _name: None))


def _preload() -> None:
    for family in (*FAMILIES, *OTHERS):
        for name in _below(family):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    del sys.modules["ansible.constants"]


_preload()
