"""An image by the role parallelcluster, with the real pcluster: built once, and what its build runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.contract.conftest import idle
from tests.contract.pcluster.conftest import Site
from tests.contract.pcluster.test_policies import IMAGE, limit
from tests.contract.pcluster.test_role import Role


@pytest.fixture(scope="module")
def role(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Role:
    made = Role(site, tmp_path_factory.mktemp("role"))
    made.variables["trainium_security_group_ids"] = [site.group]
    return made


def part(script: str, name: str) -> bytes:
    """What the script holds between the lines of this name."""
    found = re.search(rf"<< 'END_OF_{name}'\n(.*?)\nEND_OF_{name}\n", script, re.DOTALL)
    assert found
    return base64.b64decode(found[1])


def test_check_mode_makes_nothing(role: Role) -> None:
    role.site.api.clear_calls()
    assert role.good("--check", tasks_from="image")
    assert role.site.api.writes() == []
    assert role.buckets() == []


def test_an_image_that_has_the_roles_in_it(role: Role, tmp_path: Path) -> None:
    role.site.api.control("POST", "waiting", {"delay": 0.3})
    limit(role.site, "image", IMAGE)
    done = role.play(tasks_from="image")
    assert done.returncode == 0, done.stdout + done.stderr
    (image,) = role.site.ec2.describe_images(Owners=["self"])["Images"]
    assert f"Set parallelcluster_custom_ami to {image['ImageId']}, the id of the image " in done.stdout
    ((key, body),) = role.objects().items()
    assert re.fullmatch(r"image/image-[0-9a-f]{16}\.sh", key)
    script = body.decode()
    syntax = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (syntax.returncode, syntax.stderr) == (0, "")
    digest = hashlib.sha256(part(script, "COLLECTION")).hexdigest()
    assert f"archive_sha256={digest}" in script
    assert json.loads(part(script, "VARIABLES"))["efa_version"] == "1.51.0"
    found = idle(role.site.api.needs("image"), *IMAGE)
    assert {"KeepTheSoftwareInABucket", "ListBuckets", "PutItsSoftwareThere"}.isdisjoint(found)


def test_the_same_again_builds_nothing(role: Role) -> None:
    assert role.good(tasks_from="image") == 0


def test_an_operating_system_without_an_image_is_refused(role: Role) -> None:
    assert "parallelcluster_image_os is 'ubuntu1804'; use one of ubuntu2404" in role.bad(
        tasks_from="image", parallelcluster_image_os="ubuntu1804"
    )
