"""EFS: file systems and mount targets that take time to come and to go; stock moto's are there and gone at once, and
its file systems cannot be changed.

Only what comes over the API: what CloudFormation makes stays as stock moto has it. A creation token is that of one file
system until that is gone. What EFS refuses is refused.
"""

from __future__ import annotations

import json
import time
from typing import Any, NoReturn

from moto.core.exceptions import JsonRESTError
from moto.efs.models import EFSBackend, FileSystem
from moto.efs.responses import EFSResponse
from moto.moto_api._internal import mock_random

from sandbox.emulator.ec2.lingering import leave

MOST = 3414  # MiB/s
DAY = 24 * 3600.0
STATUS = {
    **dict.fromkeys(("BadRequest", "ThroughputLimitExceeded", "SubnetNotFound", "SecurityGroupNotFound"), 400),
    **dict.fromkeys(("FileSystemNotFound", "MountTargetNotFound"), 404),
    **dict.fromkeys(("FileSystemAlreadyExists", "FileSystemInUse", "IncorrectFileSystemLifeCycleState"), 409),
    "IncorrectMountTargetState": 409,
    "TooManyRequests": 429,
}

_stock_create = EFSResponse.create_file_system
_stock_describe = EFSResponse.describe_file_systems
_stock_targets = EFSResponse.describe_mount_targets
_stock_attach = EFSResponse.create_mount_target
_stock_groups = EFSResponse.describe_mount_target_security_groups
_stock_regroup = EFSResponse.modify_mount_target_security_groups
_delay = {"seconds": 0.0}


def _refuse(code: str, message: str) -> NoReturn:
    error = JsonRESTError(code, message)
    error.code = STATUS[code]
    raise error


def _later() -> float:
    return time.monotonic() + _delay["seconds"]


def _check_throughput(mode: str, amount: float | None) -> None:
    if mode not in ("bursting", "provisioned", "elastic"):
        _refuse("BadRequest", f"ThroughputMode {mode} is not valid.")
    if (mode == "provisioned") != (amount is not None):
        _refuse("BadRequest", "ProvisionedThroughputInMibps is for the mode provisioned, which needs it.")
    if amount is not None and amount < 1:
        _refuse("BadRequest", f"ProvisionedThroughputInMibps {amount:g} is less than 1.")
    if amount is not None and amount > MOST:
        _refuse("ThroughputLimitExceeded", f"The throughput limit of {MOST} MiB/s has been reached.")


def settle(backend: EFSBackend) -> None:
    """What has come by now is available, and what is gone is forgotten."""
    now = time.monotonic()
    for target in list(backend.mount_targets_by_id.values()):
        if getattr(target, "_gone", None) is not None and now >= target._gone:
            del backend.mount_targets_by_id[target.mount_target_id]
            target.clean_up()
            leave(backend.ec2_backend, target.network_interface_id)
        elif target.life_cycle_state == "creating" and now >= target._ready:
            target.life_cycle_state = "available"
    for system in list(backend.file_systems_by_id.values()):
        if getattr(system, "_gone", None) is not None and now >= system._gone:
            backend.delete_file_system(system.file_system_id)
        elif system.life_cycle_state in ("creating", "updating") and now >= system._ready:
            system.life_cycle_state = "available"


def _find(backend: EFSBackend, identity: str) -> FileSystem:
    settle(backend)
    if identity not in backend.file_systems_by_id:
        _refuse("FileSystemNotFound", f"File system '{identity}' does not exist.")
    return backend.file_systems_by_id[identity]


def create_file_system(self: EFSResponse) -> Any:
    backend = self.efs_backend
    settle(backend)
    if self._get_param("CreationToken") in backend.creation_tokens:
        _refuse("FileSystemAlreadyExists", f"File system with {self._get_param('CreationToken')} already exists.")
    mode = self._get_param("ThroughputMode") or "bursting"
    amount = self._get_param("ProvisionedThroughputInMibps")
    _check_throughput(mode, amount)
    if mode == "elastic" and self._get_param("PerformanceMode") == "maxIO":
        _refuse("BadRequest", "maxIO is not supported with elastic throughput.")
    known = set(backend.file_systems_by_id)
    _stock_create(self)
    (made,) = (one for key, one in backend.file_systems_by_id.items() if key not in known)
    _rename(backend, made)
    made.life_cycle_state, made._ready = "creating", _later()
    if made.encrypted and not made.kms_key_id:
        made.kms_key_id = f"arn:aws:kms:{self.region}:{self.current_account}:key/aws-elasticfilesystem"
    return _said(made, 201)


def _rename(backend: EFSBackend, made: FileSystem) -> None:
    """A real id has 17 digits; stock moto's has 8."""
    old = made.file_system_id
    made.file_system_id = f"fs-{mock_random.get_random_hex(17)}"
    made.file_system_arn = made.file_system_arn.replace(old, made.file_system_id)
    backend.file_systems_by_id[made.file_system_id] = backend.file_systems_by_id.pop(old)
    tags = backend.tagging_service.get_tag_dict_for_resource(old)
    backend.tagging_service.delete_all_tags_for_resource(old)
    backend.tag_resource(made.file_system_id, tags)


def _said(system: FileSystem, status: int) -> Any:
    return json.dumps(system.info_json()), {"status": status, "Content-Type": "application/json"}


def describe_file_systems(self: EFSResponse) -> Any:
    settle(self.efs_backend)
    token = self._get_param("CreationToken")
    if token and token not in self.efs_backend.creation_tokens:
        _refuse("FileSystemNotFound", f"There is no file system with the creation token '{token}'.")
    return _stock_describe(self)


def update_file_system(self: EFSResponse) -> Any:
    """Stock moto has no such call."""
    one = _find(self.efs_backend, self._get_param("FileSystemId"))
    if one.life_cycle_state != "available":
        _refuse("IncorrectFileSystemLifeCycleState", f"The file system is {one.life_cycle_state}, not available.")
    before = one.provisioned_throughput_in_mibps if one.throughput_mode == "provisioned" else None
    mode = self._get_param("ThroughputMode") or one.throughput_mode
    amount = self._get_param("ProvisionedThroughputInMibps")
    if amount is None and mode == "provisioned":
        amount = before
    _check_throughput(mode, amount)
    # From provisioned throughput, or after more of it, there is no way back for a day.
    back = mode != one.throughput_mode or (before is not None and amount is not None and amount < before)
    if back and time.monotonic() < getattr(one, "_bound", 0.0):
        _refuse("TooManyRequests", "Wait at least 24 hours before the throughput is decreased or its mode changed.")
    if mode == "provisioned" and (before is None or (amount or 0) > before):
        one._bound = time.monotonic() + DAY
    one.throughput_mode, one.provisioned_throughput_in_mibps = mode, amount
    one.life_cycle_state, one._ready = "updating", _later()
    return _said(one, 202)


def delete_file_system(self: EFSResponse) -> Any:
    one = _find(self.efs_backend, self._get_param("FileSystemId"))
    if one.number_of_mount_targets:
        _refuse("FileSystemInUse", f"The file system '{one.file_system_id}' has mount targets and cannot be deleted.")
    one.life_cycle_state, one._gone = "deleting", _later()
    settle(self.efs_backend)
    return "{}", {"status": 204, "Content-Type": "application/json"}


def create_mount_target(self: EFSResponse) -> Any:
    backend = self.efs_backend
    one = _find(backend, self._get_param("FileSystemId"))
    if one.life_cycle_state != "available":
        _refuse("IncorrectFileSystemLifeCycleState", f"The file system is {one.life_cycle_state}, not available.")
    known = set(backend.mount_targets_by_id)
    body, headers = _stock_attach(self)
    (made,) = (target for key, target in backend.mount_targets_by_id.items() if key not in known)
    interface = backend.ec2_backend.get_network_interface(made.network_interface_id)
    interface.status = "in-use"
    interface.description = f"Mount target {made.mount_target_id} for file system {one.file_system_id}"
    if not made.security_groups:
        made.security_groups = [group.id for group in interface.group_set]
    made.life_cycle_state, made._ready = "creating", _later()
    return body.replace('"available"', '"creating"'), headers


def describe_mount_targets(self: EFSResponse) -> Any:
    if identity := self._get_param("FileSystemId"):
        _find(self.efs_backend, identity)
    settle(self.efs_backend)
    return _stock_targets(self)


def _standing(self: EFSResponse) -> None:
    """Security groups are those of an interface, which is there between creation and deletion."""
    backend, identity = self.efs_backend, self._get_param("MountTargetId")
    settle(backend)
    if identity not in backend.mount_targets_by_id:
        _refuse("MountTargetNotFound", f"Mount target '{identity}' does not exist.")
    state = backend.mount_targets_by_id[identity].life_cycle_state
    if state != "available":
        _refuse("IncorrectMountTargetState", f"Mount target '{identity}' is {state}, not available.")


def describe_mount_target_security_groups(self: EFSResponse) -> Any:
    _standing(self)
    return _stock_groups(self)


def modify_mount_target_security_groups(self: EFSResponse) -> Any:
    _standing(self)
    return _stock_regroup(self)


def delete_mount_target(self: EFSResponse) -> Any:
    backend, identity = self.efs_backend, self._get_param("MountTargetId")
    settle(backend)
    if identity not in backend.mount_targets_by_id:
        _refuse("MountTargetNotFound", f"Mount target '{identity}' does not exist.")
    target = backend.mount_targets_by_id[identity]
    target.life_cycle_state, target._gone = "deleting", _later()
    settle(backend)
    return "{}", {"status": 204, "Content-Type": "application/json"}


def names(backend: EFSBackend, region: str) -> dict[str, str]:
    """The names of file systems that have a mount target -> its address, as the resolver of a VPC knows them."""
    settle(backend)
    return {
        f"{target.file_system_id}.efs.{region}.amazonaws.com": target.ip_address
        for target in backend.mount_targets_by_id.values()
        if target.life_cycle_state == "available"
    }


def install(pending: float) -> None:
    """``pending``: seconds that each creation, change and deletion takes."""
    _delay["seconds"] = pending
    EFSResponse.create_file_system = create_file_system
    EFSResponse.describe_file_systems = describe_file_systems
    EFSResponse.update_file_system = update_file_system
    EFSResponse.delete_file_system = delete_file_system
    EFSResponse.create_mount_target = create_mount_target
    EFSResponse.describe_mount_targets = describe_mount_targets
    EFSResponse.delete_mount_target = delete_mount_target
    EFSResponse.describe_mount_target_security_groups = describe_mount_target_security_groups
    EFSResponse.modify_mount_target_security_groups = modify_mount_target_security_groups
