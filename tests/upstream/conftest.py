"""The environment of the tutorial: its versions over the torch_xla of tests/training, and stand-ins for Neuron's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.training import conftest as training
from tests.training.conftest import REPOSITORY, environment

# Those of the preset's requirements that the script imports, and what these want of others in versions of their time.
REQUIREMENTS = (
    *("transformers==4.44.0", "tensorboard==2.14", "requests==2.31.0", "huggingface-hub==0.24.5"),
    *("h5py", "numpy<2", "protobuf<5", "tqdm"),
)
STANDINS = {
    "torchrun": "import sys\nfrom torch.distributed.run import main\nsys.exit(main())\n",
    "neuron_parallel_compile": (REPOSITORY / "sandbox/standins/pip/neuron_parallel_compile.py").read_text("utf-8"),
}

# A fixture, for the tests of this folder as well.
xla_python = training.xla_python


def packages_of(python: Path) -> Path:
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())


@pytest.fixture(scope="session")
def upstream_python(xla_python: Path) -> Path:
    """The Python of an environment that is made once."""

    def install(python: Path) -> None:
        packages = packages_of(python)
        (packages / "xla.pth").write_text(f"{packages_of(xla_python)}\n", encoding="utf-8")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--ignore-installed"]
        subprocess.run([*pip, *REQUIREMENTS], check=True)
        for name, text in STANDINS.items():
            program = python.parent / name
            program.write_text(f"#!{python}\n{text}", encoding="utf-8")
            program.chmod(0o755)
        (packages / "libneuronxla.py").write_text(
            (Path(__file__).with_name("libneuronxla.py")).read_text(encoding="utf-8"), encoding="utf-8"
        )

    return environment("upstream-venv", "\n".join([*REQUIREMENTS, *STANDINS.values(), str(xla_python)]), install)
