"""The line that the role monitoring shows for a browser."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[4]
PROXY = "-o HostKeyAlias=i-1 -o 'ProxyCommand=aws ssm start-session --target i-1 --parameters portNumber=%p'"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, ["n1"]),
        ({"ansible_host": "192.0.2.1", "ansible_user": "ubuntu"}, ["ubuntu@192.0.2.1"]),
        ({"ansible_ssh_private_key_file": "/home/me/a key"}, ["-i", "/home/me/a key", "n1"]),
        (
            {"ansible_host": "i-1", "ansible_user": "ubuntu", "ansible_ssh_common_args": PROXY},
            [*shlex.split(PROXY), "ubuntu@i-1"],
        ),
    ],
)
def test_the_tunnel_goes_the_way_that_ansible_goes(variables: dict[str, Any], words: list[str]) -> None:
    text = yaml.safe_load((REPOSITORY / "roles/monitoring/vars/main.yml").read_text())["__monitoring_tunnel"]
    environment = jinja2.Environment(autoescape=False)  # noqa: S701
    # Jinja reads the \1 of a text as a sign; Ansible keeps it from that.
    environment.filters["regex_replace"] = lambda value, pattern, by: re.sub(
        pattern, by.replace("\x01", r"\1"), str(value)
    )
    environment.filters["quote"] = shlex.quote
    key = variables.get("ansible_ssh_private_key_file", "")
    given = {
        "__monitoring_key": key,
        "monitoring_host": "n1",
        "hostvars": {"n1": variables},
        "__monitoring_pages": [{"port": 9090}],
    }
    said = shlex.split(environment.from_string(text).render(given))
    assert said[0] == "ssh" and sorted(said[1:]) == sorted(["-L", "9090:127.0.0.1:9090", *words])
    assert said[-1] == words[-1]
