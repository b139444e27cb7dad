"""Which packages the role shared_storage holds, so that no kernel comes for which there is no Lustre client."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

VARS = Path(__file__).resolve().parents[4] / "roles/shared_storage/vars/main.yml"
# Want, status and name, as dpkg-query shows them on a host with Ubuntu 24.04.
LINES = [
    "install installed linux-aws",
    "install installed linux-aws-6.8-headers-6.8.0-1021",
    "install installed linux-aws-headers-6.8.0-1021",
    "install installed linux-aws-lts-24.04",
    "install installed linux-headers-6.8.0-1021-aws",
    "install installed linux-headers-aws",
    "hold installed linux-image-aws",
    "install installed linux-image-6.8.0-1021-aws",
    "install installed linux-image-aws-6.14",
    "deinstall config-files linux-image-aws-edge",
    "install installed linux-modules-extra-aws",
    "install installed linux-tools-aws",
    "unknown not-installed linux-aws-fips",
]


def test_what_brings_new_kernels_is_held_and_no_kernel_itself() -> None:
    text = yaml.safe_load(VARS.read_text())["__shared_storage_kernel_packages"]
    templar = Templar(DataLoader(), variables={"__shared_storage_kernels": {"stdout_lines": LINES}})
    assert templar.template(trust_as_template(text)) == [
        "linux-aws",
        "linux-aws-lts-24.04",
        "linux-headers-aws",
        "linux-image-aws-6.14",
        "linux-modules-extra-aws",
    ]
