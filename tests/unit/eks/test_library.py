"""A botocore that is too old for what is asked of EKS is named, in place of a traceback."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.calls import check_library
from botocore.model import ServiceModel


def older(**without: str) -> Any:
    """A client whose model lacks a field of the input of an operation."""
    session: Any = botocore.session.get_session()
    model = session.get_service_model("eks")._service_description
    for operation, field in without.items():
        shape = model["shapes"][model["operations"][operation]["input"]["shape"]]
        *before, last = field.split(".")
        for name in before:
            shape = model["shapes"][shape["members"][name]["shape"]]
        del shape["members"][last]
    return SimpleNamespace(meta=SimpleNamespace(service_model=ServiceModel(model)))


def test_the_library_of_these_tests_is_new_enough() -> None:
    check_library(boto3.client("eks", region_name="us-west-2"))


@pytest.mark.parametrize(
    ("operation", "field"),
    [("CreateCluster", "deletionProtection"), ("CreateNodegroup", "updateConfig.updateStrategy")],
)
def test_an_older_one_is_named(operation: str, field: str) -> None:
    with pytest.raises(
        TrainiumError, match=rf"the botocore [0-9.]+ of this Python does not know {field} of {operation}"
    ):
        check_library(older(**{operation: field}))


def test_one_without_an_operation_is_named() -> None:
    client = older()
    del client.meta.service_model._service_description["operations"]["DescribeClusterVersions"]
    with pytest.raises(TrainiumError, match="DescribeClusterVersions; install a newer boto3"):
        check_library(client)
