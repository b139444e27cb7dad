"""An environment with torch_xla, whose CPU device has the lazy tensors that NeuronCores have.

PyPI's torch for x86-64 is built for CUDA, and its loader asks for NVIDIA's libraries, gigabytes of which a run on CPUs
calls nothing. They get small stand-ins, which answer every call by 100 (cudaErrorNoDevice: CUDA Runtime API, enum
cudaError). What stays is a download of 900 MB for torch and 80 MB for torch_xla, and 2.4 GB on the disk.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

PACKAGES = ("torch==2.9.0", "torch_xla==2.9.0")
# What these two ask for beside NVIDIA's libraries and a compiler for GPUs; no version of these matters here.
FURTHER = ("absl-py", "filelock", "fsspec", "jinja2", "networkx", "pyyaml", "requests", "setuptools", "sympy")
NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[(lib(?:cu|nv|nccl)[^]]+)\]")
CALLED = re.compile(r"^\s+[UwV] ((?:_*cu|nv|nccl)\w+)", re.MULTILINE)
# Names of this one are asked for without a version, and the loader refuses those of the others without.
WITH_ALL_NAMES = "libnccl.so.2"


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _make_library(path: Path, names: list[str]) -> None:
    """A shared library with these functions."""
    functions = "".join(f".globl {name}\n.type {name}, @function\n{name}:\n" for name in names)
    text = f".text\n{functions}mov $100, %eax\nret\n"
    compiled = path.with_name(f"{path.name}.o")
    subprocess.run(["as", "-o", str(compiled), "-"], input=text, text=True, check=True)
    subprocess.run(
        ["ld", "-shared", "-z", "noexecstack", "-soname", path.name, "-o", str(path), str(compiled)], check=True
    )
    compiled.unlink()


def stand_in(folder: Path) -> None:
    """Put stand-ins for libraries that are not there beside those of torch in ``folder``."""
    libraries = sorted(folder.glob("*.so"))
    names = set(CALLED.findall(_output("nm", "--dynamic", "--undefined-only", *libraries)))
    for library in sorted(set(NEEDED.findall(_output("readelf", "--wide", "--dynamic", *libraries)))):
        _make_library(folder / library, sorted(names) if library == WITH_ALL_NAMES else [])


def stand_in_for_python(python: Path, folder: Path) -> None:
    """torch_xla asks for Python's own library, which is no part of every Python; its names are in the program too."""
    name = f"libpython{sysconfig.get_python_version()}.so.1.0"
    loads = [str(python), "-c", f"import ctypes; ctypes.CDLL('{name}')"]
    if subprocess.run(loads, check=False, capture_output=True).returncode:
        folder.mkdir(parents=True, exist_ok=True)
        _make_library(folder / name, [])


def install(python: Path, requirements: list[str], pip_arguments: str) -> None:
    """Install torch, torch_xla and these into the environment of ``python``."""
    # Of PyTorch a tenth is ever imported.
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *shlex.split(pip_arguments)]
    # A cache would keep another 900 MB.
    subprocess.run([*pip, "--no-cache-dir", "--no-deps", *PACKAGES], check=True)
    subprocess.run([*pip, *FURTHER, *requirements], check=True)
    packages = Path(_output(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip())
    stand_in(packages / "torch" / "lib")
    stand_in_for_python(python, packages / "torch_xla" / "lib")
    subprocess.run([python, "-c", "import torch_xla"], check=True)
