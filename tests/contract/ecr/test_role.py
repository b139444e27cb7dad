"""Role eks_image: the Dockerfile that it writes, and the image that pods are told of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.ecr.program import builder, told
from tests.contract.network.conftest import Controller, changed, controller

__all__ = ["controller"]
ROLE = {"name": "Role", "ansible.builtin.include_role": {"name": "trainium.cluster.eks_image"}}
TELL = {"name": "Tell", "ansible.builtin.debug": {"msg": "image={{ eks_image_result.image }}"}}


@pytest.fixture
def made(controller: Controller, tmp_path: Path) -> Controller:
    controller.variables.update(trainium_cluster_name="Bert", trainium_backend="eks", trainium_owner="me")
    environment = builder(controller, tmp_path)  # type: ignore[arg-type]
    controller.environment.update({**environment, "PATH": f"{environment['PATH']}:/usr/local/bin"})
    return controller


def dockerfile(folder: Path) -> list[str]:
    return str(next(one["dockerfile"] for one in reversed(told(folder)) if "dockerfile" in one)).splitlines()


def run(controller: Controller, *options: str, **variables: Any) -> str:
    done = controller.run(controller.play([ROLE, TELL]), *options, "-e", json.dumps(variables))
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{done.stdout}\nchanges={changed(done)}"


def test_what_the_training_needs_is_in_it_once(made: Controller, tmp_path: Path) -> None:
    assert "changes=1" in run(made, "--check")
    assert changed(made.role("eks_image:account")) == 0
    assert told(tmp_path) == []
    said = run(made)
    (repository,) = made.client("ecr").describe_repositories()["repositories"]
    assert repository["repositoryName"] == "trainium/bert/training"
    (image,) = made.client("ecr").describe_images(repositoryName="trainium/bert/training")["imageDetails"]
    (tag,) = image["imageTags"]
    assert f"image={repository['repositoryUri']}:{tag}" in said and tag.endswith("-sdk2.29.1")
    lines = dockerfile(tmp_path)
    assert lines[1] == ("FROM public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04")
    assert any("dpkg --status debian-reference-en" in line for line in lines)
    assert any("for wanted in h5py==" in line for line in lines)
    assert "changes=0" in run(made)


def test_what_is_asked_for_is_locked(made: Controller, tmp_path: Path) -> None:
    (tmp_path / "own.lock").write_text("h5py==3.16.0 --hash=sha256:0\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.py").write_text("pass\n")
    more = {
        "eks_image_base": "example.com/base@sha256:" + "a" * 64,
        "eks_image_lock_file": str(tmp_path / "own.lock"),
        "eks_image_files": [{"src": str(tmp_path / "own"), "dest": "/opt/own"}],
        "eks_image_commands": ["python3 -m compileall /opt/own"],
        "eks_image_build_options": ["--ulimit=nofile=65536"],
    }
    run(made, **more)
    lines = dockerfile(tmp_path)
    assert lines[-2:] == ['COPY ["own", "/opt/own"]', "RUN python3 -m compileall /opt/own"]
    assert any("--require-hashes --requirement /opt/trainium/requirements.lock" in line for line in lines)
    # What its step says of a Python that pip may not change, as this machine's shell runs it.
    step = "".join(line.rstrip("\\") for line in lines[2:5]).removeprefix("RUN ")
    assert (
        subprocess.run(
            ["sh", "-c", step], env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}, check=False
        ).returncode
        == 0
    )
    build = next(one for one in reversed(told(tmp_path)) if "context" in one)
    assert build["context"] == ["own", "requirements.lock"] and "--ulimit=nofile=65536" in build["argv"]
    wanted = {"trainium_training": {"requirements": ["transformers==4.44.0", "a[b]==1"], "packages": []}}
    run(made, **wanted)
    lines = dockerfile(tmp_path)
    assert any("'^(transformers|a)=='" in line for line in lines)
    assert any("--constraint /tmp/base.txt transformers==4.44.0 'a[b]==1'" in line for line in lines)
    (tmp_path / "own.lock").write_text("--index-url https://me:pw@pypi.example/simple\nh5py==3.16.0 --hash=sha256:0\n")
    done = made.role("eks_image:validate", "-e", json.dumps(more))
    assert "eks_image_lock_file has an address with a password" in " ".join(done.stdout.split())


def test_a_repository_of_others_is_not_taken_where_no_owner_is_named(made: Controller, tmp_path: Path) -> None:
    """As training.yml alone: it runs with the secrets of trainings what is in there."""
    del made.variables["trainium_owner"]
    made.variables["trainium_cluster_name"] = "other"
    ecr, name = made.client("ecr"), "trainium/other/training"
    tags = [{"Key": "trainium:cluster", "Value": "other"}]
    ecr.create_repository(repositoryName=name, imageTagMutability="IMMUTABLE", tags=tags)
    done = made.role("eks_image")
    assert done.returncode != 0
    assert f"the repository {name} carries no tag trainium:owner" in " ".join(done.stdout.split())
    assert told(tmp_path) == []
    ecr.delete_repository(repositoryName=name, force=True)
    assert made.role("eks_image").returncode == 0
    (found,) = ecr.describe_repositories(repositoryNames=[name])["repositories"]
    own = {tag["Key"]: tag["Value"] for tag in ecr.list_tags_for_resource(resourceArn=found["repositoryArn"])["tags"]}
    assert own["trainium:owner"].startswith("arn:aws:")
