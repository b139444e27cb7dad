"""Print policies of docs/iam for one cluster: python docs/tools/bind_policy.py NAME POLICY...

What is bound to the tag trainium:cluster, whatever its value, is bound to that of the cluster; what is bound to the
tag that EKS gives to interfaces of pods, to that; what lies below the path /trainium/ to the cluster's own path there
(those of roles have the region before the cluster, those of repositories small letters only). The name example-cluster
becomes the cluster's. Launches go into security groups, subnets and so on of the cluster, and into those that carry no
such tag. The statements that change something and are not bound are named on stderr.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

Statement = dict[str, Any]
IAM = Path(__file__).resolve().parents[1] / "iam"
TAG = re.compile(
    r"(aws:RequestTag|aws:ResourceTag|iam:ResourceTag|ssm:resourceTag)/trainium:cluster"
    r"|aws:ResourceTag/cluster\.k8s\.amazonaws\.com/name"
)
# The name that stands for the cluster's where the policies cannot do without one.
EXAMPLE = "example-cluster"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
READS = re.compile(r"[a-z0-9-]+:(Describe|Get|List|Filter|Query|Scan|Simulate|BatchGet|BatchCheck)")
# What is there already and may be somebody's own without a tag, but not another cluster's.
LENT = re.compile(
    r"arn:aws:(ec2:\*:\*:(capacity-reservation|key-pair|launch-template|placement-group|security-group|subnet)"
    r"|resource-groups:\*:\*:group)/\*"
)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def folder(name: str) -> str:
    """A cluster's name in names of ECR; plan.namespace of _ecr does the same."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "cluster"


def bound(statement: Statement, name: str) -> Statement:
    """A statement that is for one cluster."""
    conditions: dict[str, dict[str, Any]] = {}
    for operator, keys in statement.get("Condition", {}).items():
        for key, value in keys.items():
            if TAG.fullmatch(key) and (operator, value) in (("Null", "false"), ("StringLike", "*")):
                conditions.setdefault("StringEquals", {})[key] = name
            else:
                mine = key.replace(EXAMPLE, name)
                conditions.setdefault(operator, {})[mine] = name if value == EXAMPLE else value
    every = listed(statement["Resource"])
    if statement["Action"] == ["ec2:RunInstances"] and all(LENT.fullmatch(one) for one in every):
        conditions.setdefault("StringEqualsIfExists", {})["aws:ResourceTag/trainium:cluster"] = name
    mine = [one.replace("/trainium/*/lease", f"/trainium/{name}/lease") for one in every]
    mine = [one.replace("repository/trainium/*", f"repository/trainium/{folder(name)}/*") for one in mine]
    mine = [one.replace("/trainium/*", f"/trainium/*/{name}/*") for one in mine]
    return {
        **statement,
        "Resource": mine if isinstance(statement["Resource"], list) else mine[0],
        **({"Condition": conditions} if conditions else {}),
    }


def is_open(statement: Statement, name: str) -> bool:
    """Whether it changes something that may be another cluster's, bound or not."""
    conditions = statement.get("Condition", {}).values()
    tags = any(name == value or key.endswith(f"/{name}") for keys in conditions for key, value in keys.items())
    paths = all(f"/{name}/" in one for one in listed(statement["Resource"]))
    return not tags and not paths and any(not READS.match(action) for action in statement["Action"])


def main() -> int:
    name, *policies = sys.argv[1:] or [""]
    known = sorted(path.stem for path in IAM.glob("*.json"))
    if not NAME.fullmatch(name) or not policies or set(policies) - set(known):
        print(f"Give the name of a cluster and one or several of {', '.join(known)}.", file=sys.stderr)
        return 2
    for policy in policies:
        whole = json.loads((IAM / f"{policy}.json").read_text(encoding="utf-8"))
        statements = [bound(one, name) for one in whole["Statement"]]
        print(json.dumps({**whole, "Statement": statements}, indent=2))
        if left := [one["Sid"] for one in statements if is_open(one, name)]:
            print(f"Not bound to {name} in {policy}.json: {', '.join(left)}; see docs/security.md.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
