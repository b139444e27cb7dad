# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A repository of Amazon ECR as it is wanted, and the tag of an image, which follows from its content. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import own_tags, tag_list

# CreateRepository's repositoryName; 2 to 256 characters.
_NAME = re.compile(r"(?=.{2,256}$)[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_DIGITS = 16
# A push of the same tag is refused, so that a tag is always the same content.
MUTABILITY = "IMMUTABLE"
# Of our tags, which the rule of how many images stay is for.
PREFIX = "trainium-"
_READS = re.compile(r"ecr:(Get|Describe|List|BatchGet|BatchCheck)[A-Za-z*]*")

Item = dict[str, Any]
Params = Mapping[str, Any]


def check(params: Params) -> None:
    """Refuse what ECR or a builder would not take. Raises TrainiumError."""
    if not _NAME.fullmatch(params["name"]):
        raise TrainiumError(
            f"name is {params['name']!r}; use small letters, digits and single hyphens, underscores, dots and slashes"
        )
    if not params["name"].startswith(folder := f"{namespace(params['cluster_name'])}/"):
        raise TrainiumError(
            f"name is {params['name']!r}; let it begin with {folder}, by which policies and teardown know the "
            f"repositories of the cluster {params['cluster_name']}"
        )
    names = [one["dest"] for one in params.get("files") or ()]
    for name in names:
        if not _FILE.fullmatch(name):
            raise TrainiumError(f"files has the dest {name!r}; give a name of letters, digits, dots, _ and -")
    if len(set(names)) < len(names):
        raise TrainiumError("files has two of one dest; give each another one")


def tag_of(params: Params, contents: Sequence[tuple[str, str]]) -> str:
    """The tag of an image: a digest of the Dockerfile and of what it copies, ``contents`` being (name, digest)."""
    told = [params["dockerfile"], sorted(contents), params["platform"], list(params.get("build_options") or ())]
    digest = PREFIX + hashlib.sha256(json.dumps(told).encode()).hexdigest()[:_DIGITS]
    return f"{digest}-{params['tag_suffix']}" if params.get("tag_suffix") else digest


def creation(params: Params) -> Item:
    """The request of CreateRepository."""
    key = params.get("kms_key_id")
    return {
        "repositoryName": params["name"],
        "imageTagMutability": MUTABILITY,
        "imageScanningConfiguration": {"scanOnPush": params["scan_on_push"]},
        "encryptionConfiguration": {"encryptionType": "KMS", "kmsKey": key} if key else {"encryptionType": "AES256"},
        "tags": tag_list(own_tags(params)),
    }


def new_tags(tags: Mapping[str, str], params: Params) -> dict[str, str]:
    """The tags that a repository is to get; none is removed."""
    return {key: value for key, value in own_tags(params).items() if tags.get(key) != value}


def check_repository(found: Mapping[str, Any], policy: Mapping[str, Any], params: Params) -> None:
    """Refuse a repository in which a tag may become another image, or that has another key, which ECR cannot change.

    What runs from it has the secrets of trainings. Raises TrainiumError.
    """
    _check_key(found, params)
    name = params["name"]
    if found.get("imageTagMutability") != MUTABILITY:
        raise TrainiumError(
            f"the repository {name} lets tags be overwritten; look who did so, then make them immutable with aws ecr "
            f"put-image-tag-mutability --repository-name {name} --image-tag-mutability {MUTABILITY}"
        )
    if others := strangers(policy, str(found.get("registryId") or "")):
        raise TrainiumError(
            f"the policy of the repository {name} lets {others[0]} push to it or change it; take that out of the "
            "policy, or take another name"
        )


def strangers(policy: Mapping[str, Any], account: str) -> list[str]:
    """Who outside of the account may do more in a repository than read, by its policy."""
    found = []
    for statement in _listed(policy.get("Statement")):
        writes = [one for one in _listed(statement.get("Action")) if not _READS.fullmatch(str(one))]
        if statement.get("Effect") != "Allow" or not (writes or "NotAction" in statement):
            continue
        principal = statement.get("Principal") or statement.get("NotPrincipal") or "*"
        whoever = list(principal.values()) if isinstance(principal, dict) else [principal]
        names = [str(name) for some in whoever for name in _listed(some)]
        own = re.compile(rf"{account}|arn:[a-z-]+:(iam|sts)::{account}:.*")
        found += [name for name in names if "NotPrincipal" in statement or not own.fullmatch(name)]
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _check_key(found: Mapping[str, Any], params: Params) -> None:
    there = (found.get("encryptionConfiguration") or {}).get("kmsKey") or ""
    key = params.get("kms_key_id") or ""
    # ECR shows the ARN of a key that was given by its id; what an alias stands for cannot be seen here.
    if key and "alias/" not in key and there != key and not there.endswith(f"/{key}"):
        raise TrainiumError(
            f"the repository {params['name']} is encrypted with {there or 'a key of ECR'}, not with {key}, which ECR "
            "cannot change; take another name, or leave kms_key_id out"
        )


def lifecycle(keep: int) -> Item:
    """The policy that leaves the newest images of those that have our tags; {} for none."""
    if not keep:
        return {}
    rule = {
        "rulePriority": 1,
        "description": f"The newest {keep} images of trainium.cluster stay",
        "selection": {
            "tagStatus": "tagged",
            "tagPrefixList": [PREFIX],
            "countType": "imageCountMoreThan",
            "countNumber": keep,
        },
        "action": {"type": "expire"},
    }
    return {"rules": [rule]}


def is_own_lifecycle(policy: Mapping[str, Any]) -> bool:
    """Whether a policy is one of ours, or none, and may be replaced."""
    rules = policy.get("rules") or []
    return not rules or [one.get("selection", {}).get("tagPrefixList") for one in rules] == [[PREFIX]]


def belonging(repositories: Sequence[Mapping[str, Any]], cluster: str) -> list[Item]:
    """Those that may be a cluster's by their name, so that nobody's tags are asked for in vain."""
    prefix = f"{namespace(cluster)}/"
    return [dict(one) for one in repositories if str(one["repositoryName"]).startswith(prefix)]


def namespace(cluster: str) -> str:
    """What names of a cluster's repositories begin with; ECR has small letters only, and no sign at an end.

    Policies are bound to the folder, since ECR cannot tell a tag that is given at the creation from one given later.
    """
    return "trainium/" + (re.sub(r"[^a-z0-9]+", "-", cluster.lower()).strip("-") or "cluster")
