"""What is meant for the sandbox never reaches an account of AWS, however the caller's environment is set."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import __main__ as command_line
from sandbox import settings
from sandbox.account import api, token
from sandbox.account import environment as account
from sandbox.errors import SandboxError
from sandbox.paths import Paths
from tests import sandbox_driver

REPOSITORY = Path(__file__).resolve().parents[2]
# Where a client asks, and with which key, for the services that the playbooks use.
CLIENT = """
import boto3, json
found = {}
for service in ("ec2", "s3", "sts", "cloudformation"):
    client = boto3.client(service)
    found[service] = [client.meta.endpoint_url, client._request_signer._credentials.access_key]
print(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The token of a sandbox that is up."""
    monkeypatch.setenv("TRAINIUM_SANDBOX_DIR", str(tmp_path / "sandbox"))
    path = Paths.from_environment().token
    token.make(path)
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody whose default account is a real one in every way that AWS clients know."""
    folder = tmp_path / "home" / ".aws"
    folder.mkdir(parents=True)
    key = "aws_access_key_id = AKIAREAL\naws_secret_access_key = real\n"
    services = "[services mine]\nec2 =\n  endpoint_url = https://ec2.example.org\n"
    choice = "region = eu-west-1\nservices = mine\nignore_configured_endpoint_urls = true\n"
    (folder / "config").write_text(f"[default]\n{choice}{key}[profile prod]\n{choice}{key}{services}", encoding="utf-8")
    (folder / "credentials").write_text(f"[default]\n{key}[prod]\n{key}", encoding="utf-8")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "TRAINIUM_SANDBOX_DIR": str(tmp_path / "sandbox"),
        "AWS_PROFILE": "prod",
        "AWS_DEFAULT_PROFILE": "prod",
        "AWS_ENDPOINT_URL_EC2": "https://ec2.eu-west-1.amazonaws.com",
        "AWS_ENDPOINT_URL_S3": "https://s3.eu-west-1.amazonaws.com",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_SESSION_TOKEN": "real",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "config"),
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/real",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:9/real",
        "AWS_URL": "https://ec2.eu-west-1.amazonaws.com",
    }


def assert_sandbox(output: str) -> None:
    """Every client asked the sandbox, with the key that is worth nothing."""
    assert json.loads(output) == {
        service: [api.endpoint(), account.key()[0]] for service in ("ec2", "s3", "sts", "cloudformation")
    }


def test_env_leaves_nothing_of_the_callers_account(hostile: dict[str, str]) -> None:
    script = 'e=$("$1" -m sandbox env) && eval "$e" && "$1" -c "$2" && env'
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, CLIENT],
        cwd=REPOSITORY,
        env=hostile,
        capture_output=True,
        text=True,
        check=True,
    )
    clients, *rest = done.stdout.splitlines()
    assert_sandbox(clients)
    kept = {line.partition("=")[0] for line in rest if line.startswith("AWS_")}
    assert kept == set(account.variables())


def test_run_leaves_nothing_of_the_callers_account(hostile: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(command_line.os, "environ", hostile)
    monkeypatch.setattr(command_line.os, "execvpe", lambda _file, words, environ: started.append((words, environ)))
    monkeypatch.setattr(api, "request", lambda _path: {"status": "ok"})
    command_line.run(
        command_line.parser().parse_args(["run", "ansible-playbook", "-e", "a=b"]), Paths.from_environment()
    )
    ((words, environ),) = started
    assert words == ["ansible-playbook", "-e", "a=b"]
    done = subprocess.run([sys.executable, "-c", CLIENT], env=environ, capture_output=True, text=True, check=True)
    assert_sandbox(done.stdout)


def test_neither_the_callers_cluster_nor_a_proxy_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = {
        "KUBECONFIG": "/home/somebody/.kube/config",
        "HTTPS_PROXY": "http://proxy:3128",
        "no_proxy": "example.com",
    }
    caller["K8S_AUTH_HOST"] = "https://production.example.com"
    found = account.inside(caller)
    assert "K8S_AUTH_HOST" not in found
    assert found["KUBECONFIG"] == "/dev/null"
    assert found["no_proxy"] == "example.com,127.0.0.1,localhost,::1"
    assert found["NO_PROXY"] == "127.0.0.1,localhost,::1"
    monkeypatch.setattr(settings.os, "environ", caller)
    assert "K8S_AUTH_HOST" in settings.exports(Paths(Path("/nonexistent"))).splitlines()[0].split()
    assert "export KUBECONFIG=/dev/null" in settings.exports(Paths(Path("/nonexistent"))).splitlines()


def test_run_starts_nothing_where_the_sandbox_does_not_answer(
    hostile: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str) -> None:
        raise SandboxError("It does not answer.")

    monkeypatch.setattr(command_line.os, "environ", hostile)
    monkeypatch.setattr(command_line.os, "execvpe", lambda *_words: pytest.fail("started"))
    monkeypatch.setattr(api, "request", refuse)
    with pytest.raises(SandboxError, match="does not answer"):
        command_line.run_inside(["ansible-playbook"], Paths.from_environment())


@pytest.mark.parametrize(
    "changes",
    [
        {"AWS_ENDPOINT_URL": "https://ec2.us-west-2.amazonaws.com"},
        {"AWS_ENDPOINT_URL": "http://127.0.0.1.example.org:5199"},
        {"AWS_ENDPOINT_URL": ""},
        {"AWS_ACCESS_KEY_ID": "AKIAREAL"},
        {"AWS_CONFIG_FILE": "/home/somebody/.aws/config"},
        {"AWS_PROFILE": "prod"},
        {"AWS_ENDPOINT_URL_EC2": "https://ec2.us-west-2.amazonaws.com"},
    ],
)
def test_an_environment_that_leads_elsewhere_is_refused(changes: dict[str, str]) -> None:
    account.check(account.inside({"PATH": "/usr/bin"}))
    with pytest.raises(SandboxError, match=next(iter(changes))):
        account.check({**account.inside({}), **changes})


def test_a_sandbox_that_is_said_to_be_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where everything else is as it is wanted."""
    monkeypatch.setattr(api, "HOST", "192.0.2.1")
    with pytest.raises(SandboxError, match=r"AWS_ENDPOINT_URL is .* not an address of this machine"):
        account.check(account.inside({}))


def test_each_start_has_a_key_of_its_own_and_the_one_before_is_refused(started: Path) -> None:
    before = account.inside({})
    assert before["AWS_ACCESS_KEY_ID"].startswith("SANDBOX")
    assert before["AWS_ACCESS_KEY_ID"] not in started.read_text()
    token.renew(started)
    assert not set(account.key()) & {before["AWS_ACCESS_KEY_ID"], before["AWS_SECRET_ACCESS_KEY"]}
    with pytest.raises(SandboxError, match="AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"):
        account.check(before)


def test_without_a_sandbox_there_is_no_key_and_nothing_starts(started: Path) -> None:
    started.unlink()
    assert account.key() == ("", "")
    with pytest.raises(SandboxError, match="The sandbox is not up"):
        account.check(account.inside({}))


def test_a_name_that_is_no_variable_is_not_put_into_a_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings.os, "environ", {"AWS_A;touch canary": "1", "AWS_B": "2"})
    first = settings.exports(Paths(tmp_path)).splitlines()[0]
    assert first == "unset AWS_PROFILE AWS_SESSION_TOKEN AWS_B"


def test_the_tests_own_driver_has_no_account_of_the_caller(
    hostile: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_driver.os, "environ", hostile)
    assert_sandbox(sandbox_driver.execute([sys.executable, "-c", CLIENT], {}, check=True).output)


@pytest.mark.parametrize("target", ["demo", "teardown", "molecule"])
def test_make_starts_nothing_where_the_environment_cannot_be_made(tmp_path: Path, target: str) -> None:
    """A checkout whose Python does all that ``make`` wants except for the environment."""
    for file in (REPOSITORY / "Makefile", *REPOSITORY.glob("requirements*")):
        shutil.copyfile(file, tmp_path / file.name)
    programs = {
        ".venv/bin/python": 'case "$*" in "-m sandbox env" | "-m sandbox run "*) echo broken >&2; exit 1 ;; esac',
        ".venv/bin/ansible-playbook": 'echo "$AWS_PROFILE" > canary',
        "tests/run-molecule": 'echo "$AWS_PROFILE" > canary',
    }
    for name, text in programs.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    environ = {"PATH": "/usr/bin:/bin", "AWS_PROFILE": "prod"}
    done = subprocess.run(["make", target], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert not (tmp_path / "canary").exists(), done.stdout
    assert done.returncode != 0
    assert "broken" in done.stderr


@pytest.mark.parametrize(
    "command",
    [["tests/run-molecule", "none"], [sys.executable, "molecule/shared/instances.py", "destroy", "none"]],
    ids=["run-molecule", "instances"],
)
def test_molecule_starts_nothing_outside_the_sandbox(
    hostile: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "molecule").write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n", encoding="utf-8")
    (tmp_path / "molecule").chmod(0o755)
    environ = {**hostile, "PATH": f"{tmp_path}:{hostile['PATH']}"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Run this by 'python -m sandbox run'" in done.stderr
    assert not (tmp_path / "canary").exists()


def test_the_readme_tries_nothing_outside_the_sandbox() -> None:
    section = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("## Try it")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    assert lines
    assert [
        line
        for line in lines
        if not line.startswith(
            (
                "git clone https://github.com/trainium/cluster trainium-cluster && cd trainium-cluster",
                "make ",
                ".venv/bin/python -m sandbox run ",
                ".venv/bin/python -m sandbox purge ",
            )
        )
    ] == []
