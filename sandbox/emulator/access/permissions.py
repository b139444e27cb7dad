"""What a request needs: actions of IAM, the resources that each is about, and what conditions can ask.

Sources: the Service Authorization Reference of each service (actions, resource types, condition keys), "Required
permissions for Amazon S3 API operations" in its user guide, "Grant permission to tag resources during creation" of EC2,
FSx and Resource Groups, and "Tagging IAM resources": what is made with tags takes the action for tags as well. The
names of REST calls are those of botocore's models.
"""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from typing import Any

import botocore.session
from moto.ec2.models import ec2_backends
from moto.fsx.models import fsx_backends
from moto.resourcegroups.models import resourcegroups_backends

from sandbox.emulator.access.statements import Need

ACCOUNT = "123456789012"
# Service in a signature -> prefix of its actions, where they differ; and its name in botocore.
_PREFIXES = {"monitoring": "cloudwatch", "email": "ses"}
_MODELS = {"elasticfilesystem": "efs"}
# Operation of S3 -> action, where they differ.
_S3 = {
    "CopyObject": "PutObject",
    "DeleteBucketTagging": "PutBucketTagging",
    "DeleteObjects": "DeleteObject",
    "GetBucketAccelerateConfiguration": "GetAccelerateConfiguration",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketInventoryConfiguration": "GetInventoryConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetObjectLockConfiguration": "GetBucketObjectLockConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
}
_VERSIONED = ("GetObject", "DeleteObject")
# Beginning of an id of EC2 -> type of the resource.
_KINDS = {
    "cr": "capacity-reservation",
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "key": "key-pair",
    "nat": "natgateway",
    "pg": "placement-group",
    "rtb": "route-table",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
_EC2_ID = re.compile(r"^([a-z]+)-[0-9a-f]{8,17}$")
# Tags in the flat parameters of query protocols: EC2's of what is made, its CreateTags', and CloudFormation's.
_TAG = re.compile(r"^(TagSpecifications?\.\d+\.Tag|Tag|Tags\.member)\.\d+\.Key$")
_KIND = re.compile(r"^TagSpecifications?\.\d+\.ResourceType$")
# What an action is about that knows no resources: a statement must have "*" for it.
NO_RESOURCE: list[tuple[str, dict[str, str]]] = [("*", {})]
_WITHOUT = (
    *(("fsx", "DescribeFileSystems"), ("resource-groups", "ListGroups"), ("resource-groups", "CreateGroup")),
    *(("servicequotas", name) for name in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas")),
)
_TAGGING = {"fsx": "TagResource", "resource-groups": "Tag", "ssm": "AddTagsToResource"}


def signer(environ: dict[str, Any]) -> tuple[str, str, str]:
    """(access key, region, service) of a signed request, or of a signed address; '' for none."""
    text = environ.get("HTTP_AUTHORIZATION", "") + "&" + urllib.parse.unquote(environ.get("QUERY_STRING", ""))
    match = re.search(r"Credential=([^/&]+)/\d+/([^/]+)/([^/]+)/", text)
    return (match[1], match[2], match[3]) if match else ("", "", "")


def needs(environ: dict[str, Any], entry: dict[str, Any], body: bytes) -> list[Need]:
    """What whoever signed a request must be allowed; ``entry`` is its record in the log of calls."""
    (_key, region, service), given = signer(environ), dict(entry["parameters"])
    if " " in entry["action"]:
        # As it was sent: an ARN in it has slashes that part nothing.
        path = str(environ.get("REQUEST_URI") or environ["PATH_INFO"]).partition("?")[0]
        name = operation(service, environ["REQUEST_METHOD"], path, given)
        given.update(_json(body))
    else:
        name = entry["action"]
    tags = _request_tags(given)
    context = {f"aws:RequestTag/{key}": [value] for key, value in tags.items()} | {"aws:TagKeys": list(tags)}
    resources = _resources(service, region, name, given, environ["PATH_INFO"])
    wanted = _s3(name, given, environ) if service == "s3" else [f"{_PREFIXES.get(service, service)}:{name}"]
    found = [{"action": action, "resources": resources, "context": context} for action in wanted]
    if tags and service == "ec2" and name != "CreateTags":
        more = {**context, "ec2:CreateAction": [name]}
        kinds = sorted({str(value) for key, value in given.items() if _KIND.match(key)})
        made: list[tuple[str, dict[str, str]]] = [(f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/new", {}) for kind in kinds]
        found.append({"action": "ec2:CreateTags", "resources": made, "context": more})
    elif tags and service in _TAGGING and name != _TAGGING[service]:
        found.append({"action": f"{service}:{_TAGGING[service]}", "resources": resources, "context": context})
    if tags and service == "iam":
        found.append({"action": f"iam:{name.replace('Create', 'Tag')}", "resources": [], "context": context})
    # Whoever launches with an instance profile gives its role away ("Grant a user permissions to pass a role").
    if service == "ec2" and any(one.startswith("IamInstanceProfile.") for one in given):
        found.append({"action": "iam:PassRole", "resources": [], "context": {}})
    if (service, name) == ("fsx", "CreateFileSystem"):
        found += _fsx(given)
    return found


def _fsx(given: dict[str, Any]) -> list[Need]:
    """What FSx does in the name of who makes a file system: roles ("Using service-linked roles for Amazon FSx", "Adding
    permissions to use data repositories in Amazon S3") and looks at the network (policy AmazonFSxFullAccess)."""
    actions, services = ["CreateServiceLinkedRole"], ["fsx.amazonaws.com"]
    wanted = [(actions[0], services[0])]
    if (given.get("LustreConfiguration") or {}).get("ImportPath"):
        linked = f"s3.data-source.lustre.{services[0]}"
        wanted += [(action, linked) for action in (*actions, "AttachRolePolicy", "PutRolePolicy")]
    found: list[Need] = []
    for action, service in wanted:
        role = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/AWSServiceRole"
        found.append(
            {"action": f"iam:{action}", "resources": [(role, {})], "context": {"iam:AWSServiceName": [service]}}
        )
    via = {"aws:CalledVia": services}
    looks = ("DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcs", "GetSecurityGroupsForVpc")
    return [*found, *({"action": f"ec2:{look}", "resources": NO_RESOURCE, "context": via} for look in looks)]


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _request_tags(given: dict[str, Any]) -> dict[str, str]:
    """The tags that a request gives."""
    tags = given.get("Tags")
    if isinstance(tags, dict):
        return {str(key): str(value) for key, value in tags.items()}
    if isinstance(tags, list):
        return {str(tag["Key"]): str(tag.get("Value", "")) for tag in tags if isinstance(tag, dict) and "Key" in tag}
    flat = [name.removesuffix(".Key") for name in given if _TAG.match(name)]
    return {str(given[f"{name}.Key"]): str(given.get(f"{name}.Value", "")) for name in flat}


# --- names of REST calls ---


@functools.cache
def _operations(service: str) -> list[tuple[str, str, re.Pattern[str], frozenset[str]]]:
    """(name, method, path, words of the query) of a service's operations."""
    model, found = botocore.session.get_session().get_service_model(_MODELS.get(service, service)), []
    for name in sorted(model.operation_names):
        http = model.operation_model(name).http
        path, _mark, query = str(http["requestUri"]).partition("?")
        parts = re.split(r"(\{[^}]+\})", path.rstrip("/") or "/")
        pattern = "".join(
            re.escape(part) if not part.startswith("{") else ".+" if part.endswith("+}") else "[^/]+" for part in parts
        )
        words = frozenset(word for word in query.split("&") if word and not word.startswith("x-id="))
        found.append((name, str(http["method"]), re.compile(pattern), words))
    return found


def operation(service: str, method: str, path: str, query: dict[str, Any]) -> str:
    """The name of a REST call; what it is itself where nobody knows it."""
    asked = set(query) | {f"{name}={value}" for name, value in query.items()}
    found = [
        (len(words), -len(pattern.pattern.replace("[^/]+", "*").replace(".+", "*")), name)
        for name, verb, pattern, words in _operations(service)
        if verb == method and words <= asked and pattern.fullmatch(path.rstrip("/") or "/")
    ]
    # More words of the query first, then more of the path by its letters.
    return min(found, key=lambda one: (-one[0], one[1], one[2]))[2] if found else f"{method} {path}"


def _s3(name: str, given: dict[str, Any], environ: dict[str, Any]) -> list[str]:
    name = _S3.get(name, "PutObject" if "Multipart" in name or name.startswith("UploadPart") else name)
    wanted = [f"s3:{name}Version" if name in _VERSIONED and given.get("versionId") else f"s3:{name}"]
    if name == "CreateBucket" and environ.get("HTTP_X_AMZ_OBJECT_OWNERSHIP"):
        wanted.append("s3:PutBucketOwnershipControls")
    return wanted


# --- resources ---


def _resources(
    service: str, region: str, name: str, given: dict[str, Any], path: str
) -> list[tuple[str, dict[str, str]]]:
    """ARN and tags of what a request is about."""
    where = f"arn:aws:{service}:{region}:{ACCOUNT}"
    if service == "s3":
        return [(f"arn:aws:s3:::{urllib.parse.unquote(path).strip('/')}", {})] if path.strip("/") else NO_RESOURCE
    if service == "ssm" and isinstance(given.get("Name"), str):
        parameter = given["Name"]
        owner = "" if parameter.startswith("/aws/service/") else ACCOUNT
        return [(f"arn:aws:ssm:{region}:{owner}:parameter/{parameter.lstrip('/')}", {})]
    if (service, name) == ("ssm", "StartSession"):
        # As with the condition ssm:SessionDocumentAccessCheck: the usual document, a shell, is asked for as well.
        document = given.get("DocumentName") or "SSM-SessionManagerRunShell"
        owner = "" if document.startswith("AWS-") else ACCOUNT
        documents: list[tuple[str, dict[str, str]]] = [(f"arn:aws:ssm:{region}:{owner}:document/{document}", {})]
        return _of_ec2(f"arn:aws:ec2:{region}:{ACCOUNT}", region, {"Target": given["Target"]}) + documents
    if service == "cloudformation" and given.get("StackName"):
        stack = given["StackName"]
        return [(stack if stack.startswith("arn:") else f"{where}:stack/{stack}/sandbox", {})]
    if (service, name) in _WITHOUT or (service == "ec2" and name.startswith("Describe")):
        return NO_RESOURCE
    if service == "ec2":
        return _of_ec2(where, region, given)
    if service == "fsx" and name != "CreateFileSystem":
        return _of_fsx(where, region, given)
    if service == "resource-groups" and (group := given.get("Group") or given.get("GroupName") or _arn_in(path)):
        known = resourcegroups_backends[ACCOUNT][region].groups
        tags = dict(known[group].tags or {}) if group in known else {}
        return [(group if group.startswith("arn:") else f"{where}:group/{group}", tags)]
    return []


def _arn_in(path: str) -> str:
    match = re.match(r"^/resources/(arn:.+)/tags$", urllib.parse.unquote(path))
    return match[1] if match else ""


def _of_ec2(where: str, region: str, given: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    tags, found = ec2_backends[ACCOUNT][region].tags, []
    for value in given.values():
        match = _EC2_ID.match(str(value))
        if match and match[1] in _KINDS:
            found.append((f"{where}:{_KINDS[match[1]]}/{value}", dict(tags.get(value, {}))))
    return found


def _of_fsx(where: str, region: str, given: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    identity = given.get("FileSystemId") or str(given.get("ResourceARN", "")).rpartition("/")[2]
    arn = f"{where}:file-system/{identity}"
    return [(arn, dict(fsx_backends[ACCOUNT][region].tagger.get_tag_dict_for_resource(arn)))]
