"""ecr_image call by call: the repository as it is wanted, then the image, unless one of the same content is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import calls, plan
from ansible_collections.trainium.cluster.plugins.module_utils._ecr.run import REPOSITORIES, EcrImage, RepositoriesOf

from tests.unit.ecr import test_plan
from tests.unit.ecr.conftest import ARN, DIGEST, NAME, TAGS, URI, Ecr, known, listed
from tests.unit.ecr.test_build import program

Result = dict[str, Any]
MORE: Result = {"state": "present", "files": [], "builder": "auto", "timeout": 60, "keep": 0, "tags": {}}
PARAMS: Result = {**test_plan.PARAMS, **MORE}
TAG = plan.tag_of(PARAMS, [])
PUSHES = 'while [ "$1" != --digestfile ]; do shift; done\necho {digest} > "$2"'


class Images:
    def __init__(self, api: Ecr, folder: Path) -> None:
        self.api, self.folder, self.warned, self.regions = api, folder, list[str](), list[str]()
        self.pushes()

    def pushes(self, digest: str = DIGEST, code: int = 0) -> None:
        """A podman that can do everything, and pushes what has this digest."""
        find = PUSHES.format(digest=digest)
        program(self.folder, f'case "$1" in push) {find};; login) cat >> {self.folder}/in;; esac; exit {code}')

    def run(self, check: bool = False, **changes: Any) -> Result:
        def client_of(region: str) -> Any:
            self.regions.append(region)
            return self.api.client

        return EcrImage(self.api.client, {**PARAMS, **changes}, check, client_of, self.warned.append).run()

    def there(self, **changes: Any) -> None:
        """A repository of ours, in which nobody else may write."""
        self.api.has(known(**changes))
        self.api.tagged(TAGS)
        self.api.policy()


@pytest.fixture
def images(api: Ecr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Images:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Images(api, tmp_path)


def test_an_image_that_is_there_is_only_looked_at(images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    images.there()
    images.api.image(TAG, {"imageDigest": DIGEST, "imageStatus": "ACTIVE"})
    # Nothing to build with is needed.
    monkeypatch.setenv("PATH", "")
    result = images.run()
    difference = result.pop("diff")
    assert difference["before"] == difference["after"] == f"{NAME}\n"
    assert result == {
        "changed": False,
        "image": f"{URI}:{TAG}@{DIGEST}",
        "tag": TAG,
        "digest": DIGEST,
        "repository_uri": URI,
        "pushed": False,
        "builder": "",
    }


def test_a_new_repository_and_its_first_image(images: Images) -> None:
    images.api.has()
    images.api.says("create_repository", {"repository": known()}, **plan.creation(PARAMS))
    images.api.lifecycle()
    images.api.puts_lifecycle(plan.lifecycle(7))
    images.api.password()
    images.api.image(TAG, {"imageDigest": DIGEST})
    result = images.run(keep=7)
    assert (result["changed"], result["pushed"], result["builder"]) == (True, True, "podman")
    assert result["image"] == f"{URI}:{TAG}@{DIGEST}" and result["digest"] == DIGEST
    assert result["diff"] == {"before": "", "after": f"{NAME}\nrepository\nlifecycle\nimage {NAME}:{TAG}\n"}
    assert (images.regions, (images.folder / "in").read_text()) == ([], "secret")


def test_what_check_mode_promises(images: Images) -> None:
    images.api.has()
    images.api.lifecycle()
    result = images.run(check=True, keep=7)
    assert (result["changed"], result["pushed"], result["digest"]) == (True, False, "")
    assert (result["image"], result["repository_uri"]) == (f"{NAME}:{TAG}", NAME)
    images.there()
    images.api.image(TAG)
    result = images.run(check=True, tags={"team": "text"})
    assert result["diff"]["after"] == f"{NAME}\ntags\nimage {NAME}:{TAG}\n" and result["repository_uri"] == URI
    images.api.has(known())
    images.api.tagged(TAGS)
    assert images.run(check=True, state="absent")["changed"] is True
    assert not (images.folder / "in").exists()


def test_tags_that_are_new_are_given(images: Images) -> None:
    images.there()
    images.api.image(TAG, {"imageDigest": DIGEST})
    images.api.says("tag_resource", {}, resourceArn=ARN, tags=listed({"team": "text"}))
    result = images.run(tags={"team": "text"})
    assert result["changed"] is True and result["diff"] == {"before": f"{NAME}\n", "after": f"{NAME}\ntags\n"}


def test_a_policy_of_how_many_stay(images: Images) -> None:
    theirs = {"rules": [{"description": 60 * "x", "selection": {"tagStatus": "any"}}]}
    for there, changed, warned in ((plan.lifecycle(7), False, 0), (plan.lifecycle(6), True, 0), (theirs, False, 1)):
        images.there()
        images.api.image(TAG, {"imageDigest": DIGEST})
        images.api.lifecycle(there)
        if changed:
            images.api.puts_lifecycle(plan.lifecycle(7))
        assert (images.run(keep=7)["changed"], len(images.warned)) == (changed, warned)
    assert f"The repository {NAME} has a lifecycle policy of somebody else's" in images.warned[0]


def test_an_archived_image_is_pushed_again(images: Images) -> None:
    images.there()
    images.api.image(TAG, {"imageDigest": DIGEST, "imageStatus": "ARCHIVED"})
    images.api.password()
    images.api.image(TAG, {"imageDigest": DIGEST, "imageStatus": "ACTIVE"})
    assert images.run()["pushed"] is True


@pytest.mark.parametrize(
    ("shown", "pushed", "said"),
    [
        ({}, DIGEST, "was pushed, and ECR does not show it; run again"),
        ({"imageDigest": "sha256:1"}, DIGEST, f"has the digest sha256:1 in ECR, and {DIGEST} by podman, which pushed"),
        ({"imageDigest": DIGEST}, "", f"has the digest {DIGEST} in ECR, and none by podman"),
    ],
)
def test_what_ecr_shows_is_what_was_pushed(images: Images, shown: Result, pushed: str, said: str) -> None:
    images.there()
    images.api.image(TAG)
    images.api.password()
    images.api.image(TAG, *([shown] if shown else []))
    images.pushes(pushed)
    with pytest.raises(TrainiumError, match=said):
        images.run()


@pytest.mark.parametrize("there", [True, False])
def test_a_push_that_somebody_else_was_faster_with(images: Images, there: bool) -> None:
    images.there()
    images.api.image(TAG)
    images.api.password()
    images.api.image(TAG, *([{"imageDigest": DIGEST}] if there else []))
    images.pushes(code=3)
    said = f"somebody else pushed {URI}:{TAG} while it was built here" if there else "podman could not log in to"
    with pytest.raises(TrainiumError, match=said):
        images.run()


def test_a_base_of_another_region_has_a_password_of_there(images: Images) -> None:
    dockerfile = "FROM 763104351884.dkr.ecr.eu-west-1.amazonaws.com/base:1\n"
    tag = plan.tag_of({**PARAMS, "dockerfile": dockerfile}, [])
    images.there()
    images.api.image(tag)
    images.api.password("ours")
    images.api.password("theirs")
    images.api.image(tag, {"imageDigest": DIGEST})
    images.run(dockerfile=dockerfile)
    assert (images.regions, (images.folder / "in").read_text()) == (["eu-west-1"], "ourstheirs")


def test_nothing_is_made_where_nothing_can_be_built(images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"PATH": str(images.folder)})
    images.api.has()
    with pytest.raises(TrainiumError, match="there is no buildah on this machine"):
        images.run(builder="buildah")


def test_whose_it_is(images: Images) -> None:
    images.api.has(known())
    images.api.tagged({"trainium:cluster": "bert"})
    with pytest.raises(TrainiumError, match=f"the repository {NAME} carries no tag trainium:owner"):
        images.run()
    images.there(imageTagMutability="MUTABLE")
    with pytest.raises(TrainiumError, match="lets tags be overwritten"):
        images.run()
    # Who deletes it may do so where there is no tag of an owner.
    images.api.has(known())
    images.api.tagged({"trainium:cluster": "bert"})
    images.api.says("delete_repository", {}, repositoryName=NAME, force=True)
    result = images.run(state="absent")
    assert result.pop("diff") == {"before": f"{NAME}\n", "after": ""}
    texts = dict.fromkeys(("image", "tag", "digest", "repository_uri", "builder"), "")
    assert result == {**texts, "changed": True, "pushed": False}
    images.api.has(known())
    images.api.tagged({"trainium:cluster": "bert", "trainium:owner": "you"})
    with pytest.raises(TrainiumError, match=f"the repository {NAME} belongs to you"):
        images.run(state="absent")
    images.api.has()
    assert images.run(state="absent")["changed"] is False


def test_what_is_wrong_is_said_before_ECR_is_asked(images: Images) -> None:  # noqa: N802
    with pytest.raises(TrainiumError, match="let it begin with trainium/bert/"):
        images.run(name="bert/a")
    with pytest.raises(TrainiumError, match="tags holds aws:a, which is reserved"):
        images.run(tags={"aws:a": "b"})


def test_what_teardown_finds_and_deletes(api: Ecr) -> None:
    names = ("bert/b", "bert/a", "bert/theirs", "bert/other", "bert-2/a")
    every = [known(repositoryName=f"trainium/{name}", repositoryArn=f"{ARN}-{name}") for name in names]
    tags = (TAGS, TAGS, {**TAGS, "trainium:owner": "you"}, {**TAGS, "trainium:cluster": "gpt"})

    def look() -> None:
        api.lists(*every)
        for one, found in zip(every, tags):
            api.tagged(found, one["repositoryArn"])

    look()
    found = RepositoriesOf(api.client, "bert", "me")
    assert found.look() == {REPOSITORIES: ["trainium/bert/a", "trainium/bert/b"]}
    assert (found.foreign, found.unseen) == (["trainium/bert/theirs"], "")
    look()
    api.says("delete_repository", {}, repositoryName="trainium/bert/a", force=True)
    # Somebody else was faster.
    api.says("delete_repository", "RepositoryNotFoundException", repositoryName="trainium/bert/b", force=True)
    found.delete()
    assert found.foreign == ["trainium/bert/theirs"]
    for code, raised in (("AccessDeniedException", False), ("ServerException", True)):
        api.says("describe_repositories", code)
        if raised:
            with pytest.raises(AwsCallError, match="would not list the repositories"):
                found.look()
        else:
            assert found.look() == {REPOSITORIES: []} and f"({code})" in found.unseen


def test_what_is_not_there_is_none_or_empty(api: Ecr) -> None:
    api.has()
    assert calls.repository(api.client, NAME) is None
    for operation in ("get_repository_policy", "get_lifecycle_policy"):
        api.says(operation, "RepositoryNotFoundException", repositoryName=NAME)
    assert calls.policy(api.client, NAME) == calls.lifecycle(api.client, NAME) == {}
    asked: Result = {"repositoryName": NAME, "imageIds": [{"imageTag": "a"}]}
    api.says("describe_images", "RepositoryNotFoundException", **asked)
    assert calls.image(api.client, NAME, "a") is None
    api.policy({"Statement": []})
    assert calls.policy(api.client, NAME) == {"Statement": []}
    for operation, call in (("get_repository_policy", calls.policy), ("get_lifecycle_policy", calls.lifecycle)):
        api.says(operation, "ServerException", repositoryName=NAME)
        with pytest.raises(AwsCallError, match="for the test"):
            call(api.client, NAME)
