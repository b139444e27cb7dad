"""Whether an SDK of AWS knows what the collection asks of it: an older botocore refuses a name in a request that it
does not know, and leaves out of an answer what its models do not have, without a word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

# Those that the collection's modules and its inventory call.
SERVICES = (
    *("cloudformation", "dynamodb", "ec2", "efs", "eks", "fsx", "iam", "logs", "resource-groups", "s3"),
    *("service-quotas", "ssm", "sts"),
)
# Run by the Python whose botocore is asked: the operations among the words that it reads, and what they take and give.
TELL = """
import json, sys
import botocore.session
from botocore import xform_name

def walk(shape, path, above):
    told.append(path)
    if shape is None or shape.name in above:
        return
    for name, member in getattr(shape, "members", {}).items():
        walk(member, f"{path}.{name}", above | {shape.name})
    for part in ("member", "value"):
        if isinstance(getattr(shape, part, None), botocore.model.Shape):
            walk(getattr(shape, part), path, above | {shape.name})

words, told = set(json.load(open(sys.argv[1]))), []
for service in sys.argv[2:]:
    model = botocore.session.get_session().get_service_model(service)
    for name in model.operation_names:
        if xform_name(name) in words:
            operation = model.operation_model(name)
            for way in ("input", "output"):
                walk(getattr(operation, way + "_shape"), f"{service} {xform_name(name)} {way}", frozenset())
print(json.dumps(sorted(set(told))))
"""


# Of answers, what the collection reads from other ones under the same name; and what a table of ours has as well.
ELSEWHERE = re.compile(
    r"Placement\.AvailabilityZoneId$|(?:NetworkInterfaces|Volumes)\.AvailabilityZoneId$|NatGateways\.RouteTableId$"
    r"|certificateAuthority\.active|AdministrativeActions\.Message$"
    # _ec2/interfaces.py: where EC2 does not tell, the number of EFA interfaces does.
    r"|NetworkCards\.InterfaceTypes$"
)


def words(sources: Iterable[Path]) -> frozenset[str]:
    """What may be a name of an operation or of a member: attributes, keywords and texts of the code."""
    found: set[str] = set()
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                found.update(re.findall(r"\w+", node.value))
    return frozenset(found)


def lacking(used: frozenset[str], newer: Iterable[str], older: Iterable[str]) -> list[str]:
    """What is used, and is in the models of the newer SDK only."""
    names = {path for path in set(newer) - set(older) if set(re.split(r"[ .]", path)[3:]) <= used}
    return sorted(path for path in names if not ELSEWHERE.search(path))
