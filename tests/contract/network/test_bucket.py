"""The bucket of a ParallelCluster: it is known by account, region and name, and nobody else's is touched."""

from __future__ import annotations

import hashlib

from tests.contract.conftest import REGION
from tests.contract.network.conftest import Controller


def bucket(controller: Controller, region: str) -> str:
    """The bucket of the cluster 'bert' of this account in a region."""
    account = controller.client("sts").get_caller_identity()["Account"]
    whose = f"{account}/{region}/bert"
    name = f"trainium-bert-{hashlib.sha256(whose.encode()).hexdigest()[:16]}"
    s3 = controller.client("s3", region)
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    tags = {"trainium:cluster": "bert", "trainium:role": "parallelcluster", "trainium:bucket-of": whose}
    s3.put_bucket_tagging(
        Bucket=name, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
    )
    s3.put_object(Bucket=name, Key="node/node.sh", Body=b"true")
    return name


def test_the_bucket_of_the_same_name_in_another_region_stays(controller: Controller) -> None:
    controller.variables["trainium_cluster_name"] = "bert"
    mine, other = bucket(controller, REGION), bucket(controller, "eu-west-1")
    controller.client("s3").create_bucket(Bucket="someones", CreateBucketConfiguration={"LocationConstraint": REGION})
    caller = {"__parallelcluster_caller": {"account": controller.client("sts").get_caller_identity()["Account"]}}
    foreign, deleted, again = controller.cases(
        ("parallelcluster:make_bucket", {**caller, "parallelcluster_bucket": "someones"}),
        ("parallelcluster:delete", {}),
        ("parallelcluster:delete", {}),
    )
    assert foreign.startswith("The bucket someones is there and is not that of the cluster")
    assert deleted == again == ""
    left = [item["Name"] for item in controller.client("s3").list_buckets()["Buckets"]]
    assert other in left
    assert mine not in left
    assert controller.client("s3", "eu-west-1").list_objects_v2(Bucket=other)["KeyCount"] == 1
