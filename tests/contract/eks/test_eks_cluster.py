"""eks_cluster makes a cluster once, updates it step by step, admits and dismisses administrators, and deletes it."""

from __future__ import annotations

from tests.contract.eks.conftest import CALLER, Eks, Result


def test_made_once_and_as_asked(eks: Eks) -> None:
    api = eks.cloud.api
    ml = eks.make_role("ml", "ec2.amazonaws.com")
    promised = eks.cluster(check=True, role_arn=None, subnets=[], admins=[ml])
    assert promised["changed"] and not [call for call in api.writes() if "clusters" in call]
    assert promised["diff"]["before"] == {} and promised["diff"]["after"]["public_access_cidrs"] == ["192.0.2.0/24"]
    first = eks.cluster(logging=["api", "audit"], admins=[ml], owner="me", tags={"team": "speech"})
    assert first["changed"], first
    made = eks.client.describe_cluster(name="bert")["cluster"]
    assert made["status"] == first["cluster"]["status"] == "ACTIVE" and made["version"] == "1.34"
    network = made["resourcesVpcConfig"]
    assert (network["endpointPrivateAccess"], network["publicAccessCidrs"]) == (True, ["192.0.2.0/24"])
    assert made["accessConfig"]["authenticationMode"] == "API"
    assert made["tags"] == {"trainium:cluster": "bert", "trainium:owner": "me", "team": "speech"}
    assert first["cluster"]["admins"] == sorted([CALLER, ml])
    assert first["cluster"]["endpoint"] == made["endpoint"]
    api.clear_calls()
    again = eks.cluster(logging=["audit", "api"], admins=[ml], owner="me", tags={"team": "speech"})
    assert not again["changed"] and api.writes() == [] and again["diff"]["before"] == again["diff"]["after"]
    # Check mode tells the same.
    assert not eks.cluster(check=True, logging=["audit", "api"], admins=[ml], owner="me")["changed"]


def test_changes_come_one_by_one_and_versions_step_by_step(eks: Eks) -> None:
    eks.cluster()
    changes: Result = {"version": "1.36", "logging": ["audit"], "public_access": False, "support": "STANDARD"}
    promised = eks.cluster(check=True, **changes)
    eks.cloud.api.clear_calls()
    assert eks.cluster(check=True, **changes)["changed"] and eks.cloud.api.writes() == []
    done = eks.cluster(**changes)
    assert (
        done["updated"]
        == promised["updated"]
        == ["endpoint access", "logging", "support", "Kubernetes 1.35", "Kubernetes 1.36"]
    )
    made = eks.client.describe_cluster(name="bert")["cluster"]
    assert (made["version"], made["upgradePolicy"]["supportType"]) == ("1.36", "STANDARD")
    assert (
        made["resourcesVpcConfig"]["publicAccessCidrs"] == [] and not made["resourcesVpcConfig"]["endpointPublicAccess"]
    )
    assert promised["diff"]["after"] == done["diff"]["after"]
    assert not eks.cluster(**changes)["changed"]
    assert "EKS does not lower" in eks.cluster(version="1.35")["msg"]


def test_administrators_come_and_go_and_others_stay(eks: Eks) -> None:
    roles = [eks.make_role(name, "ec2.amazonaws.com") for name in ("one", "two", "theirs")]
    eks.cluster(admins=roles[:1])
    eks.client.create_access_entry(clusterName="bert", principalArn=roles[2], kubernetesGroups=["ml"])
    changed = eks.cluster(admins=roles[1:2])
    assert changed["changed"] and changed["cluster"]["admins"] == sorted([CALLER, roles[1]])
    assert sorted(eks.client.list_access_entries(clusterName="bert")["accessEntries"]) == sorted([CALLER, *roles[1:]])
    assert not eks.cluster(admins=roles[1:2])["changed"]
    # Whoever runs it without an entry gets one.
    eks.client.delete_access_entry(clusterName="bert", principalArn=CALLER)
    assert eks.cluster(admins=None)["cluster"]["admins"] == sorted([CALLER, roles[1]])
    assert "no ARN of a user or role" in eks.cluster(admins=["ml"])["msg"]


def test_what_is_refused_and_warned_of(eks: Eks) -> None:
    assert "EKS does not offer Kubernetes 1.29" in eks.cluster(version="1.29")["msg"]
    assert "open the endpoint to the whole Internet" in eks.cluster(public_access_cidrs=[])["msg"]
    assert "is in extended support" in str(eks.cluster(check=True, version="1.33")["warnings"])
    assert "could not be assumed" in eks.cluster(role_arn="arn:aws:iam::123456789012:role/none")["msg"]
    eks.client.create_cluster(name="theirs", roleArn=eks.role, resourcesVpcConfig={"subnetIds": eks.subnets})
    assert "carries no tag trainium:cluster" in eks.cluster(name="theirs")["msg"]
    assert "carries no tag trainium:cluster" in eks.cluster(name="theirs", state="absent")["msg"]


def test_a_cluster_that_fails_says_why(eks: Eks) -> None:
    eks.cloud.api.control("POST", "waiting", {"mode": "fail", "reason": "the subnets have no addresses"})
    assert "became FAILED: Other: the subnets have no addresses; remove it" in eks.cluster()["msg"]
    eks.cloud.api.control("POST", "waiting", {"mode": "succeed", "reason": ""})
    assert "the cluster could not be made" in eks.cluster()["msg"]
    gone = eks.cluster(state="absent")
    assert gone.get("changed"), gone
    assert eks.client.list_clusters()["clusters"] == []


def test_deleted_but_not_from_under_its_nodes(eks: Eks) -> None:
    eks.cluster(deletion_protection=True)
    eks.group(ami_type=None, release_version=None, instance_types=["m5.large"], count=1)
    assert "has the node groups trn" in eks.cluster(state="absent")["msg"]
    eks.group(state="absent")
    assert "protected from deletion" in eks.cluster(state="absent")["msg"]
    eks.cluster(deletion_protection=False)
    assert eks.cluster(check=True, state="absent")["changed"] and eks.client.list_clusters()["clusters"] == ["bert"]
    gone = eks.cluster(state="absent")
    assert gone.get("changed"), gone
    assert eks.client.list_clusters()["clusters"] == []
    assert not eks.cluster(state="absent")["changed"]
