"""The image for trainings: PyTorch for CPUs under the name of Neuron's Deep Learning Container."""

from __future__ import annotations

import hashlib

from sandbox import image
from sandbox.mirror import wheels
from sandbox.paths import Paths
from sandbox.podman import IMAGE, Podman
from sandbox.standins import wheels as standins

REPOSITORY = "public.ecr.aws/neuron/pytorch-training-neuronx"
VENV = "/opt/venv"
# As in the image of docs/eks.md, which has more than Neuron's: what the preset bert reads.
PACKAGES = "python3 python3-venv debian-reference-en iproute2 procps ca-certificates"
NEURON = ("torch-neuronx", "neuronx-cc")


def tag() -> str:
    """A digest of everything that goes into it."""
    wanted = repr((image.suite(), PACKAGES, VENV, wheels.hosts_python())).encode() + wheels.REQUIREMENTS.read_bytes()
    return f"training-{hashlib.sha256(wanted + standins.digest()).hexdigest()[:12]}"


def build(paths: Paths, podman: Podman) -> bool:
    """Build it from the mirror's wheels, unless it is there; False where nobody has made the mirror."""
    if not (paths.mirror / "wheels").is_dir():
        return False
    if not podman.image_exists(tag()):
        tarball = paths.cache / "training.tar"
        image.bootstrap(tarball, PACKAGES, _hooks(paths), paths.logs / "image-training.log")
        environment = ["-c", f"ENV PATH={VENV}/bin:/usr/local/bin:/usr/bin:/bin", "-c", 'CMD ["/bin/bash"]']
        podman.run("import", "-q", *environment, str(tarball), f"{IMAGE}:{tag()}")
        tarball.unlink()
    return True


def _hooks(paths: Paths) -> tuple[str, ...]:
    pip = f"{VENV}/bin/pip install --quiet --no-index --no-compile --find-links /wheels"
    return (
        f'mkdir "$1/wheels" && cp "{paths.mirror}"/wheels/*.whl "{wheels.REQUIREMENTS}" "$1/wheels/"',
        f'chroot "$1" python3 -m venv {VENV}',
        f'chroot "$1" {pip} --requirement /wheels/{wheels.REQUIREMENTS.name} {" ".join(NEURON)}',
        'rm -rf "$1/wheels"',
    )
