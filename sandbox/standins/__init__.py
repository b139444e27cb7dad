"""Stand-ins for what only AWS serves: Neuron's repositories and the EFA installer.

They install like the real ones, from signed sources, and hold tools that show the simulated hardware of a host.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from pathlib import Path

from sandbox.image import suite
from sandbox.mirror.apt import index_packages
from sandbox.mirror.signing import Key
from sandbox.paths import Paths
from sandbox.standins import efa, neuron

# Programs of the controller.
CONTROLLER = Path(__file__).with_name("controller")


def neuron_key(paths: Paths) -> Key:
    return Key(paths.cache / "gnupg-neuron", "Stand-in for Amazon AWS Neuron")


def neuron_keyring(paths: Paths) -> Path:
    """The key as the DLAMI has it in ``/etc/apt/keyrings/neuron.gpg``."""
    return paths.mirror / "standins" / "neuron.gpg"


def efa_key(paths: Paths) -> Key:
    return Key(paths.cache / "gnupg-efa", "Stand-in for Amazon EFA")


def _expired_key(paths: Paths) -> Key:
    return Key(paths.cache / "gnupg-expired", "Stand-in that has expired", created="20200101T000000", expires="30d")


def _digest() -> str:
    """Of everything that goes in: recipes, tools and the kernel whose headers are packaged."""
    digest = hashlib.sha256(f"{suite()} {platform.release()}".encode())
    for file in sorted(Path(__file__).parent.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(str(file.relative_to(Path(__file__).parent)).encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def make(paths: Paths) -> None:
    """Write the stand-ins into the mirror; nothing to do where that was done."""
    root = paths.mirror / "standins"
    stamp = root / _digest()
    if stamp.exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    _make_neuron(root / "neuron", neuron_key(paths))
    _make_neuron(root / "refused" / "neuron-expired", _expired_key(paths))
    neuron_key(paths).export(neuron_keyring(paths))
    efa.make(root / "efa", efa_key(paths))
    efa.make_refused(root / "refused", root / "efa", _expired_key(paths), neuron_key(paths))
    fingerprints = {"efa": efa_key(paths).fingerprint(), "neuron": neuron_key(paths).fingerprint()}
    (root / "fingerprints.json").write_text(json.dumps(fingerprints), encoding="utf-8")
    stamp.touch()


def fingerprints(paths: Paths) -> dict[str, str]:
    """The keys' fingerprints, by publisher: ``efa`` and ``neuron``."""
    found: dict[str, str] = json.loads((paths.mirror / "standins" / "fingerprints.json").read_text(encoding="utf-8"))
    return found


def _make_neuron(folder: Path, key: Key) -> None:
    """An apt repository like Neuron's, its key at its root."""
    for package in neuron.packages():
        package.build(folder / "pool")
    key.export(folder / neuron.KEY_FILE, armor=True)
    index_packages(folder, suite(), key)
