"""What a request needs: actions of IAM, the resources that each is about, and what conditions can ask.

Sources: the Service Authorization Reference of each service (actions, resource types, condition keys), "Required
permissions for Amazon S3 API operations" in its user guide, "Grant permission to tag resources during creation" of EC2,
FSx and Resource Groups, and "Tagging IAM resources": what is made with tags takes the action for tags as well. The
names of REST calls are those of botocore's models. What EKS asks of its caller: Step Functions' "IAM policies for
Amazon EKS" (roles, and for a node group a look at its role), "Using service-linked roles for Amazon EKS", and for
launch templates "Launch template support" of EC2 Auto Scaling, which node groups are.
"""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from typing import Any

import botocore.session
from moto.cloudformation.models import cloudformation_backends
from moto.ecr.models import ecr_backends
from moto.eks.models import eks_backends
from moto.fsx.models import fsx_backends
from moto.iam.models import iam_backends
from moto.logs.models import logs_backends
from moto.resourcegroups.models import resourcegroups_backends

from sandbox.emulator.access import ec2, efs, elb
from sandbox.emulator.access.roles import linked
from sandbox.emulator.access.statements import Context, Need
from sandbox.emulator.records import CLUSTERS, store

ACCOUNT = ec2.ACCOUNT
# Service in a signature -> prefix of its actions, where they differ; and its name in botocore.
_PREFIXES = {"monitoring": "cloudwatch", "email": "ses"}
_MODELS = {"elasticfilesystem": "efs"}
# Operation of S3 -> action, where they differ.
S3 = {
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
# Tags in the flat parameters of query protocols: EC2's of what is made, its CreateTags', and CloudFormation's.
_TAG = re.compile(r"^(TagSpecifications?\.\d+\.Tag|Tag|Tags\.member)\.\d+\.Key$")
_KIND = re.compile(r"^TagSpecifications?\.\d+\.ResourceType$")
# How EBS uses a key of the caller's own, in the caller's name ("Requirements for Amazon EBS encryption").
_WITH_KEY = ("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")
# What an action is about that knows no resources: a statement must have "*" for it.
NO_RESOURCE: list[tuple[str, dict[str, str]]] = [("*", {})]
_WITHOUT = (
    *(("fsx", "DescribeFileSystems"), ("resource-groups", "ListGroups"), ("resource-groups", "CreateGroup")),
    *(("servicequotas", name) for name in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas")),
    *(("eks", name) for name in ("CreateCluster", "ListClusters", "DescribeClusterVersions")),
    *(("iam", name) for name in ("ListRoles", "ListInstanceProfiles")),
    *(("logs", "DescribeLogGroups"), ("pricing", "GetProducts"), ("ec2", "GetSpotPlacementScores")),
)
_TAGGING = {
    **dict.fromkeys(("ecr", "eks", "elasticfilesystem", "fsx", "logs"), "TagResource"),
    "resource-groups": "Tag",
    "ssm": "AddTagsToResource",
}
# What EKS makes with tags -> type of the resource.
_EKS_MADE = {"CreateCluster": "cluster", "CreateNodegroup": "nodegroup", "CreateAccessEntry": "access-entry"}


def signer(environ: dict[str, Any]) -> tuple[str, str, str]:
    """(access key, region, service) of a signed request, or of a signed address; '' for none."""
    text = environ.get("HTTP_AUTHORIZATION", "") + "&" + urllib.parse.unquote(environ.get("QUERY_STRING", ""))
    match = re.search(r"Credential=([^/&]+)/\d+/([^/]+)/([^/]+)/", text)
    return (match[1], match[2], match[3]) if match else ("", "", "")


def needs(environ: dict[str, Any], entry: dict[str, Any], body: bytes) -> list[Need]:
    """What whoever signed a request must be allowed; ``entry`` is its record in the log of calls."""
    (_key, region, service), given = signer(environ), dict(entry["parameters"])
    # As it was sent: an ARN in it has slashes that part nothing.
    path = str(environ.get("REQUEST_URI") or environ["PATH_INFO"]).partition("?")[0]
    if " " in entry["action"]:
        name = operation(service, environ["REQUEST_METHOD"], path, given)
        given.update(_json(body))
    else:
        name = entry["action"]
    tags = _request_tags(given)
    context = ec2.request_tags(tags)
    if (service, name) == ("elasticfilesystem", "CreateFileSystem"):
        context["elasticfilesystem:Encrypted"] = [str(bool(given.get("Encrypted"))).lower()]
    if service == "iam" and given.get("PolicyArn"):
        context["iam:PolicyARN"] = [given["PolicyArn"]]
    if service == "eks" and given.get("policyArn"):
        context["eks:policyArn"] = [given["policyArn"]]
    resources = _resources(service, region, name, given, path)
    wanted = _s3(name, given, environ) if service == "s3" else [f"{_PREFIXES.get(service, service)}:{name}"]
    # What a call of EC2 makes has the tags of its kind, and what it uses none of them.
    whole = _by_template(region, given) if service == "ec2" and name not in ("CreateTags", "DeleteTags") else context
    found = [{"action": action, "resources": resources, "context": whole} for action in wanted]
    if tags and service == "ec2" and name != "CreateTags":
        more = {**context, "ec2:CreateAction": [name]}
        kinds = sorted({str(value) for key, value in given.items() if _KIND.match(key)})
        made: list[tuple[Any, ...]] = [(f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/new", {}) for kind in kinds]
        found.append({"action": "ec2:CreateTags", "resources": made, "context": more})
    elif tags and service in _TAGGING and name != _TAGGING[service]:
        if service == "eks":
            owner = given.get("name") or path.split("/")[2]
            resources = [(f"arn:aws:eks:{region}:{ACCOUNT}:{_EKS_MADE[name]}/{owner}/new", {})]
        if service == "elasticfilesystem":
            resources, context = efs.made(region), {**context, "elasticfilesystem:CreateAction": [name]}
        found.append({"action": f"{service}:{_TAGGING[service]}", "resources": resources, "context": context})
    if tags and service == "iam":
        found.append({"action": f"iam:{name.replace('Create', 'Tag')}", "resources": resources, "context": context})
    if service == "ec2" and name == "RunInstances":
        profile = given.get("IamInstanceProfile.Name") or given.get("IamInstanceProfile.Arn", "").rpartition("/")[2]
        found += _passing(_roles_of(profile), "ec2.amazonaws.com") if profile else []
        found += [linked("spot.amazonaws.com")] if given.get("InstanceMarketOptions.MarketType") == "spot" else []
        found += _encrypting(region, given)
    if (service, name) == ("iam", "AddRoleToInstanceProfile"):
        found += _passing([given["RoleName"]], "ec2.amazonaws.com")
    if (service, name) == ("fsx", "CreateFileSystem"):
        found += _fsx(region, given)
    further = {"ecr": _ecr, "eks": _eks, "elasticfilesystem": efs.more}.get(service)
    return [*found, *(further(region, name, given) if further else ())]


def _passing(names: list[str], service: str) -> list[Need]:
    """Who lets a service act with a role gives it away ("Grant a user permissions to pass a role")."""
    context = {"iam:PassedToService": [service]}
    return [{"action": "iam:PassRole", "resources": _of_iam({"RoleName": name}), "context": context} for name in names]


def _roles_of(profile: str) -> list[str]:
    known = iam_backends[ACCOUNT]["aws"].instance_profiles.values()
    return [role.name for one in known if one.name == profile for role in one.roles]


def _encrypting(region: str, given: dict[str, Any]) -> list[Need]:
    """What whoever launches must be allowed to do with the keys that volumes are to be encrypted with."""
    found: list[Need] = []
    for key in sorted({str(value) for name, value in given.items() if name.endswith(".Ebs.KmsKeyId")}):
        arn = key if key.startswith("arn:") else f"arn:aws:kms:{region}:{ACCOUNT}:key/{key}"
        via = {"kms:ViaService": [f"ec2.{region}.amazonaws.com"]}
        grant = {**via, "kms:GrantIsForAWSResource": ["true"]}
        for action in _WITH_KEY:
            context = grant if action == "CreateGrant" else via
            found.append({"action": f"kms:{action}", "resources": [(arn, {})], "context": context})
    return found


def _by_template(region: str, given: dict[str, Any]) -> Context:
    """What a launch by a template has in its context."""
    if identity := given.get("LaunchTemplate.LaunchTemplateId"):
        return {"ec2:LaunchTemplate": [f"arn:aws:ec2:{region}:{ACCOUNT}:launch-template/{identity}"]}
    return {}


def _eks(region: str, name: str, given: dict[str, Any]) -> list[Need]:
    """What EKS does in the name of who makes a cluster or a node group."""
    if name not in ("CreateCluster", "CreateNodegroup"):
        return []
    role = str(given.get("roleArn") or given.get("nodeRole")).rpartition("/")[2]
    found = _passing([role], "eks.amazonaws.com")
    if name == "CreateCluster":
        return [*found, linked("eks.amazonaws.com")]
    looks = [f"iam:{look}" for look in ("GetRole", "ListAttachedRolePolicies")]
    found += [{"action": look, "resources": _of_iam({"RoleName": role}), "context": {}} for look in looks]
    found += [
        {"action": "ec2:DescribeSubnets", "resources": NO_RESOURCE, "context": {}},
        linked("eks-nodegroup.amazonaws.com"),
    ]
    if template := given.get("launchTemplate"):
        identity = template.get("id") or ec2.template_called(region, str(template.get("name", "")))
        wanted = (str(identity), str(template.get("version", "$Default")))
        launched = ec2.by_template(region, *wanted, given.get("subnets") or [])
        there = _by_template(region, {"LaunchTemplate.LaunchTemplateId": wanted[0] or "new"})
        found.append({"action": "ec2:RunInstances", "resources": launched, "context": there})
        tagged = {"ec2:CreateAction": ["RunInstances"]}
        made = [one for one in launched if one[2]]
        found.append({"action": "ec2:CreateTags", "resources": made, "context": tagged})
    return found


def _fsx(region: str, given: dict[str, Any]) -> list[Need]:
    """What FSx does in the name of who makes a file system: roles ("Using service-linked roles for Amazon FSx", "Adding
    permissions to use data repositories in Amazon S3"), looks at the network (policy AmazonFSxFullAccess), and uses a
    key of the caller's ("Encrypting data at rest": what its list calls required)."""
    services = ["fsx.amazonaws.com"]
    found = [linked(services[0])]
    if (given.get("LustreConfiguration") or {}).get("ImportPath"):
        of_s3 = linked(f"s3.data-source.lustre.{services[0]}")
        found += [{**of_s3, "action": f"iam:{action}"} for action in ("AttachRolePolicy", "PutRolePolicy")] + [of_s3]
    via = {"aws:CalledVia": services}
    looks = ("DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcs", "GetSecurityGroupsForVpc")
    actions = ("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext")
    found += _with_key(region, "fsx", given.get("KmsKeyId") or "", actions)
    return [*found, *({"action": f"ec2:{look}", "resources": NO_RESOURCE, "context": via} for look in looks)]


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _request_tags(given: dict[str, Any]) -> dict[str, str]:
    """The tags that a request gives."""
    tags = given.get("Tags") or given.get("tags")
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
    name = S3.get(name, "PutObject" if "Multipart" in name or name.startswith("UploadPart") else name)
    wanted = [f"s3:{name}Version" if name in _VERSIONED and given.get("versionId") else f"s3:{name}"]
    if name == "CreateBucket" and environ.get("HTTP_X_AMZ_OBJECT_OWNERSHIP"):
        wanted.append("s3:PutBucketOwnershipControls")
    return wanted


# --- resources ---


def _resources(service: str, region: str, name: str, given: dict[str, Any], path: str) -> list[Any]:
    """ARN and tags of what a request is about, and what else of the context is one resource's alone."""
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
        return [*ec2.resources(region, "StartSession", {"Target": given["Target"]}), *documents]
    if service == "cloudformation" and given.get("StackName"):
        return [_of_stack(where, region, given["StackName"])]
    if (service, name) in _WITHOUT or (service == "ec2" and name.startswith("Describe")):
        return NO_RESOURCE
    if service == "ec2":
        # One that names nothing is allowed by a statement for everything alone.
        return ec2.resources(region, name, given) or NO_RESOURCE
    if service == "fsx" and name != "CreateFileSystem":
        return _of_fsx(where, region, given)
    if service == "resource-groups" and (group := given.get("Group") or given.get("GroupName") or _arn_in(path)):
        known = resourcegroups_backends[ACCOUNT][region].groups
        tags = dict(known[group].tags or {}) if group in known else {}
        return [(group if group.startswith("arn:") else f"{where}:group/{group}", tags)]
    if service == "elasticfilesystem":
        return efs.made(region) if name == "CreateFileSystem" else efs.resources(region, path, given) or NO_RESOURCE
    if service == "elasticloadbalancing":
        return elb.resources(region, name, given)
    if service == "iam":
        return _of_iam(given, new=name.startswith("Create"))
    if service == "ecr":
        return _of_ecr(where, region, given)
    if service == "eks":
        return _of_eks(region, [urllib.parse.unquote(part) for part in path.strip("/").split("/")])
    group = given.get("logGroupName") or str(given.get("resourceArn", "")).partition(":log-group:")[2]
    if service == "logs" and group:
        arn = f"{where}:log-group:{group}"
        return [(arn, dict(logs_backends[ACCOUNT][region].tagger.get_tag_dict_for_resource(arn)))]
    return []


def _of_stack(where: str, region: str, name: str) -> tuple[str, dict[str, str]]:
    known = cloudformation_backends[ACCOUNT][region].stacks.values()
    there = next((stack for stack in known if name in (stack.stack_id, stack.name)), None)
    arn = name if name.startswith("arn:") else f"{where}:stack/{name}/sandbox"
    return (there.stack_id, dict(there.tags)) if there else (arn, {})


def _of_iam(given: dict[str, Any], new: bool = False) -> list[tuple[str, dict[str, str]]]:
    """A role or an instance profile, which is the one resource of what is done with both."""
    backend = iam_backends[ACCOUNT]["aws"]
    for kind, key, known in (
        ("instance-profile", "InstanceProfileName", backend.instance_profiles),
        ("role", "RoleName", backend.roles),
    ):
        if name := given.get(key):
            there = next((one for one in known.values() if one.name == name), None)
            if new or there is None:
                return [(f"arn:aws:iam::{ACCOUNT}:{kind}{given.get('Path') or '/'}{name}", {})]
            return [(there.arn, {tag["Key"]: tag["Value"] for tag in there.tags})]
    return []


def _ecr(region: str, name: str, given: dict[str, Any]) -> list[Need]:
    """ECR asks KMS in the caller's name when a repository with a key is made or deleted ("Encryption at rest")."""
    key = ""
    actions: tuple[str, ...] = ("DescribeKey", "CreateGrant")
    if name == "CreateRepository":
        key = (given.get("encryptionConfiguration") or {}).get("kmsKey") or ""
    if name == "DeleteRepository":
        there = ecr_backends[ACCOUNT][region].repositories.get(given.get("repositoryName", ""))
        key, actions = (there.encryption_configuration or {}).get("kmsKey") or "" if there else "", ("RetireGrant",)
    return _with_key(region, "ecr", key, actions)


def _with_key(region: str, service: str, key: str, actions: tuple[str, ...]) -> list[Need]:
    """What a service does with a key in the caller's name; nothing without one."""
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{region}:{ACCOUNT}:key/{key}"
    via = {"kms:ViaService": [f"{service}.{region}.amazonaws.com"]}
    return [{"action": f"kms:{one}", "resources": [(arn, {})], "context": via} for one in actions if key]


def _of_ecr(where: str, region: str, given: dict[str, Any]) -> list[Any]:
    """The repository that a call names; of all of them none is asked for by its tags."""
    asked = given.get("repositoryName") or str(given.get("resourceArn", "")).partition(":repository/")[2]
    asked = asked or next(iter(given.get("repositoryNames") or ()), "")
    if not asked:
        return NO_RESOURCE
    arn = f"{where}:repository/{asked}"
    return [(arn, dict(ecr_backends[ACCOUNT][region].tagger.get_tag_dict_for_resource(arn)))]


def _of_eks(region: str, path: list[str]) -> list[tuple[str, dict[str, str]]]:
    """What the path of a call names: the innermost of cluster, node group and access entry; of tags any of them."""
    found: list[tuple[str, str, str, dict[str, str]]] = []
    known: dict[str, Any] = dict(store(eks_backends[ACCOUNT][region], CLUSTERS))
    for cluster in known.values():
        for shown, keys in (
            (cluster.shown, ["arn"]),
            *((group.shown, ["nodegroupArn", "nodegroupName"]) for group in cluster.groups.values()),
            *((entry, ["accessEntryArn", "principalArn"]) for entry in cluster.entries.values()),
        ):
            found.append((cluster.name, shown[keys[-1]], shown[keys[0]], dict(shown["tags"])))
    if path[0] == "tags":
        return [(arn, tags) for _cluster, _name, arn, tags in found if arn == path[1]]
    if path[0] != "clusters" or len(path) < 2:
        return []
    inner = path[3] if len(path) > 3 and path[2] in ("node-groups", "access-entries") else ""
    wanted = inner or f"arn:aws:eks:{region}:{ACCOUNT}:cluster/{path[1]}"
    kind = {"": "cluster", "node-groups": "nodegroup", "access-entries": "access-entry"}[path[2] if inner else ""]
    there = [(arn, tags) for cluster, name, arn, tags in found if cluster == path[1] and name == wanted]
    return there or [(f"arn:aws:eks:{region}:{ACCOUNT}:{kind}/{'/'.join(path[1::2] if inner else path[1:2])}", {})]


def _arn_in(path: str) -> str:
    match = re.match(r"^/resources/(arn:.+)/tags$", urllib.parse.unquote(path))
    return match[1] if match else ""


def _of_fsx(where: str, region: str, given: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    identity = given.get("FileSystemId") or str(given.get("ResourceARN", "")).rpartition("/")[2]
    arn = f"{where}:file-system/{identity}"
    return [(arn, dict(fsx_backends[ACCOUNT][region].tagger.get_tag_dict_for_resource(arn)))]
