"""ssh is not open to large parts of the Internet, whichever playbook or role is run."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.filter.ec2 import FilterModule
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import wide_networks
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.warm_python import warm_ansible

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "network",
    ["192.0.2.0/24", "198.51.100.7/32", "8.8.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "10.77.0.1/16"],
)
def test_networks_that_somebody_logs_in_from(network: str) -> None:
    assert wide_networks([network], 16) == []


@pytest.mark.parametrize(
    ("network", "clause"),
    [
        ("0.0.0.0/0", "4294967296 addresses"),
        ("0.0.0.0/1", "2147483648 addresses"),
        ("128.0.0.0/1", "2147483648 addresses"),
        ("8.0.0.0/15", "131072 addresses"),
        # Half of it is private, and the other is not.
        ("10.0.0.0/7", "33554432 addresses"),
        ("172.16.0.0/11", "2097152 addresses"),
        ("::/0", "no IPv4 network"),
        ("::/1", "no IPv4 network"),
        ("192.0.2.0", "no IPv4 network"),
        ("0.0.0.0/128.0.0.0", "no IPv4 network"),
        ("0.0.0.0/00", "4294967296 addresses"),
        ("0.0.0.0/1/32", "no IPv4 network"),
        ("<html>/32", "no IPv4 network"),
        ("300.0.0.0/24", "no IPv4 network"),
        ("192.0.2.0/24\n0.0.0.0/0", "no IPv4 network"),
        ("192.0.2.0/33", "no IPv4 network"),
        ("", "no IPv4 network"),
    ],
)
def test_networks_that_are_too_wide_or_none(network: str, clause: str) -> None:
    (found,) = wide_networks(["192.0.2.0/24", network], 16)
    assert clause in found
    assert "\n" not in found


def test_a_wide_network_in_parts() -> None:
    parts = [str(part) for part in ipaddress.ip_network("3.0.0.0/8").subnets(new_prefix=16)]
    assert wide_networks(["192.0.2.0/24", *parts], 16) == [
        "3.0.0.0/8, which is given in parts, is 16777216 addresses of the Internet"
    ]
    assert wide_networks(parts[::2], 16) == []
    assert wide_networks(["10.0.0.0/9", "10.128.0.0/9", "192.0.2.0/25", "192.0.2.128/25"], 16) == []


@given(st.integers(0, 2**32 - 1), st.integers(0, 32), st.integers(8, 32))
def test_no_wide_network_of_the_internet_passes(address: int, prefix: int, smallest: int) -> None:
    first = address >> 24
    text = f"{'.'.join(str(address >> shift & 255) for shift in (24, 16, 8, 0))}/{prefix}"
    if prefix < smallest and first not in (10, 100, 172, 192):
        assert wide_networks([text], smallest) != []
    if prefix >= smallest:
        assert wide_networks([text], smallest) == []


@pytest.mark.parametrize("prefix", [0, 7, 33])
def test_the_smallest_prefix_narrows_something_down(prefix: int) -> None:
    with pytest.raises(ValueError, match="must be 8 to 32"):
        wide_networks(["192.0.2.0/24"], prefix)


@pytest.mark.parametrize(("value", "prefix"), [("0.0.0.0/0", 16), ([], "many"), ([], None), (None, 16)])
def test_the_filter_refuses_what_it_cannot_judge(value: Any, prefix: Any) -> None:
    with pytest.raises(Exception, match=r"^wide_networks"):
        FilterModule().filters()["wide_networks"](value, prefix)


class Account(BaseHTTPRequestHandler):
    """Says that the caller has a strange address; answers every call of AWS with an error, and counts them."""

    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        body = b"0.0.0.0/0\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


# Case -> role, perhaps with the file of its tasks, and what is set for it.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "half": ("network", {"network_ssh_allowed_cidrs": ["192.0.2.0/24", "0.0.0.0/1"]}),
    "everywhere": ("network", {"network_ssh_allowed_cidrs": ["0.0.0.0/0", "::/1"]}),
    "callers": ("network:callers", {"network_ssh_allowed_cidrs": ["0.0.0.0/1"]}),
    "liar": ("network", {"network_public_ip": "primary"}),
    "cluster": (
        "parallelcluster",
        {"parallelcluster_ssh_allowed_cidrs": ["0.0.0.0/1"], "parallelcluster_shared_dir": "/shared"},
    ),
}


def included(role: str) -> dict[str, str]:
    name, _colon, tasks = role.partition(":")
    return {"name": f"trainium.cluster.{name}", "tasks_from": tasks or "main"}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Case -> what the role says; one play, since it takes seconds to start."""
    folder = tmp_path_factory.mktemp("play")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Account)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    said = "{{ said | default({}) | combine({case: ansible_failed_result.msg}) }}"
    tasks: list[dict[str, Any]] = [
        {
            "vars": {**variables, "case": case},
            "block": [{"ansible.builtin.include_role": included(role)}],
            "rescue": [{"ansible.builtin.set_fact": {"said": said}}],
        }
        for case, (role, variables) in CASES.items()
    ]
    tasks.append({"ansible.builtin.copy": {"content": "{{ said | to_json }}", "dest": "said.json", "mode": "0600"}})
    play = {
        "name": "Test",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {
            "ansible_python_interpreter": sys.executable,
            "network_address_service": url,
            "trainium_subnet_ids": ["subnet-0123456789abcdef0"],
            "network_public_key_file": str(Path(__file__)),
        },
        "roles": ["trainium.cluster.trainium"],
        "tasks": tasks,
    }
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_"))}
    environment.update(
        AWS_ENDPOINT_URL=url,
        AWS_ACCESS_KEY_ID="testing-id",
        AWS_SECRET_ACCESS_KEY="testing-secret",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_MAX_ATTEMPTS="1",
        ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"),
    )
    command = [str(warm_ansible() / "ansible-playbook"), "--inventory", "localhost,", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    yield json.loads((folder / "said.json").read_text(encoding="utf-8"))
    server.shutdown()


@pytest.mark.parametrize(
    ("case", "clause"),
    [
        ("half", "network_ssh_allowed_cidrs lets a large part of the Internet in"),
        ("everywhere", "network_ssh_allowed_cidrs has '0.0.0.0/0'"),
        # The endpoint of a cluster of EKS is opened to them.
        ("callers", "ssh would be open too widely: 0.0.0.0/1 is 2147483648 addresses of the Internet"),
        (
            "liar",
            "This machine's public address, from which ssh is to be allowed, could not be learned from http://127.0.0.1:",
        ),
        ("cluster", "ssh would be open too widely: 0.0.0.0/1 is 2147483648 addresses of the Internet"),
    ],
)
def test_a_role_that_is_run_alone_refuses_it(refusals: dict[str, str], case: str, clause: str) -> None:
    assert refusals[case].startswith(clause)


def test_aws_was_not_asked_before(refusals: dict[str, str]) -> None:
    assert set(refusals) == set(CASES)
    assert Account.asked == 0
