"""What is beside a Dockerfile, and what a build leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import plan
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_build as build
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_context as context

IMAGE = "123456789012.dkr.ecr.us-west-2.amazonaws.com/trainium/bert/training:1"


def job(path: Path | None = None) -> build.Job:
    contents = [context.Content("own", str(path))] if path else []
    digests = {one.name: context.digest(one.path) for one in contents}
    return build.Job(IMAGE, "FROM base\n", contents, digests, "linux/amd64", [], 60)


def program(folder: Path, text: str, name: str = "podman") -> None:
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_what_holds_credentials_stays_at_home(tmp_path: Path) -> None:
    own = tmp_path / "own"
    theirs = (".git/config", ".env", ".aws/credentials", "id_ed25519", "a/key.pem", ".cache/huggingface/token")
    more = (".config/gh/hosts.yml", ".envrc", "tls.key", ".bash_history", "terraform.tfstate.backup", ".vault_pass.txt")
    named = ("KEY.PEM", ".vault-token", "_netrc", ".hf_token", "token", "gcp_service-account.json", "a/secrets.yaml")
    for name in (*theirs, *more, *named, "prod.env", "kubeconfig", "prod.tfvars", "a/train.py", "a/tokenizer.json"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(name)
    before = context.digest(str(own))
    (own / ".env").write_text("TOKEN=a")
    assert context.digest(str(own)) == before
    (tmp_path / "there").mkdir()
    context.copy([context.Content("own", str(own))], {"own": before}, str(tmp_path / "there"))
    copied = [str(one.relative_to(tmp_path / "there")) for one in (tmp_path / "there").rglob("*") if one.is_file()]
    assert sorted(copied) == ["own/a/tokenizer.json", "own/a/train.py"]
    (own / "a" / "train.py").write_text("other")
    (tmp_path / "again").mkdir()
    with pytest.raises(TrainiumError, match="changed while it was copied; run again"):
        context.copy([context.Content("own", str(own))], {"own": before}, str(tmp_path / "again"))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrainiumError, match="pipe is no file, folder or link"):
        context.digest(str(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_end_leaves_no_password_and_no_program(tmp_path: Path, number: int) -> None:
    kept, running = tmp_path / "kept", tmp_path / "running"
    kept.mkdir()
    program(tmp_path, f'case "$1" in login) cat > "$3"; exit;; esac\necho $$ > {running}\nexec sleep 60')
    code = "from tests.unit.ecr.test_build import folders, main; main()"
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(kept)}
    environment["XDG_RUNTIME_DIR"] = str(kept)
    child = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL)
    until(lambda: running.exists() and running.read_text().strip() != "")
    assert [file.read_text() for file in kept.rglob("auth.json")] == ["secret"]
    child.send_signal(number)
    child.wait(10)
    until(lambda: not build._lives(int(running.read_text())))
    # What was killed could take nothing away; the next run does.
    program_of_next = [sys.executable, "-c", code.replace("; main()", "; folders()")]
    subprocess.run(program_of_next, env=environment, check=True)
    assert list(kept.iterdir()) == []


def until(condition: object) -> None:
    assert callable(condition)
    for _attempt in range(100):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come true within 10 s")


def main() -> None:
    build.make(job(), "podman", lambda _region: "secret", Progress())


def folders() -> None:
    with build._folder() as _one:
        pass


def test_an_older_setpriv_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = f"sha256:{64 * '0'}"
    program(tmp_path, 'echo "setpriv: unrecognized option --pdeathsig" >&2; exit 1', "setpriv")
    find = 'while [ "$1" != --digestfile ]; do shift; done'
    program(tmp_path, f'case "$1" in push) {find}; echo {digest} > "$2";; esac')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert build.make(job(), "podman", lambda _region: "secret", Progress()) == digest


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("toomanyrequests: Rate exceeded", "pull"),
        ("received unexpected HTTP status: 503 Service Unavailable", "pull"),
        ("exit status 1", None),
    ],
)
def test_what_passes_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, step: str | None
) -> None:
    program(tmp_path, f'case "$1" in login) exit;; esac\necho "Error: {said}" >&2\nexit 125')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(TrainiumError) as caught:
        main()
    assert caught.value.details.get("step") == step


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("123456789012.dkr.ecr.us-west-2.amazonaws.com", "us-west-2"),
        ("123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("123456789012.dkr.ecr.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"),
        ("123456789012.dkr-ecr.us-west-2.on.aws", "us-west-2"),
        ("123456789012.dkr.ecr.us-west-2.amazonaws.com.example.com", None),
    ],
)
def test_registries_of_all_partitions_are_known(host: str, region: str | None) -> None:
    found = build._ECR.fullmatch(host)
    assert (found[1] if found else None) == region


@pytest.mark.parametrize(
    ("principal", "action", "there"),
    [
        ({"AWS": "arn:aws:iam::999999999999:root"}, "ecr:PutImage", ["arn:aws:iam::999999999999:root"]),
        ({"AWS": "arn:aws:iam::999999999999:root"}, ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], []),
        ({"AWS": ["123456789012", "arn:aws:iam::123456789012:role/a"]}, "ecr:*", []),
        ("*", "*", ["*"]),
        ({"Service": "lambda.amazonaws.com"}, "ecr:SetRepositoryPolicy", ["lambda.amazonaws.com"]),
    ],
)
def test_who_else_may_push(principal: object, action: object, there: list[str]) -> None:
    policy = {"Statement": {"Effect": "Allow", "Principal": principal, "Action": action}}
    assert plan.strangers(policy, "123456789012") == there
