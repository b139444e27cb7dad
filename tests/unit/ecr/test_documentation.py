"""ecr_image takes what its documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.modules import ecr_image

from tests.unit.documented import check_options, hidden


def test_the_options_are_as_documented_and_none_is_hidden() -> None:
    check_options(ecr_image)
    assert hidden(ecr_image.ARGUMENTS) == []
