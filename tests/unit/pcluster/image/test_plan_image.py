"""What is to be done with an image in each state."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan_image import (
    NAME,
    build_failure,
    next_image_step,
)


@pytest.mark.parametrize(
    ("status", "present", "absent"),
    [
        (None, "build", "nothing"),
        ("DELETE_COMPLETE", "build", "nothing"),
        ("BUILD_IN_PROGRESS", "wait_build", "delete"),
        ("BUILD_COMPLETE", "nothing", "delete"),
        ("BUILD_FAILED", "refuse", "delete"),
        ("DELETE_IN_PROGRESS", "refuse", "wait_delete"),
        ("DELETE_FAILED", "refuse", "delete"),
    ],
)
def test_steps(status: str | None, present: str, absent: str) -> None:
    assert next_image_step("present", status).action == present
    assert next_image_step("absent", status).action == absent


def test_the_reason_of_a_failed_build() -> None:
    assert build_failure({"cloudformationStackStatusReason": "no\n room."}) == ": no room"
    assert build_failure({}) == ""


def test_names() -> None:
    assert NAME.match("trn1-2026")
    assert not NAME.match("2026")
