"""Which packages with the kernel's headers the role neuron installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.plugin_utils._refusals import refusal

ROLE = Path(__file__).parents[4] / "roles" / "neuron"


def headers(family: str, release: str) -> list[str]:
    variables: dict[str, Any] = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    trusted = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
    given: dict[str, Any] = {"neuron_driver": True, "neuron_kernel_headers": [], "ansible_facts": {"os_family": family}}
    given["__neuron_node"] = {"kernel": {"release": release, "headers": False}}
    templar = Templar(loader=DataLoader(), variables={**trusted, **given})
    found: list[str] = templar.template(trust_as_template("{{ __neuron_headers }}"))
    return found


@pytest.mark.parametrize(
    ("family", "release", "packages"),
    [
        ("Debian", "6.8.0-1015-aws", ["linux-headers-6.8.0-1015-aws"]),
        (
            "RedHat",
            "6.1.141-155.222.amzn2023.x86_64",
            ["kernel-devel-6.1.141-155.222.amzn2023.x86_64", "kernel-headers-6.1.141-155.222.amzn2023.x86_64"],
        ),
        ("RedHat", "6.12.37-61.105.amzn2023.x86_64", ["kernel6.12-devel-6.12.37-61.105.amzn2023.x86_64"]),
        (
            "RedHat",
            "5.14.0-503.el9.x86_64",
            ["kernel-devel-5.14.0-503.el9.x86_64", "kernel-headers-5.14.0-503.el9.x86_64"],
        ),
    ],
)
def test_the_headers_are_named_after_the_kernel(family: str, release: str, packages: list[str]) -> None:
    assert headers(family, release) == packages


def test_amazon_linux_2_is_refused_where_the_node_says_so() -> None:
    rules = yaml.safe_load((ROLE / "tasks/validate.yml").read_text())[0]["trainium.cluster.internal.validate"]["rules"]
    facts = {"distribution": "Amazon", "distribution_version": "2"}
    rule = {**rules[0], "system": facts, "torch": "latest", "versions": {}, "mirror": False, "instance_type": ""}
    assert refusal(rule, "2.21.1").startswith("Amazon Linux 2 has no dnf")
