"""What validate.yml says of the cost, as the module puts it together."""

from __future__ import annotations

from typing import Any

Account = Any
TWO = {"instance_type": "trn1.32xlarge", "count": 2}


def said(cloud: Account, **arguments: Any) -> str:
    found = cloud.run("internal.cluster_cost", {**TWO, **arguments})
    assert not found.get("failed"), found.get("msg")
    return str(found["sentence"])


def test_all_that_is_billed_by_the_hour(cloud: Account) -> None:
    assert said(cloud, head_instance_type="m5.2xlarge", nat_gateways=1, unknown=["the control plane"]) == (
        "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand; the head node m5.2xlarge 0.384 USD an hour; "
        "a NAT gateway 0.045 USD an hour; together 43.43 USD an hour. Not in it: the control plane, storage, addresses "
        "and traffic."
    )
    assert cloud.api.writes() == []


def test_other_regions_have_other_prices_and_no_list_of_their_own(cloud: Account) -> None:
    assert said(cloud, region="ap-southeast-2").startswith("2 trn1.32xlarge in ap-southeast-2 cost 53.75 USD an hour")
    assert "price list does not say what 2 trn1.32xlarge in eu-west-1 cost" in said(cloud, region="eu-west-1")
    cloud.api.clear_calls()
    assert "price list does not say what 2 trn1.32xlarge in cn-north-1 cost" in said(cloud, region="cn-north-1")
    assert cloud.api.calls() == []


def test_prices_that_are_given_are_not_asked_for(cloud: Account) -> None:
    own = {"trn1.32xlarge": 10.5, "m5.2xlarge": "0.2"}
    assert said(cloud, head_instance_type="m5.2xlarge", prices=own).startswith(
        "2 trn1.32xlarge in us-west-2 cost 21.00 USD an hour on demand; the head node m5.2xlarge 0.2 USD an hour; "
        "together 21.20 USD an hour"
    )
    assert cloud.api.calls() == []


def test_who_must_not_ask_and_who_gets_no_answer_is_told_so(cloud: Account) -> None:
    cloud.api.fault("GetProducts", "AccessDeniedException", times=1)
    assert said(cloud) == (
        "What the cluster costs an hour is not known: AWS would not list the prices: for the test "
        "(AccessDeniedException); have the permission granted."
    )
    cloud.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    assert "What the cluster costs an hour is not known: cannot list the prices: " in said(cloud)
