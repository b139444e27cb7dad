"""Stand-ins for the wheels of Neuron's index, in the versions of two SDK releases."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

# Project -> versions. The real compiler's versions carry a build's mark.
PROJECTS = {
    "torch_neuronx": ("2.9.0.2.14.27725+5be1f0d2", "2.9.0.2.13.26312+0c9ae371"),
    "neuronx_cc": ("2.25.3371.0+a84e6b30", "2.24.8799.0+7d1b2c9f"),
}
# Project -> the program that it installs.
PROGRAMS = {"torch_neuronx": "neuron_parallel_compile"}
# Project -> what Python runs at its start where it is installed. The simulated devices compute nothing: PyTorch's CPU
# build takes their place, which a script that sees them has to be told.
AT_START = {"torch_neuronx": "import os; os.environ.setdefault('PJRT_DEVICE', 'CPU')\n"}
SOURCES = Path(__file__).resolve().parent / "pip"
MODULE = '"""Stand-in for {name} {version}: nothing of the real package is in it."""\n\n__version__ = "{version}"\n'


def digest() -> bytes:
    """What a change of these wheels changes."""
    programs = [(SOURCES / f"{name}.py").read_text(encoding="utf-8") for name in PROGRAMS.values()]
    return hashlib.sha256(repr((PROJECTS, AT_START, MODULE, programs)).encode()).digest()


def make(folder: Path) -> None:
    """Write the wheels; the same bytes every time."""
    for name, versions in PROJECTS.items():
        for version in versions:
            info = f"{name}-{version}.dist-info"
            files = {
                f"{name}/__init__.py": MODULE.format(name=name, version=version),
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: sandbox\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            }
            if name in PROGRAMS:
                program = PROGRAMS[name]
                files[f"{name}/{program}.py"] = (SOURCES / f"{program}.py").read_text(encoding="utf-8")
                files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{program} = {name}.{program}:main\n"
            if name in AT_START:
                files[f"{name}.pth"] = AT_START[name]
            files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
            with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
                for file, text in files.items():
                    wheel.writestr(zipfile.ZipInfo(file), text)
