"""Names of images, and what ECR refuses."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest

from sandbox.kubernetes import images, registry
from sandbox.kubernetes.registry import RefusedError, Target

LOGIN = "Basic " + base64.b64encode(b"AWS:token").decode()
AWS = f"{registry.ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com"


class Ecr:
    """An account with one repository and one image."""

    def has_repository(self, name: str) -> bool:
        return name == "train"

    def has_image(self, name: str, reference: str) -> bool:
        return (name, reference) == ("train", "v1")

    def put_image(self, name: str, tag: str, manifest: str, media_type: str) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("url", "path", "repository"),
    [
        ("/v2/", "/v2/", None),
        ("/v2/train/manifests/v1", "/v2/train/manifests/v1", "train"),
        (f"/v2/team/train/manifests/v1?ns={AWS}", "/v2/team/train/manifests/v1", "team/train"),
        (f"/v2/train/manifests/v1?ns={registry.OWN}", "/v2/train/manifests/v1", "train"),
        ("/v2/train/blobs/uploads/", "/v2/train/blobs/uploads/", "train"),
        ("/v2/train/blobs/uploads/u?digest=sha256%3Aa", "/v2/train/blobs/uploads/u?digest=sha256%3Aa", "train"),
        (
            "/v2/neuron/plug/manifests/2?ns=public.ecr.aws",
            "/v2/public.ecr.aws/neuron/plug/manifests/latest",
            None,
        ),
        ("/v2/public.ecr.aws/neuron/plug/manifests/2.31", "/v2/public.ecr.aws/neuron/plug/manifests/latest", None),
        ("/v2/a/manifests/sha256:0?ns=registry-1.docker.io", "/v2/docker.io/a/manifests/sha256:0", None),
        ("/v2/a/blobs/sha256:0?ns=docker.io", "/v2/docker.io/a/blobs/sha256:0", None),
    ],
)
def test_where_a_request_leads(url: str, path: str, repository: str | None) -> None:
    found = registry.target(url)
    assert (found.path, found.repository) == (path, repository)


def test_an_image_of_another_account_is_not_ours() -> None:
    found = registry.target("/v2/eks/pause/manifests/3.10?ns=602401143452.dkr.ecr.us-west-2.amazonaws.com")
    assert (found.path, found.repository) == (f"/v2/{images.PAUSE}/manifests/latest", None)


@pytest.mark.parametrize(
    ("method", "asked", "login", "status"),
    [
        ("PUT", Target("", None, "manifests", "v1"), LOGIN, 403),
        ("POST", Target("", "train", "blobs", "uploads/"), "", 401),
        ("POST", Target("", "train", "blobs", "uploads/"), "Basic " + base64.b64encode(b"ann:x").decode(), 401),
        ("POST", Target("", "other", "blobs", "uploads/"), LOGIN, 404),
        ("GET", Target("", "train", "manifests", "v2"), None, 404),
    ],
)
def test_what_is_refused(method: str, asked: Target, login: str | None, status: int) -> None:
    with pytest.raises(RefusedError) as refused:
        registry.check(method, asked, Ecr(), login)
    assert refused.value.status == status


def test_nodes_pull_and_users_push() -> None:
    registry.check("GET", Target("", "train", "manifests", "v1"), Ecr(), None)
    registry.check("PUT", Target("", "train", "manifests", "v2"), Ecr(), LOGIN)
    registry.check("GET", Target("", None, "manifests", "latest"), Ecr(), None)


def test_a_body_in_chunks() -> None:
    body = io.BytesIO(b"4;name=value\r\nWiki\r\n5\r\npedia\r\n0\r\nTrailer: x\r\n\r\nnext")
    assert b"".join(registry.chunks(body)) == b"Wikipedia"
    assert body.read() == b"next"
    with pytest.raises(ConnectionError):
        list(registry.chunks(io.BytesIO(b"9\r\nWiki")))


def test_users_are_led_to_the_registry() -> None:
    text = registry.redirections("us-west-2")
    assert f'prefix = "{AWS}"\nlocation = "127.0.0.1:5197"\n' in text
    assert 'prefix = "public.ecr.aws"\nlocation = "127.0.0.1:5197/public.ecr.aws"\n' in text


def test_the_account_s_images_go_and_upstream_s_stay(tmp_path: Path) -> None:
    repositories = tmp_path / "data/docker/registry/v2/repositories"
    for name in ("train/v", "team/own", "public.ecr.aws/neuron", "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks"):
        (repositories / name).mkdir(parents=True)
    registry.forget(tmp_path)
    left = sorted(path.name for path in repositories.iterdir())
    assert left == ["602401143452.dkr.ecr.us-west-2.amazonaws.com", "public.ecr.aws"]
    registry.forget(tmp_path / "none")
