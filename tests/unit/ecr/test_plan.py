"""A repository as it is wanted, the tag of an image, and who else may write into a repository."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import plan
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

ECR: Any = ServiceModel(Loader().load_service_model("ecr", "service-2"))
PARAMS: dict[str, Any] = {
    "name": "trainium/bert/training",
    "cluster_name": "bert",
    "owner": "me",
    "dockerfile": "FROM base\n",
    "platform": "linux/amd64",
    "build_options": [],
    "tag_suffix": "",
    "scan_on_push": True,
    "kms_key_id": None,
    "tags": {"team": "speech"},
}
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd"


@pytest.mark.parametrize(
    ("cluster", "folder"),
    [
        ("bert", "trainium/bert"),
        ("Bert_Large.2", "trainium/bert-large-2"),
        ("-bert-", "trainium/bert"),
        ("__", "trainium/cluster"),
    ],
)
def test_the_folder_of_a_cluster(cluster: str, folder: str) -> None:
    assert plan.namespace(cluster) == folder
    plan.check({**PARAMS, "cluster_name": cluster, "name": f"{folder}/a"})
    there = [{"repositoryName": name} for name in (f"{folder}/a", f"{folder}-2/a", folder, f"x/{folder}/a")]
    assert plan.belonging(there, cluster) == there[:1]


@pytest.mark.parametrize("end", ["a", "a/b", "a-b_c.d", "0"])
def test_names_that_ECR_takes(end: str) -> None:  # noqa: N802
    plan.check({**PARAMS, "name": f"trainium/bert/{end}", "files": None})


@pytest.mark.parametrize("end", ["", "A", "a--b", "a/", "/a", "-a", "a..b", 256 * "a"])
def test_names_that_it_does_not(end: str) -> None:
    with pytest.raises(TrainiumError, match="use small letters, digits and single"):
        plan.check({**PARAMS, "name": f"trainium/bert/{end}"})


def test_files_beside_the_dockerfile() -> None:
    def named(*names: str) -> dict[str, Any]:
        return {**PARAMS, "files": [{"dest": name, "src": "/etc/hosts"} for name in names]}

    plan.check(named("a", "B-1.lock", "requirements_1.txt", "a" * 101))
    for name in ("", ".a", "a/b", "a b", "a" * 102):
        with pytest.raises(TrainiumError, match="files has the dest"):
            plan.check(named(name))
    with pytest.raises(TrainiumError, match="files has two of one dest"):
        plan.check(named("a", "b", "a"))


def test_a_tag_is_of_all_that_the_image_is_made_of_and_of_nothing_else() -> None:
    contents = [("a", "1"), ("b", "2")]
    tag = plan.tag_of(PARAMS, contents)
    assert tag.startswith("trainium-") and len(tag) == len("trainium-") + 16
    assert plan.tag_of(PARAMS, contents[::-1]) == tag
    assert plan.tag_of({**PARAMS, "name": "x", "tags": {}, "build_options": None}, contents) == tag
    others = [
        plan.tag_of({**PARAMS, **change}, contents)
        for change in ({"dockerfile": "FROM b"}, {"platform": "linux/arm64"}, {"build_options": ["--squash"]})
    ]
    assert len({tag, *others, plan.tag_of(PARAMS, contents[:1]), plan.tag_of(PARAMS, [("a", "2"), ("b", "1")])}) == 6
    assert plan.tag_of({**PARAMS, "tag_suffix": "sdk2.29.1"}, contents) == f"{tag}-sdk2.29.1"


@pytest.mark.parametrize(
    ("key", "encryption"),
    [
        (None, {"encryptionType": "AES256"}),
        ("", {"encryptionType": "AES256"}),
        (KEY, {"encryptionType": "KMS", "kmsKey": KEY}),
    ],
)
def test_what_a_repository_is_made_with(key: str | None, encryption: dict[str, str]) -> None:
    request = plan.creation({**PARAMS, "kms_key_id": key})
    report = ParamValidator().validate(request, ECR.operation_model("CreateRepository").input_shape)
    assert not report.has_errors(), report.generate_report()
    assert request["encryptionConfiguration"] == encryption
    # A tag that could be pushed anew could become another image.
    assert request["imageTagMutability"] == "IMMUTABLE"
    assert plan.creation({**PARAMS, "scan_on_push": False})["imageScanningConfiguration"] == {"scanOnPush": False}
    tags = {one["Key"]: one["Value"] for one in request["tags"]}
    assert tags == {"trainium:cluster": "bert", "trainium:owner": "me", "team": "speech"}
    assert plan.new_tags(tags, PARAMS) == {}
    assert plan.new_tags({**tags, "team": "text", "other": "x"}, PARAMS) == {"team": "speech"}


@pytest.mark.parametrize(
    ("there", "asked", "fits"),
    [
        (KEY, None, True),
        (KEY, KEY, True),
        (KEY, "1234abcd", True),
        (KEY, "34abcd", False),
        (KEY, "alias/mine", True),
        ("", "1234abcd", False),
        ("", None, True),
    ],
)
def test_the_key_of_a_repository_stays(there: str, asked: str | None, fits: bool) -> None:
    found = {"imageTagMutability": "IMMUTABLE", "encryptionConfiguration": {"kmsKey": there} if there else None}
    if fits:
        plan.check_repository(found, {}, {**PARAMS, "kms_key_id": asked})
        return
    said = f"is encrypted with {there or 'a key of ECR'}, not with {asked}, which ECR cannot change"
    with pytest.raises(TrainiumError, match=said):
        plan.check_repository(found, {}, {**PARAMS, "kms_key_id": asked})


def test_a_repository_that_others_may_write_into_is_refused() -> None:
    found = {"imageTagMutability": "IMMUTABLE", "registryId": "123456789012"}
    statement = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "ecr:PutImage"}
    plan.check_repository(found, {"Statement": [statement]}, PARAMS)
    for mutability in ("MUTABLE", None):
        with pytest.raises(
            TrainiumError, match=r"training lets tags be overwritten; .* --image-tag-mutability IMMUTABLE"
        ):
            plan.check_repository({**found, "imageTagMutability": mutability}, {}, PARAMS)
    with pytest.raises(TrainiumError, match="lets 123456789012 push to it or change it"):
        plan.check_repository({**found, "registryId": "999999999999"}, {"Statement": statement}, PARAMS)


OTHER = {"Principal": {"AWS": "999999999999"}}


@pytest.mark.parametrize(
    ("statement", "there"),
    [
        ({**OTHER, "Effect": "Deny", "Action": "ecr:*"}, []),
        ({**OTHER, "Effect": "Allow", "Action": ["ecr:DescribeImages", "ecr:ListImages", "ecr:Get*"]}, []),
        ({**OTHER, "Effect": "Allow", "Action": ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage"]}, []),
        ({**OTHER, "Effect": "Allow", "Action": ["ecr:GetDownloadUrlForLayer", "ecr:PutImage"]}, ["999999999999"]),
        ({**OTHER, "Effect": "Allow", "Action": "ecr:BatchDeleteImage"}, ["999999999999"]),
        # All but what is named.
        ({**OTHER, "Effect": "Allow", "NotAction": "ecr:PutImage"}, ["999999999999"]),
        ({"NotPrincipal": {"AWS": "123456789012"}, "Effect": "Allow", "Action": "ecr:*"}, ["123456789012"]),
        ({"Effect": "Allow", "Action": "ecr:*"}, ["*"]),
        ({"Principal": {"AWS": ["1", "2"], "Service": "s"}, "Effect": "Allow", "Action": "*"}, ["1", "2", "s"]),
        ({"Principal": {"AWS": "arn:aws:sts::123456789012:assumed-role/a/b"}, "Effect": "Allow", "Action": "*"}, []),
        (
            {"Principal": {"AWS": "arn:aws:s3::123456789012:b"}, "Effect": "Allow", "Action": "*"},
            ["arn:aws:s3::123456789012:b"],
        ),
    ],
)
def test_who_else_may_change_it(statement: dict[str, Any], there: list[str]) -> None:
    assert plan.strangers({"Statement": [statement]}, "123456789012") == there
    assert plan.strangers({}, "123456789012") == []


def test_the_newest_images_stay() -> None:
    policy = plan.lifecycle(50)
    (rule,) = policy["rules"]
    # In the form of the user guide, "Examples of lifecycle policies in Amazon ECR".
    assert (rule["action"], rule["rulePriority"]) == ({"type": "expire"}, 1)
    selection = {"tagStatus": "tagged", "tagPrefixList": ["trainium-"], "countType": "imageCountMoreThan"}
    assert rule["selection"] == {**selection, "countNumber": 50}
    # The tags that it is for are ours.
    assert plan.tag_of(PARAMS, []).startswith(rule["selection"]["tagPrefixList"][0])
    assert plan.lifecycle(0) == {}


@pytest.mark.parametrize(
    ("policy", "own"),
    [
        ({}, True),
        ({"rules": []}, True),
        (plan.lifecycle(3), True),
        ({"rules": [*plan.lifecycle(3)["rules"], *plan.lifecycle(3)["rules"]]}, False),
        ({"rules": [{"selection": {"tagPrefixList": ["trainium-", "v"]}}]}, False),
        ({"rules": [{"selection": {"tagStatus": "any"}}]}, False),
        ({"rules": [{}]}, False),
    ],
)
def test_a_policy_of_others_is_told_apart(policy: dict[str, Any], own: bool) -> None:
    assert plan.is_own_lifecycle(policy) is own
