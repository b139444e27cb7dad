"""ecr_image: a repository as it is wanted, and an image that is built once for one content."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import Account, Result
from tests.contract.ecr.program import builder, told

BASE = "public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
NAME = "trainium/bert/training"


class Images:
    def __init__(self, cloud: Account, folder: Path) -> None:
        self.cloud, self.folder, self.ecr = cloud, folder, cloud.client("ecr")
        self.lock = folder / "requirements.lock"
        self.lock.write_text("h5py==3.16.0 --hash=sha256:0\n")
        cloud.environment.update(builder(cloud, folder))

    def run(self, check: bool = False, **changes: Any) -> Result:
        base: Result = {"name": NAME, "cluster_name": "bert", "owner": "me", "tag_suffix": "sdk2.29.1"}
        base.update(dockerfile=f"FROM {BASE}\nCOPY a.lock /\n", files=[{"src": str(self.lock), "dest": "a.lock"}])
        return self.cloud.run("ecr_image", {**base, **changes}, check)

    def good(self, **changes: Any) -> Result:
        result = self.run(**changes)
        assert not result.get("failed"), result
        return result

    def password(self) -> str:
        (found,) = self.ecr.get_authorization_token()["authorizationData"]
        return base64.b64decode(found["authorizationToken"]).decode().partition(":")[2]


@pytest.fixture
def images(cloud: Account, tmp_path: Path) -> Images:
    return Images(cloud, tmp_path)


def test_built_once_for_one_content(images: Images) -> None:
    promised = images.run(check=True)
    assert promised["changed"] and not promised["pushed"]
    assert images.cloud.api.writes() == told(images.folder) == []
    first = images.good(tags={"team": "speech"})
    assert first["pushed"] and first["tag"] == promised["tag"] and first["tag"].endswith("-sdk2.29.1")
    (found,) = images.ecr.describe_repositories()["repositories"]
    assert found["imageTagMutability"] == "IMMUTABLE" and found["imageScanningConfiguration"]["scanOnPush"]
    assert found["encryptionConfiguration"]["encryptionType"] == "AES256"
    tags = images.ecr.list_tags_for_resource(resourceArn=found["repositoryArn"])["tags"]
    wanted = {"trainium:cluster": "bert", "trainium:owner": "me", "team": "speech"}
    assert {tag["Key"]: tag["Value"] for tag in tags} == wanted
    _login, build, push = told(images.folder)
    assert build["context"] == ["a.lock"] and build["dockerfile"].startswith(f"FROM {BASE}")
    assert push["argv"][-1] == f"{found['repositoryUri']}:{first['tag']}"
    assert first["image"] == f"{push['argv'][-1]}@{first['digest']}" and first["digest"].startswith("sha256:")
    images.cloud.api.clear_calls()
    again = images.good(tags={"team": "speech"})
    assert (again["changed"], again["image"], again["digest"]) == (False, first["image"], first["digest"])
    assert images.cloud.api.writes() == [] and len(told(images.folder)) == 3
    images.lock.write_text("h5py==3.11.0 --hash=sha256:0\n")
    other = images.good(tags={"team": "speech"})
    assert other["pushed"] and other["tag"] != first["tag"]


def test_the_password_is_told_to_the_program_alone(images: Images) -> None:
    made = images.good()
    login, build, push = told(images.folder)
    host = made["image"].partition("/")[0]
    assert login["argv"][0] == "login" and login["argv"][-4:] == ["--username", "AWS", "--password-stdin", host]
    assert login["written"] == images.password() != ""
    shown = str([made, login["argv"], build, push])
    assert login["written"] not in shown
    # Where it was kept is gone.
    kept = Path(login["argv"][login["argv"].index("--authfile") + 1])
    assert not kept.parent.exists()


def test_docker_keeps_its_other_settings(images: Images, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text('{"credsStore": "desktop", "proxies": {}, "currentContext": "a"}')
    (tmp_path / "bin" / "podman").unlink()
    images.cloud.environment.update(builder(images.cloud, tmp_path, "docker"), DOCKER_CONFIG=str(tmp_path / "own"))
    assert images.good(builder="docker")["builder"] == "docker"
    for one, verb in zip(told(tmp_path), ("login", "build", "push")):
        assert one["argv"][0] == "--config" and one["argv"][2] == verb
        assert str(tmp_path / "own") not in one["argv"]


def test_a_base_in_ecr_is_logged_in_to_as_well(images: Images) -> None:
    base = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training-neuronx:1"
    images.good(dockerfile=f"FROM --platform=linux/amd64 {base}\n", files=[])
    hosts = [one["argv"][-1] for one in told(images.folder) if one["argv"][0] == "login"]
    assert base.partition("/")[0] in hosts and len(hosts) == 2
    # Other regions take no password of ours.
    images.cloud.api.clear_calls()
    base = "763104351884.dkr-ecr.eu-west-1.on.aws/pytorch-training-neuronx:1"
    images.good(dockerfile=f"FROM {base}\n", files=[])
    assert base.partition("/")[0] in [one["argv"][-1] for one in told(images.folder) if one["argv"][0] == "login"]


def test_what_fails_says_why_and_the_next_run_goes_on(images: Images) -> None:
    failed = images.run(dockerfile="FROM base\nRUN false\n")
    said = f"ecr_image {NAME}: podman could not build the image: Error: building at STEP RUN false: exit status 1"
    assert failed["msg"].startswith(said) and "STEP 2/2: RUN false" in failed["log"]
    assert images.good()["pushed"]
    images.cloud.environment["PATH"] = str(images.folder)
    assert not images.good()["changed"]
    said = images.run(builder="buildah", dockerfile="FROM other\n")["msg"]
    assert "there is no buildah on this machine" in said


def test_what_ecr_has_is_what_was_pushed(images: Images) -> None:
    images.cloud.environment["BUILDER_DIGEST"] = "sha256:" + "0" * 64
    assert "in ECR, and sha256:0000" in images.run()["msg"]
    del images.cloud.environment["BUILDER_DIGEST"]
    tag = images.good()["tag"]
    assert tag.startswith("trainium-")


def test_another_s_lifecycle_policy_stays(images: Images) -> None:
    images.good(keep=3)
    (rule,) = json.loads(images.ecr.get_lifecycle_policy(repositoryName=NAME)["lifecyclePolicyText"])["rules"]
    assert rule["selection"]["tagPrefixList"] == ["trainium-"] and rule["selection"]["countNumber"] == 3
    assert images.good(keep=4)["changed"]
    theirs = {
        "rules": [{**rule, "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 500}}]
    }
    images.ecr.put_lifecycle_policy(repositoryName=NAME, lifecyclePolicyText=json.dumps(theirs))
    again = images.good()
    assert not again["changed"] and "which stays; keep has no effect" in str(again["warnings"])


def test_what_is_somebody_else_s_is_not_touched(images: Images) -> None:
    images.ecr.create_repository(repositoryName=NAME)
    assert "carries no tag trainium:cluster" in images.run()["msg"]
    assert "carries no tag trainium:cluster" in images.run(state="absent")["msg"]
    images.ecr.delete_repository(repositoryName=NAME)
    images.good()
    said = images.run(owner="other")["msg"]
    assert "the repository trainium/bert/training belongs to me, and you are other" in said
    said = images.run(kms_key_id="1234abcd-12ab-34cd-56ef-1234567890ab")["msg"]
    assert "is encrypted with a key of ECR, not with 1234abcd" in said
    assert images.good(state="absent")["changed"]
    # Anybody may give one the tag of a cluster, and another account the right to push to it.
    tags = [{"Key": "trainium:cluster", "Value": "bert"}]
    arn = images.ecr.create_repository(repositoryName=NAME, tags=tags)["repository"]["repositoryArn"]
    assert "carries no tag trainium:owner, so that anybody may have made it" in images.run()["msg"]
    images.ecr.tag_resource(resourceArn=arn, tags=[{"Key": "trainium:owner", "Value": "me"}])
    assert "lets tags be overwritten" in images.run()["msg"]
    images.ecr.put_image_tag_mutability(repositoryName=NAME, imageTagMutability="IMMUTABLE")
    other = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::999999999999:root"}, "Action": "ecr:*"}
    text = json.dumps({"Version": "2012-10-17", "Statement": [other]})
    images.ecr.set_repository_policy(repositoryName=NAME, policyText=text)
    assert "lets arn:aws:iam::999999999999:root push to it or change it" in images.run()["msg"]
    assert told(images.folder)[3:] == []
    assert images.good(state="absent")["changed"]
    assert images.ecr.describe_repositories()["repositories"] == []
    assert not images.good(state="absent")["changed"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "Bert/training"}, "name is 'Bert/training'; use small letters"),
        ({"name": "bert/training"}, "name is 'bert/training'; let it begin with trainium/bert/"),
        ({"files": [{"src": "/etc/hosts", "dest": "../a"}]}, "files has the dest '../a'"),
        ({"files": [{"src": "/nothing", "dest": "a"}]}, "/nothing cannot be read"),
        ({"tags": {"trainium:cluster": "a"}}, "tags holds trainium:cluster, which is reserved"),
    ],
)
def test_what_cannot_work_is_refused(images: Images, changes: dict[str, Any], said: str) -> None:
    failed = images.run(**changes)
    assert failed["failed"] and said in failed["msg"]
    assert images.cloud.api.writes() == []
