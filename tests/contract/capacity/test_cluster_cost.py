"""What validate.yml says of the cost, as the module puts it together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.contract.conftest import CREDENTIALS, REPOSITORY
from tests.contract.validate.test_refusals import play

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
        "2 trn1.32xlarge in us-west-2 cost 21.00 USD an hour by trainium_price_per_hour; "
        "the head node m5.2xlarge 0.2 USD an hour; together 21.20 USD an hour"
    )
    assert cloud.api.calls() == []


def test_a_price_of_ones_own_is_told_where_the_others_must_not_be_asked(cloud: Account) -> None:
    cloud.api.fault("GetProducts", "AccessDeniedException", times=9)
    assert said(cloud, head_instance_type="m5.2xlarge", nat_gateways=1, prices={"trn1.32xlarge": 10.5}) == (
        "2 trn1.32xlarge in us-west-2 cost 21.00 USD an hour by trainium_price_per_hour. Not in it: the head node "
        "m5.2xlarge, a NAT gateway, storage, addresses and traffic. Not all prices are known: AWS would not list the "
        "prices: for the test (AccessDeniedException); have the permission granted."
    )
    assert len(cloud.api.calls("GetProducts")) == 1
    assert said(cloud, market="capacity-block", nat_gateways=1).startswith(
        "2 trn1.32xlarge in us-west-2 cost nothing more in the Capacity Block, which is paid in advance. Not in it: "
        "a NAT gateway, "
    )


def test_system_nodes_count_and_of_one_type_is_asked_once(cloud: Account) -> None:
    more = {"system_instance_type": "m5.xlarge", "system_count": 2, "head_instance_type": "m5.xlarge", "least": 0}
    assert said(cloud, **more).startswith(
        "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand while all of them run, and nothing while none "
        "does; the head node m5.xlarge 0.192 USD an hour; 2 system nodes m5.xlarge 0.384 USD an hour; together at most "
        "43.58 USD an hour."
    )
    firsts = [call for call in cloud.api.calls("GetProducts") if "NextToken" not in call["parameters"]]
    assert len(firsts) == 2


def test_who_is_throttled_asks_again(cloud: Account) -> None:
    cloud.api.fault("GetProducts", "ThrottlingException", times=3)
    assert "cost 43.00 USD an hour" in said(cloud)


def test_who_must_not_ask_and_who_gets_no_answer_is_told_so(cloud: Account) -> None:
    cloud.api.fault("GetProducts", "AccessDeniedException", times=1)
    assert said(cloud) == (
        "What the cluster costs an hour is not known: AWS would not list the prices: for the test "
        "(AccessDeniedException); have the permission granted."
    )
    cloud.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    assert "What the cluster costs an hour is not known: cannot list the prices: " in said(cloud)


NODES = "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand"
GROUPS = [{"instance_type": "trn1.32xlarge", "count": 2}, {"instance_type": "trn2.48xlarge", "count": 1}]
# Variables of the user -> how the sentence begins, and what is named as not in it.
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"trainium_backend": "ec2", "trainium_bastion": "create"}, f"{NODES}; a NAT gateway", "the bastion"),
    ({"trainium_capacity_reservation": {"id": "cr-1"}}, f"{NODES}, which the capacity reservation costs", "storage"),
    ({"trainium_backend": "pcluster"}, f"{NODES} while all of them run, and nothing while none does", "the head node"),
    (
        {"trainium_backend": "pcluster", "parallelcluster_preset": "multi_queue", "parallelcluster_static": True},
        f"{NODES}; a NAT gateway",
        "the head node, other queues",
    ),
    (
        {
            "trainium_backend": "pcluster",
            "parallelcluster_preset": "capacity_block",
            "parallelcluster_instance_type": "trn2.48xlarge",
        },
        "2 trn2.48xlarge in us-west-2 cost nothing more in the Capacity Block",
        "the head node",
    ),
    (
        {"trainium_backend": "eks", "eks_cluster_node_groups": GROUPS, "eks_cluster_system_instance_type": "m5.xlarge"},
        f"{NODES}; 2 system nodes m5.xlarge 0.384 USD",
        "the control plane, other node groups",
    ),
]


def test_what_the_role_counts_and_what_it_names(cloud: Account, tmp_path: Path) -> None:
    given = {
        "trainium_backend": "ec2",
        "trainium_head_instance_type": "",
        "trainium_subnet_ids": [],
        "trainium_public_ip": "none",
        "trainium_bastion": "none",
        "trainium_price_per_hour": {},
        "trainium_region": "us-west-2",
        "trainium_capacity_reservation": {},
        "trainium_instance_type": "trn1.32xlarge",
        "trainium_node_count": 2,
        "trainium_market": "on-demand",
        "trainium_eks_create": True,
    }
    role = REPOSITORY / "roles/trainium"
    tasks = [
        {"ansible.builtin.include_vars": {"file": str(role / "vars/main.yml")}},
        *(
            {"ansible.builtin.include_tasks": {"file": str(role / "tasks/cost.yml")}, "vars": {**given, **variables}}
            for variables, *_said in CASES
        ),
    ]
    plays = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (tmp_path / "cost.json").write_text(json.dumps(plays), encoding="utf-8")
    done = play(tmp_path, str(tmp_path / "cost.json"), **CREDENTIALS, AWS_ENDPOINT_URL=cloud.api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.strip() for line in done.stdout.splitlines() if ". Not in it: " in line]
    assert len(told) == len(CASES), done.stdout
    for text, (_variables, begin, unknown) in zip(told, CASES):
        first, _dot, rest = text.partition(". Not in it: ")
        assert begin in first
        assert rest.startswith(unknown)
