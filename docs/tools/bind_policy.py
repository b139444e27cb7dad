"""Print policies of docs/iam for one cluster: python docs/tools/bind_policy.py NAME POLICY...

What is bound to the tag trainium:cluster, whatever its value, is bound to that of the cluster; and what lies below the
path /trainium/ to the cluster's own path there (those of roles have the region before the cluster).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

IAM = Path(__file__).resolve().parents[1] / "iam"
TAG = re.compile(r"(aws:RequestTag|aws:ResourceTag|iam:ResourceTag|ssm:resourceTag)/trainium:cluster")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def bound(statement: dict[str, Any], name: str) -> dict[str, Any]:
    """A statement that is for one cluster."""
    conditions: dict[str, dict[str, Any]] = {}
    for operator, keys in statement.get("Condition", {}).items():
        for key, value in keys.items():
            if TAG.fullmatch(key) and (operator, value) in (("Null", "false"), ("StringLike", "*")):
                conditions.setdefault("StringEquals", {})[key] = name
            else:
                conditions.setdefault(operator, {})[key] = value
    resource = statement["Resource"]
    every = resource if isinstance(resource, list) else [resource]
    mine = [one.replace("/trainium/*/lease", f"/trainium/{name}/lease") for one in every]
    mine = [one.replace("/trainium/*", f"/trainium/*/{name}/*") for one in mine]
    return {
        **statement,
        "Resource": mine if isinstance(resource, list) else mine[0],
        **({"Condition": conditions} if conditions else {}),
    }


def main() -> int:
    name, *policies = sys.argv[1:] or [""]
    known = sorted(path.stem for path in IAM.glob("*.json"))
    if not NAME.fullmatch(name) or not policies or set(policies) - set(known):
        print(f"Give the name of a cluster and one or several of {', '.join(known)}.", file=sys.stderr)
        return 2
    for policy in policies:
        whole = json.loads((IAM / f"{policy}.json").read_text(encoding="utf-8"))
        print(json.dumps({**whole, "Statement": [bound(one, name) for one in whole["Statement"]]}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
