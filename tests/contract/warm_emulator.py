"""All that the emulator imports, before its first fork: for the server of `warm_python`, which imports this file."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from sandbox import emulator
from sandbox.emulator.ec2 import catalog

# moto reads its environment when it is imported.
catalog.prepare()
for module in ("moto.server", "moto.moto_server.werkzeug_app", "moto.backends"):
    importlib.import_module(module)
for found in pkgutil.walk_packages(emulator.__path__, f"{emulator.__name__}."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
