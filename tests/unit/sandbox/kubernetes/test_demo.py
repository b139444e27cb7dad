"""What ``make demo BACKEND=eks`` needs beside the playbooks."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from sandbox import settings, standins
from sandbox.account.environment import REGION
from sandbox.kubernetes import images, training
from sandbox.kubernetes.inside import token
from sandbox.paths import REPOSITORY

FILES = sorted((REPOSITORY / "sandbox/kubernetes/manifests").glob("*.manifest"))


def images_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["image"]} if isinstance(value.get("image"), str) else set()
        return own.union(*map(images_of, value.values()))
    return set().union(*map(images_of, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_manifests_name_images_that_the_registry_has(file: Path) -> None:
    found = images_of(list(yaml.safe_load_all(file.read_text(encoding="utf-8"))))
    assert {image.rpartition(":")[0] for image in found} <= {standin.repository for standin in images.STANDINS}
    [written] = json.loads(settings._manifest(file.stem))
    assert Path(urlsplit(written["url"]).path) == file
    assert written["checksum"] == "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_demo_s_image_has_a_base_that_the_registry_has() -> None:
    assert "image" not in json.loads(settings.eks_demo())["trainium_training"]
    role = yaml.safe_load((REPOSITORY / "roles/eks_image/vars/main.yml").read_text(encoding="utf-8"))
    assert role["__eks_image_gallery"] == training.REPOSITORY


def test_a_machine_without_the_aws_cli_gets_tokens(tmp_path: Path) -> None:
    """The authenticator finds the signature good."""
    (tmp_path / "python3").symlink_to(sys.executable)
    keys = {"AWS_ACCESS_KEY_ID": "SANDBOXID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
    path = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    command = [str(standins.CONTROLLER / "aws"), "--region", REGION, "eks", "get-token", "--cluster-name", "trn"]
    environment = {
        **keys,
        "PATH": path,
        "AWS_ENDPOINT_URL": "http://127.0.0.1:5199",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    said = subprocess.run([*command, "--output", "json"], env=environment, capture_output=True, text=True, check=True)
    word = json.loads(said.stdout)["status"]["token"]
    call = token.read(word, frozenset({"127.0.0.1:5199"}), datetime.now(timezone.utc))
    assert call.access_key == "SANDBOXID"
    assert token.signature(call, "trn", "secret") == call.parameters["X-Amz-Signature"]
    assert token.signature(call, "other", "secret") != call.parameters["X-Amz-Signature"]
    assert base64.urlsafe_b64decode(word.removeprefix(token.PREFIX) + "==").startswith(b"http://127.0.0.1:5199/?Action")
