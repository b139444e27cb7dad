"""efa_instance in check mode: what it promises is what then happens, and nothing happens before."""

from __future__ import annotations

from typing import Any

import pytest

Account = Any


def promised(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of diff's after, without what only EC2 can know."""
    nodes = [{**node, "public_ip_address": ""} for node in result["diff"]["after"]["instances"].values()]
    return sorted(nodes, key=str)


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ([], {}),
        ([], {"count": 3, "interface_layout": "efa-only", "public_ip": "primary"}),
        ([{"count": 1}], {"count": 3}),
        ([{"count": 3}], {"count": 1, "allow_shrink": True}),
        ([{}], {"tags": {"team": "speech"}}),
        ([{}], {"state": "stopped"}),
        ([{}, {"state": "stopped"}], {}),
        ([{}], {"state": "absent"}),
        ([{}], {}),
    ],
)
def test_the_promise_is_kept(cloud: Account, before: list[dict[str, Any]], then: dict[str, Any]) -> None:
    for changes in before:
        cloud.efa(**changes)
    cloud.api.clear_calls()
    check = cloud.efa(check=True, **then)
    assert cloud.api.writes() == []
    real = cloud.efa(**then)
    assert check["changed"] == real["changed"]
    assert promised(check) == promised(real)
    assert check["diff"]["before"] == real["diff"]["before"]
    for field in ("started", "stopped", "terminated"):
        assert check[field] == real[field]


def test_ec2_is_asked_whether_it_would(cloud: Account) -> None:
    check = cloud.efa(check=True, user_data="secret-in-user-data")
    (call,) = cloud.api.calls("RunInstances")
    assert call["parameters"]["DryRun"] == "true"
    assert check["asked"] is True
    assert len(check["request"]["NetworkInterfaces"]) == 8
    # Nor in what -vvv shows of the arguments.
    assert "user_data" in check["invocation"]["module_args"]
    assert "secret-in-user-data" not in str(check)


def test_the_emulator_looks_at_interfaces_also_by_dry_run(cloud: Account) -> None:
    """A proof asks AWS the same: what DryRun accepts says something of interfaces only where it refuses wrong ones."""
    request = cloud.efa(check=True)["request"]
    told = cloud.run("internal.dry_run_control", {"request": request})
    assert (told["code"], told["changed"]) == ("InvalidParameterValue", False)
    assert {call["parameters"]["DryRun"] for call in cloud.api.calls("RunInstances")} == {"true"}
    cloud.api.fault("RunInstances", "UnauthorizedOperation")
    assert cloud.run("internal.dry_run_control", {"request": request})["code"] == "UnauthorizedOperation"


def test_a_refused_dry_run_fails(cloud: Account) -> None:
    cloud.api.fault("RunInstances", "UnauthorizedOperation")
    message = cloud.refused(check=True)
    assert "UnauthorizedOperation" in message
    assert "have the permission granted" in message


def test_an_empty_account(cloud: Account) -> None:
    """A play in check mode has no network yet, and its key and placement group are not there either."""
    result = cloud.efa(check=True, subnets=[], security_groups=[], key_name="later", placement_group="later")
    assert result["changed"]
    assert result["diff"]["after"]["count"] == 2
    assert result["asked"] is False
    assert "subnets, security_groups, key_name, placement_group" in str(result["warnings"])
    assert cloud.api.calls("RunInstances") == []
