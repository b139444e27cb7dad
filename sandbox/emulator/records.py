"""Records of kinds that stock moto does not know: where they are kept, their tags, and the requests' filters."""

from __future__ import annotations

import fnmatch
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import utils
from moto.ec2.responses import EC2Response

from sandbox.emulator.errors import refuse

Record = dict[str, Any]

# The store of capacity reservations, which launches, groups and the reservations themselves look at.
RESERVATIONS = "capacity_reservations"
# That of the clusters of EKS, which permissions look at.
CLUSTERS = "sandbox_clusters"

# Kind of resource -> beginning of its ids, so that CreateTags accepts them.
PREFIXES = {"placement-group": "pg", "capacity-reservation": "cr"}


def store(backend: Any, name: str) -> dict[str, Record]:
    """The records of one kind; they go with the backend when moto is reset."""
    records: dict[str, Record] = backend.__dict__.setdefault(name, {})
    return records


def new_tags(response: EC2Response, kind: str) -> dict[str, str]:
    """The tags that the request gives to a resource of a kind."""
    tags: dict[str, str] = response._parse_tag_specification().get(kind, {})
    return tags


def chosen(response: EC2Response, name: str, wanted: list[str], fields: dict[str, str]) -> list[Record]:
    """The records with their tags that pass the request's filters.

    Args:
        wanted: keys of the records, all where it is empty.
        fields: filter -> field of the record.
    """
    backend = response.ec2_backend
    found = []
    for key, record in store(backend, name).items():
        tags = dict(backend.tags.get(record.get("GroupId", key), {}))
        if (not wanted or key in wanted) and _passes(response, record, tags, fields):
            found.append({**record, "Tags": [{"Key": tag, "Value": value} for tag, value in tags.items()]})
    return found


def page(response: EC2Response, name: str, items: list[Record], size: int) -> Any:
    """The part of a listing that the request's token asks for, at most ``size`` where MaxResults does not say less."""
    first = int(response._get_param("NextToken") or 0)
    last = first + min(size, int(response._get_param("MaxResults") or size))
    return ActionResult({name: items[first:last], "NextToken": str(last) if last < len(items) else None})


def _passes(response: EC2Response, record: Record, tags: dict[str, str], fields: dict[str, str]) -> bool:
    for name, patterns in (response._filters_from_querystring() or {}).items():
        if name == "tag-key":
            values = list(tags)
        elif name.startswith("tag:"):
            values = [tags[name[4:]]] if name[4:] in tags else []
        elif name in fields:
            values = [str(record[fields[name]])]
        else:
            refuse("InvalidParameterValue", f"The filter '{name}' is invalid")
        if not any(fnmatch.fnmatchcase(value, pattern) for value in values for pattern in patterns):
            return False
    return True


def install() -> None:
    utils.EC2_RESOURCE_TO_PREFIX.update(PREFIXES)
    utils.EC2_PREFIX_TO_RESOURCE.update({prefix: kind for kind, prefix in PREFIXES.items()})
