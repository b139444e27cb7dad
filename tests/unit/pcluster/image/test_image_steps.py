"""What the modules pcluster_image and pcluster_info ask of the library."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import (
    BROKEN,
    DRY_RUN,
    NOT_FOUND,
    PclusterError,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_image import PclusterImage, list_images
from ansible_collections.trainium.cluster.plugins.modules import pcluster_info

from tests.unit.pcluster.pcluster_stand_ins import Item, ToldLibrary

NONE = PclusterError(NOT_FOUND, "no such image")
REMARK = {"level": "WARNING", "type": "X", "message": "hm"}
BUILD = {"Build": {"ParentImage": "ami-1"}}
# A role of one's own, with which a dry run makes none.
WITH_ROLE = {"Build": {"Iam": {"CleanupLambdaRole": "arn:aws:iam::1:role/a"}}}


def image(status: str, **more: Any) -> Item:
    return {"imageId": "mine", "imageBuildStatus": status, "tags": [{"key": "team", "value": "speech"}], **more}


class Run:
    """The module once: its result or its error, and what was asked."""

    def __init__(self, images: list[Any], check: bool = False, **params: Any) -> None:
        configuration = params.pop("configuration", BUILD)
        self.library = ToldLibrary(
            describe_image=images, dry_build_image=PclusterError(DRY_RUN, "ok", {"validationMessages": [REMARK]})
        )
        given = {
            "image_id": "mine",
            "state": "present",
            "suppress_validators": [],
            "validation_failure_level": "ERROR",
            "rollback_on_failure": False,
            "force": False,
            "wait": True,
            "wait_timeout": 60,
            **params,
        }
        self.warned: list[str] = []
        self.result: Item = {}
        self.error = ""
        try:
            self.result = PclusterImage(self.library, given, configuration, check, self.warned.append).run()
        except TrainiumError as error:
            self.error = str(error)

    @property
    def operations(self) -> list[str]:
        return self.library.operations


def test_a_bad_name_is_refused_before_anything_is_asked() -> None:
    done = Run([NONE], image_id="1")
    assert "image_id must begin with a letter" in done.error
    assert done.operations == []


def test_an_image_is_rehearsed_built_and_awaited() -> None:
    done = Run(
        [NONE, image("BUILD_IN_PROGRESS"), image("BUILD_COMPLETE")],
        suppress_validators=["ALL"],
        validation_failure_level="WARNING",
        rollback_on_failure=True,
    )
    assert done.operations == ["describe_image", "dry_build_image", "build_image", "describe_image", "describe_image"]
    asked = {
        "image_id": "mine",
        "image_configuration": BUILD,
        "suppress_validators": ["ALL"],
        "validation_failure_level": "WARNING",
    }
    assert done.library.arguments("dry_build_image") == asked
    assert done.library.arguments("build_image") == {**asked, "rollback_on_failure": True}
    assert done.result == {
        "changed": True,
        "operation": "build",
        "image": {"image_id": "mine", "image_build_status": "BUILD_COMPLETE", "tags": {"team": "speech"}},
        "validation_messages": [REMARK],
        "diff": {"before": {}, "after": {"image_build_status": "BUILD_COMPLETE"}},
    }


def test_without_waiting_a_build_is_begun_and_looked_at_once() -> None:
    done = Run([NONE, image("BUILD_IN_PROGRESS")], wait=False)
    assert done.operations == ["describe_image", "dry_build_image", "build_image", "describe_image"]
    assert done.library.arguments("build_image") == {
        "image_id": "mine",
        "image_configuration": BUILD,
        "validation_failure_level": "ERROR",
        "rollback_on_failure": False,
    }
    assert done.result["image"]["image_build_status"] == "BUILD_IN_PROGRESS"


def test_a_check_makes_no_role_in_the_account() -> None:
    for configuration in (BUILD, {"Build": {"Iam": None}}, {"Build": None}, {}):
        done = Run([NONE], check=True, configuration=configuration)
        assert done.operations == ["describe_image"]
        assert len(done.warned) == 1 and "CleanupLambdaRole" in done.warned[0]
        assert (done.result["changed"], done.result["operation"], done.result["image"]) == (True, "build", None)
    done = Run([NONE], check=True, configuration=WITH_ROLE)
    assert (done.operations, done.warned) == (["describe_image", "dry_build_image"], [])
    assert done.result["validation_messages"] == [REMARK]
    # A build asks whether there is a role or not.
    assert "dry_build_image" in Run([NONE, image("BUILD_COMPLETE")]).operations


def test_an_image_that_is_there_is_left_alone() -> None:
    done = Run([image("BUILD_COMPLETE")])
    assert set(done.operations) == {"describe_image"}
    assert (done.result["changed"], done.result["operation"]) == (False, "none")
    assert done.result["diff"]["before"] == done.result["diff"]["after"] == {"image_build_status": "BUILD_COMPLETE"}
    checked = Run([image("BUILD_COMPLETE")], check=True)
    assert checked.operations == ["describe_image"]
    assert checked.result["image"]["image_id"] == "mine"


def test_what_is_under_way_is_awaited_unless_this_is_a_check() -> None:
    done = Run([image("BUILD_IN_PROGRESS"), image("BUILD_COMPLETE")])
    assert (done.result["changed"], done.result["image"]["image_build_status"]) == (False, "BUILD_COMPLETE")
    checked = Run([image("BUILD_IN_PROGRESS")], check=True)
    assert checked.operations == ["describe_image"]


def test_an_image_that_failed_is_refused_with_the_reason() -> None:
    done = Run([image("BUILD_FAILED", imagebuilderImageStatusReason="No disk\nis left.")])
    assert done.error.endswith("then build it again: No disk is left")
    assert done.operations == ["describe_image"]


@pytest.mark.parametrize(
    ("wanted", "images", "sentence"),
    [
        (
            "present",
            [NONE, image("BUILD_FAILED", cloudformationStackStatusReason="no role")],
            "the build of the image failed: no role",
        ),
        ("present", [NONE, NONE], "the image is gone: something else deleted it meanwhile"),
        ("present", [NONE, image("BUILD_IN_PROGRESS")], "mine (BUILD_IN_PROGRESS) is not built after 60 s"),
        ("absent", [image("BUILD_COMPLETE"), image("DELETE_FAILED")], "the deletion of the image failed"),
        ("absent", [image("DELETE_IN_PROGRESS")], "mine (DELETE_IN_PROGRESS) is not deleted after 60 s"),
    ],
)
def test_why_the_wait_is_given_up(wanted: str, images: list[Any], sentence: str) -> None:
    assert Run(images, state=wanted).error.startswith(sentence)


def test_a_deletion_of_an_image_that_failed_is_awaited() -> None:
    """Its status stays that of the build until it goes."""
    done = Run([image("BUILD_FAILED"), image("BUILD_FAILED"), NONE], state="absent")
    assert (done.error, done.result["operation"]) == ("", "delete")


@pytest.mark.parametrize("force", [False, True])
def test_an_image_is_deleted_and_awaited(force: bool) -> None:
    done = Run([image("BUILD_COMPLETE"), image("DELETE_IN_PROGRESS"), NONE], state="absent", force=force)
    assert done.operations == ["describe_image", "delete_image", "describe_image", "describe_image"]
    assert done.library.arguments("delete_image") == {"image_id": "mine", "force": force}
    assert (done.result["changed"], done.result["operation"], done.result["image"]) == (True, "delete", None)
    assert done.result["diff"] == {"before": {"image_build_status": "BUILD_COMPLETE"}, "after": {}}
    checked = Run([image("BUILD_COMPLETE")], state="absent", check=True)
    assert (checked.operations, checked.result["changed"]) == (["describe_image"], True)


def test_an_image_that_is_not_there_is_no_error_and_another_error_is() -> None:
    done = Run([NONE], state="absent")
    assert (done.error, done.result["changed"], done.result["image"]) == ("", False, None)
    assert Run([PclusterError(BROKEN, "it broke")], state="absent").error == "it broke"


def test_all_images_of_the_account_are_listed_once_whatever_their_state() -> None:
    # Of FAILED, PENDING and AVAILABLE, the last in two pages.
    pages = [
        {"images": [image("BUILD_FAILED", imageId="c")]},
        {"images": [image("BUILD_IN_PROGRESS", imageId="b")]},
        {"images": [image("BUILD_COMPLETE", imageId="b")], "nextToken": "more"},
        {"images": [image("BUILD_COMPLETE", imageId="a")]},
    ]
    official = {"images": [{"amiId": "ami-2", "os": "ubuntu2404"}]}
    library = ToldLibrary(list_images=pages, list_official_images=official)
    found = list_images(library, {"os": "ubuntu2404", "architecture": None})
    assert [(one["image_id"], one["image_build_status"]) for one in found["images"]] == [
        ("a", "BUILD_COMPLETE"),
        ("b", "BUILD_COMPLETE"),
        ("c", "BUILD_FAILED"),
    ]
    assert found["official_images"] == [{"ami_id": "ami-2", "os": "ubuntu2404"}]
    assert (found["changed"], found["operation"]) == (False, "none")
    assert library.arguments("list_official_images") == {"os": "ubuntu2404"}
    asked = [arguments for name, arguments in library.asked if name == "list_images"]
    assert sorted(one["image_status"] for one in asked) == ["AVAILABLE", "AVAILABLE", "FAILED", "PENDING"]
    assert [one.get("next_token") for one in asked] == [None, None, None, "more"]


def test_clusters_are_described_by_name_and_one_of_a_newer_version_as_far_as_it_is_known() -> None:
    known = {"cluster": {"clusterName": "old", "tags": None}, "configuration": {"Region": "x"}, "version": "3.16.1"}
    newer = {"cluster": None, "configuration": None, "version": "4.0.0"}
    library = ToldLibrary(
        list_clusters={
            "clusters": [{"clusterName": "old"}, {"clusterName": "new", "region": "x"}, {"clusterName": "g"}]
        },
        cluster_state=[known, newer, None],
        describe_cluster_instances=[
            {"instances": [{"instanceId": "i-1"}], "nextToken": "more"},
            {"instances": [{"instanceId": "i-2"}]},
        ],
        version="3.16.1",
        list_official_images={"images": [{"amiId": "ami-2"}]},
    )
    params = {"name": None, "instances": True, "official_images": True, "os": "alinux2023", "architecture": "arm64"}
    found = pcluster_info.run(library, params)
    assert found["clusters"] == [
        {"cluster_name": "new", "region": "x", "version": "4.0.0", "configuration": None, "instances": []},
        {
            "cluster_name": "old",
            "tags": {},
            "configuration": {"Region": "x"},
            "instances": [{"instance_id": "i-1"}, {"instance_id": "i-2"}],
        },
    ]
    assert (found["changed"], found["installed_version"]) == (False, "3.16.1")
    assert found["official_images"] == [{"ami_id": "ami-2"}]
    assert library.arguments("list_official_images") == {"os": "alinux2023", "architecture": "arm64"}
    assert library.arguments("describe_cluster_instances") == {"cluster_name": "old", "next_token": "more"}


def test_one_cluster_is_asked_for_by_its_name_alone() -> None:
    params = {"name": "bert", "instances": False, "official_images": False}
    state = {"cluster": {"clusterName": "bert"}, "configuration": None, "version": "3.16.1"}
    library = ToldLibrary(cluster_state=state, version="3.16.1")
    found = pcluster_info.run(library, params)
    assert found["clusters"] == [{"cluster_name": "bert", "configuration": None}]
    assert "official_images" not in found
    assert library.asked == [("cluster_state", {"cluster_name": "bert"}), ("version", {})]
    assert pcluster_info.run(ToldLibrary(cluster_state=None), params)["clusters"] == []
