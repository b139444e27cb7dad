"""FSx for Lustre: file systems that take time to come, to change and to go; stock moto's are there and gone at once.

A file system has a name to mount it by, a network interface in its subnet, and is made once for a token. What FSx
refuses is refused. Other kinds of file systems stay as stock moto has them.
"""

from __future__ import annotations

import json
import time
from typing import Any, NoReturn

from moto.core.exceptions import JsonRESTError
from moto.ec2.models import ec2_backends
from moto.fsx.models import FileSystem, FSxBackend
from moto.fsx.responses import FSxResponse
from moto.moto_api._internal import mock_random

from sandbox.emulator.records import Record, store

THROUGHPUT = {
    ("SCRATCH_1", "SSD"): (None,),
    ("SCRATCH_2", "SSD"): (None,),
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
LINKED = ("ImportPath", "ExportPath", "AutoImportPolicy")
UPDATES = (
    "AutoImportPolicy",
    "AutomaticBackupRetentionDays",
    "DailyAutomaticBackupStartTime",
    "DataCompressionType",
    "PerUnitStorageThroughput",
    "WeeklyMaintenanceStartTime",
)
PAGE = 100
LNET = 988
# LustreGuide, "Creating an FSx for Lustre file system fails".
_NO_LNET = (
    "The file system cannot be created because the default security group in the subnet provided or the provided "
    f"security groups do not permit Lustre LNET network traffic on port {LNET}"
)

_stock_init = FileSystem.__init__
_stock_to_dict = FileSystem.to_dict
_stock_create = FSxBackend.create_file_system
_stock_delete = FSxBackend.delete_file_system
_delay = {"seconds": 0.0}


def _refuse(code: str, message: str) -> NoReturn:
    raise JsonRESTError(code, message)


def _lets_lustre_in(group: Any, groups: Any) -> bool:
    """Whether a security group lets its own members, or networks, in on port 988."""
    return any(
        rule.ip_protocol == "-1" or (int(rule.from_port or 0) <= LNET <= int(rule.to_port or 0))
        for rule in group.ingress_rules
        if rule.ip_range or (rule.source_group or {}).get("GroupId") in groups
    )


def _check_shape(kind: str, storage: str, capacity: int, throughput: int | None, version: str) -> None:
    """Capacity and throughput that FSx has for a deployment type."""
    allowed = THROUGHPUT.get((kind, storage))
    if allowed is None:
        _refuse("BadRequest", f"{kind} has no storage of type {storage}.")
    if throughput not in allowed:
        code = "InvalidPerUnitStorageThroughput" if throughput else "BadRequest"
        _refuse(code, f"PerUnitStorageThroughput {throughput} is not valid for {kind} {storage}.")
    step = {12: 6000, 40: 1800}[int(throughput or 0)] if storage == "HDD" else 3600 if kind == "SCRATCH_1" else 2400
    small = storage == "SSD" and capacity in (1200, 2400)
    if capacity < 1 or (capacity % step and not small):
        _refuse("BadRequest", f"StorageCapacity {capacity} is not valid for {kind} {storage}.")
    if kind == "PERSISTENT_2" and version == "2.10":
        _refuse("BadRequest", "PERSISTENT_2 needs FileSystemTypeVersion 2.12 or newer.")


def _made(self: Any, *arguments: Any, **options: Any) -> None:
    _stock_init(self, *arguments, **options)
    # A real id has 17 digits; stock moto's has 8.
    self.file_system_id = f"fs-{mock_random.get_random_hex(17)}"
    region, account = options["region_name"], options["account_id"]
    self.resource_arn = f"arn:aws:fsx:{region}:{account}:file-system/{self.file_system_id}"
    self.dns_name = f"{self.file_system_id}.fsx.{region}.amazonaws.com"
    self.created, self.ready, self.gone = time.time(), time.monotonic() + _delay["seconds"], 0.0
    # Changes that are under way or done, newest first, each with the moment in which it is done.
    self.actions, self.interface, self.version = [], None, "2.10"
    if options["tags"]:
        self.backend.tagger.tag_resource(self.resource_arn, options["tags"])


def _settle(self: Any) -> None:
    """Carry out the changes whose time has come."""
    for action in self.actions:
        if action["Status"] == "IN_PROGRESS" and time.monotonic() >= action["done"]:
            values = action["TargetFileSystemValues"]
            action["Status"] = "UPDATED_OPTIMIZING" if "StorageCapacity" in values else "COMPLETED"
            self.storage_capacity = values.get("StorageCapacity", self.storage_capacity)
            self.version = values.get("FileSystemTypeVersion", self.version)
            self.lustre_configuration.update(values.get("LustreConfiguration") or {})


def _lifecycle(self: Any) -> str:
    if self.gone:
        return "DELETING"
    if time.monotonic() < self.ready:
        return "CREATING"
    return "UPDATING" if any(action["Status"] == "IN_PROGRESS" for action in self.actions) else "AVAILABLE"


def _to_dict(self: Any) -> Record:
    shown: Record = _stock_to_dict(self)
    _settle(self)
    shown.update(CreationTime=self.created, Lifecycle=_lifecycle(self), StorageCapacity=self.storage_capacity)
    if self.file_system_type == "LUSTRE":
        hidden = ("done", "token")
        actions = [{key: value for key, value in item.items() if key not in hidden} for item in self.actions]
        configuration = {key: value for key, value in self.lustre_configuration.items() if key not in LINKED}
        linked = {key: value for key, value in self.lustre_configuration.items() if key in LINKED}
        if linked:
            configuration["DataRepositoryConfiguration"] = {"Lifecycle": "AVAILABLE", **linked}
        shown.update(
            LustreConfiguration=configuration,
            FileSystemTypeVersion=self.version,
            AdministrativeActions=actions,
            VpcId=self.interface.subnet.vpc_id,
            NetworkInterfaceIds=[self.interface.id],
        )
    # They belong to the interface and are not shown.
    shown.pop("SecurityGroupIds", None)
    return shown


def _create(self: Any, **options: Any) -> Any:
    if options["file_system_type"] != "LUSTRE":
        return _stock_create(self, **options)
    token, tokens = options["client_request_token"], store(self, "tokens")
    asked = json.dumps({key: value for key, value in options.items() if key != "client_request_token"}, sort_keys=True)
    if token in tokens and tokens[token]["id"] in self.file_systems:
        if tokens[token]["asked"] != asked:
            _refuse("IncompatibleParameterError", "The client request token was used with other parameters.")
        return self.file_systems[tokens[token]["id"]]
    subnets, groups = options["subnet_ids"] or [], options["security_group_ids"] or []
    ec2 = ec2_backends[self.account_id][self.region_name]
    found = ec2.describe_subnets(subnet_ids=None, filters={"subnet-id": subnets}) if subnets else []
    if len(subnets) != 1 or len(found) != 1:
        _refuse("InvalidNetworkSettings", f"The subnets {subnets} are not one subnet that exists.")
    allowing = [ec2.get_security_group_from_id(group) for group in groups]
    if None in allowing:
        _refuse("InvalidNetworkSettings", f"One of the security groups {groups} does not exist.")
    if allowing and not any(_lets_lustre_in(group, groups) for group in allowing):
        _refuse("InvalidNetworkSettings", _NO_LNET)
    lustre = {"DeploymentType": "SCRATCH_1", "DataCompressionType": "NONE", **(options["lustre_configuration"] or {})}
    kind, storage = lustre["DeploymentType"], options["storage_type"] or "SSD"
    version = options["file_system_type_version"] or ("2.12" if kind == "PERSISTENT_2" else "2.10")
    _check_shape(kind, storage, options["storage_capacity"], lustre.get("PerUnitStorageThroughput"), version)
    if kind == "PERSISTENT_2" and any(key in lustre for key in LINKED):
        _refuse("BadRequest", "PERSISTENT_2 takes no ImportPath; use a data repository association.")
    if kind.startswith("SCRATCH") and lustre.get("AutomaticBackupRetentionDays"):
        _refuse("BadRequest", f"{kind} has no backups.")
    lustre["MountName"] = "fsx" if kind == "SCRATCH_1" else mock_random.get_random_hex(8)
    lustre.setdefault("AutomaticBackupRetentionDays", 0)
    lustre.setdefault("WeeklyMaintenanceStartTime", "1:05:00")
    options["lustre_configuration"], options["storage_type"] = lustre, storage
    made = _stock_create(self, **options)
    made.version = version
    made.kms_key_id = made.kms_key_id or f"arn:aws:kms:{self.region_name}:{self.account_id}:key/aws-fsx"
    made.interface = ec2.create_network_interface(
        found[0], None, group_ids=groups, description=f"Created for the file system {made.file_system_id}"
    )
    made.interface.status = "in-use"
    if token:
        tokens[token] = {"asked": asked, "id": made.file_system_id}
    return made


def _living(self: Any) -> dict[str, Any]:
    """The file systems without those whose deletion is over, and their interfaces with them."""
    for key in [key for key, one in self.file_systems.items() if one.gone and time.monotonic() >= one.gone]:
        gone = self.file_systems.pop(key)
        if gone.interface is not None:
            gone.interface.status = "available"
            ec2_backends[self.account_id][self.region_name].delete_network_interface(gone.interface.id)
    living: dict[str, Any] = self.file_systems
    return living


def _find(backend: Any, identity: str) -> Any:
    living = _living(backend)
    if identity not in living:
        _refuse("FileSystemNotFound", f"File system '{identity}' does not exist.")
    return living[identity]


def _delete(self: Any, file_system_id: str, *arguments: Any, **options: Any) -> Any:
    one = _find(self, file_system_id)
    if one.file_system_type != "LUSTRE":
        return _stock_delete(self, file_system_id, *arguments, **options)
    one.gone = one.gone or time.monotonic() + _delay["seconds"]
    _living(self)
    return file_system_id, "DELETING", None, None, None


def describe_file_systems(self: FSxResponse) -> str:
    asked, living = json.loads(self.body), _living(self.fsx_backend)
    wanted = asked.get("FileSystemIds") or list(living)
    found = [_find(self.fsx_backend, identity) for identity in wanted]
    first = int(asked.get("NextToken") or 0)
    last = first + int(asked.get("MaxResults") or PAGE)
    page: Record = {"FileSystems": [one.to_dict() for one in found[first:last]]}
    if last < len(found):
        # Tokens are base64, so their length is a multiple of four.
        page["NextToken"] = f"{last:08}"
    return json.dumps(page)


def update_file_system(self: FSxResponse) -> str:
    asked = json.loads(self.body)
    one = _find(self.fsx_backend, asked["FileSystemId"])
    token = asked.get("ClientRequestToken")
    if token and any(action["token"] == token for action in one.actions):
        return json.dumps({"FileSystem": one.to_dict()})
    if one.to_dict()["Lifecycle"] not in ("AVAILABLE", "UPDATING"):
        _refuse("BadRequest", f"The file system {one.file_system_id} is not available.")
    lustre = asked.get("LustreConfiguration") or {}
    unknown = sorted(set(lustre) - set(UPDATES))
    if unknown:
        _refuse("BadRequest", f"{', '.join(unknown)} cannot be changed.")
    kind, capacity = one.lustre_configuration["DeploymentType"], asked.get("StorageCapacity", one.storage_capacity)
    throughput = lustre.get("PerUnitStorageThroughput", one.lustre_configuration.get("PerUnitStorageThroughput"))
    _check_shape(kind, one.storage_type, capacity, throughput, "")
    if "StorageCapacity" in asked and (capacity <= one.storage_capacity or kind == "SCRATCH_1"):
        _refuse("BadRequest", f"StorageCapacity {capacity} is not greater than {one.storage_capacity}.")
    if any(action["Status"] == "IN_PROGRESS" for action in one.actions):
        _refuse("BadRequest", f"The file system {one.file_system_id} is being changed already.")
    values = {key: asked[key] for key in ("StorageCapacity", "FileSystemTypeVersion") if key in asked}
    action = {
        "AdministrativeActionType": "FILE_SYSTEM_UPDATE",
        "RequestTime": time.time(),
        "Status": "IN_PROGRESS",
        "TargetFileSystemValues": {**values, **({"LustreConfiguration": lustre} if lustre else {})},
        "done": time.monotonic() + _delay["seconds"],
        "token": token,
    }
    one.actions.insert(0, action)
    return json.dumps({"FileSystem": one.to_dict()})


def names(backend: FSxBackend) -> dict[str, str]:
    """The names of file systems -> their address, as the resolver of a VPC knows them."""
    return {
        one.dns_name: one.interface.private_ip_address
        for one in list(_living(backend).values())
        if one.file_system_type == "LUSTRE" and _lifecycle(one) in ("AVAILABLE", "UPDATING")
    }


def install(pending: float) -> None:
    """``pending``: seconds that each creation, change and deletion takes."""
    _delay["seconds"] = pending
    FileSystem.__init__ = _made
    FileSystem.to_dict = _to_dict
    FSxBackend.create_file_system = _create
    FSxBackend.delete_file_system = _delete
    FSxResponse.describe_file_systems = describe_file_systems
    FSxResponse.update_file_system = update_file_system
