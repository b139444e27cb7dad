# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a site asks to be mounted -> what systemd is to be told, with everything refused that would harm a host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

TYPES = ("efs", "lustre", "nfs", "bind")
DEPLOYMENT_TYPES = ("SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2")
FILE_SYSTEM_VERSIONS = ("2.10", "2.12", "2.15")
# Amazon's advice for EFS over the kernel's own NFS client, and for FSx for Lustre. A bind mount carries _netdev,
# because its source often lies on a remote mount, and a local unit waiting for a remote one is a cycle at boot. What
# comes over the network is data: another host's root must not make programs and devices that are root's here. A bind
# mount has these two from what it shows (mount(2), MS_BIND).
_OPTIONS = {
    "efs": "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,nosuid,nodev,_netdev",
    "lustre": "noatime,flock,nosuid,nodev,_netdev",
    "nfs": "hard,nosuid,nodev,_netdev",
    "bind": "bind,_netdev",
}
_FSTYPES = {"efs": "nfs4", "lustre": "lustre", "nfs": "nfs", "bind": "none"}
# An option of the user's takes the place of these.
_OPPOSITES = {
    "soft": "hard",
    "softerr": "hard",
    "atime": "noatime",
    "relatime": "noatime",
    "strictatime": "noatime",
    "noflock": "flock",
    "localflock": "flock",
    "resvport": "noresvport",
    "suid": "nosuid",
    "dev": "nodev",
    "vers": "nfsvers",
    "rbind": "bind",
}
_KEYS = frozenset({"automount", "deployment_type", "dns_name", "file_system_id", "file_system_version", "group"}) | {
    *("mode", "mount_name", "options", "owner", "path", "region", "source", "state", "type")
}
# Mounting here hides the system itself; whole trees, and single directories whose children may be mount points.
_TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys"),
    *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin"),
)
_SINGLE = frozenset({"/", "/root", "/tmp", "/usr", "/var", "/var/lib", "/var/log", "/var/tmp"})  # noqa: S108
_MAX_UNIT_NAME = 255
_FILE_SYSTEM_ID = re.compile(r"^fs-[0-9a-f]{8,40}$")
_REGION = re.compile(r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$")
# Of regions by what their names begin with: China, the European Sovereign Cloud.
_DOMAINS = {"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"}
_DNS_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$")
_MOUNT_NAME = re.compile(r"^[A-Za-z0-9_-]{1,8}$")
_MODE = re.compile(r"^[0-7]{3,4}$")
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.")


@dataclass(frozen=True)
class Mount:
    """One mount as systemd is to make it. ``unit`` is the unit's name without its ending."""

    type: str
    path: str
    source: str
    fstype: str
    options: str
    automount: bool
    unit: str
    state: str
    owner: str | None = None
    group: str | None = None
    mode: str | None = None
    deployment_type: str = ""
    file_system_version: str = ""


def escape_path(path: str) -> str:
    """The name of a path in systemd's units, as ``systemd-escape --path`` gives it."""
    trimmed = "/".join(part for part in path.split("/") if part)
    if not trimmed:
        return "-"
    escaped = []
    for index, byte in enumerate(trimmed.encode("utf-8", "surrogateescape")):
        char = chr(byte)
        if char == "/":
            escaped.append("-")
        elif char in _SAFE and not (char == "." and index == 0):
            escaped.append(char)
        else:
            escaped.append(f"\\x{byte:02x}")
    return "".join(escaped)


def plan_mounts(wanted: Sequence[Mapping[str, Any]], region: str = "") -> list[Mount]:
    """Check the wanted mounts and complete them: source, file system type, options, name of the unit.

    Raises TrainiumError for a mount that lacks something, for a path that belongs to the system or that occurs twice.
    """
    mounts: list[Mount] = []
    paths: set[str] = set()
    for number, entry in enumerate(wanted, start=1):
        if not isinstance(entry, Mapping):
            raise TrainiumError(
                f"Entry {number} of shared_storage_mounts is not a dictionary; give it a type and a path."
            )
        mount = _mount(entry, number, region)
        if mount.path in paths:
            raise TrainiumError(f"The path {mount.path} is given to two mounts; keep one of them.")
        paths.add(mount.path)
        mounts.append(mount)
    return mounts


def _mount(entry: Mapping[str, Any], number: int, region: str) -> Mount:
    path = _path(_text(entry, "path"), number)
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if unknown:
        raise TrainiumError(
            f"The mount at {path} has the unknown key {unknown[0]}; known are {', '.join(sorted(_KEYS))}."
        )
    kind = _text(entry, "type")
    if kind not in TYPES:
        raise TrainiumError(f"The mount at {path} has the type '{kind}'; it is one of {', '.join(TYPES)}.")
    state = _text(entry, "state") or "mounted"
    if state not in ("mounted", "absent"):
        raise TrainiumError(f"The mount at {path} has the state '{state}'; it is mounted or absent.")
    mode = _text(entry, "mode") or None
    if mode and not _MODE.match(mode):
        raise TrainiumError(f"The mode {mode} of {path} is not an octal mode; write it in quotes, such as '0755'.")
    deployment = _text(entry, "deployment_type").upper()
    if deployment and (kind != "lustre" or deployment not in DEPLOYMENT_TYPES):
        raise TrainiumError(
            f"The deployment type {deployment} of {path} is none of FSx for Lustre; it is one of"
            f" {', '.join(DEPLOYMENT_TYPES)}."
        )
    version = _text(entry, "file_system_version")
    if version and (kind != "lustre" or version not in FILE_SYSTEM_VERSIONS):
        raise TrainiumError(
            f"The file_system_version {version} of {path} is none of FSx for Lustre; it is one of"
            f" {', '.join(FILE_SYSTEM_VERSIONS)}, in quotes."
        )
    absent = state == "absent"
    options, automount = _options(_OPTIONS[kind], _text(entry, "options"), path)
    wish = entry.get("automount")
    return Mount(
        type=kind,
        path=path,
        # What is to go away need not say where it came from.
        source="" if absent else _source(entry, kind, path, region, deployment),
        fstype=_FSTYPES[kind],
        options=options,
        automount=automount if wish is None else str(wish).lower() in ("true", "yes", "on", "1"),
        unit=escape_path(path),
        state=state,
        owner=_text(entry, "owner") or None,
        group=_text(entry, "group") or None,
        mode=mode,
        deployment_type=deployment,
        file_system_version=version,
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    text = "" if value is None else str(value)
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise TrainiumError(
            f"The {key} {text!r} of a mount has a line break or another control character; write it without."
        )
    return text


def _path(path: str, number: int) -> str:
    if not path:
        raise TrainiumError(f"Entry {number} of shared_storage_mounts has no path; say where to mount it.")
    parts = path.split("/")
    if not path.startswith("/") or "." in parts or ".." in parts:
        raise TrainiumError(
            f"The mount point {path} is no absolute path without dots; write it from the root, as in /fsx."
        )
    clean = "/" + "/".join(part for part in parts if part)
    if clean != clean.strip() or clean.endswith("\\"):
        raise TrainiumError(f"The mount point '{clean}' ends in a space or a backslash, which systemd cannot read.")
    if clean in _SINGLE or any(clean == tree or clean.startswith(tree + "/") for tree in _TREES):
        raise TrainiumError(
            f"Mounting at {clean} would hide a part of the system; choose a directory of its own, as /fsx."
        )
    # The longer of the two names that a mount has.
    if len(f"{escape_path(clean)}.automount") > _MAX_UNIT_NAME:
        raise TrainiumError(
            f"The mount point {clean} is too long for the name of a systemd unit; choose a shorter one."
        )
    return clean


def _options(defaults: str, wanted: str, path: str) -> tuple[str, bool]:
    """The default options with the wanted ones in place of those they contradict, and whether to mount on demand."""
    own = [option.strip() for option in wanted.split(",") if option.strip()]
    if any(" " in option for option in own):
        raise TrainiumError(f"The options '{wanted}' of {path} have a space in them; separate them with commas only.")
    automount = "x-systemd.automount" in own
    # The rest of these belong into fstab; a unit of its own has no use for them.
    own = [option for option in own if not option.startswith("x-systemd.") and option not in ("nofail", "auto")]
    keys = {option.partition("=")[0] for option in own}
    keys |= {_OPPOSITES[key] for key in keys if key in _OPPOSITES}
    kept = [option for option in defaults.split(",") if option.partition("=")[0] not in keys]
    return ",".join(dict.fromkeys([*kept, *own])), automount


def _source(entry: Mapping[str, Any], kind: str, path: str, region: str, deployment: str) -> str:
    source = _text(entry, "source")
    if kind == "bind":
        if not source.startswith("/") or ".." in source.split("/"):
            raise TrainiumError(f"The bind mount at {path} needs an absolute path as its source, not '{source}'.")
        return "/" + "/".join(part for part in source.split("/") if part)
    if source:
        if ":/" not in source or " " in source:
            raise TrainiumError(f"The source '{source}' of {path} is not of the form server:/directory; correct it.")
        return source
    if kind == "nfs":
        raise TrainiumError(f"The NFS mount at {path} has no source; give it as server:/directory.")
    name = _dns_name(entry, kind, path, region)
    if kind == "efs":
        return f"{name}:/"
    # The first generation has one mount name for all file systems.
    mount_name = _text(entry, "mount_name") or ("fsx" if deployment == "SCRATCH_1" else "")
    if not _MOUNT_NAME.match(mount_name):
        raise TrainiumError(
            f"The Lustre mount at {path} has the mount_name '{mount_name}'; give the MountName that"
            " aws fsx describe-file-systems shows."
        )
    return f"{name}@tcp:/{mount_name}"


def _dns_name(entry: Mapping[str, Any], kind: str, path: str, region: str) -> str:
    name = _text(entry, "dns_name")
    if name:
        if not _DNS_NAME.match(name):
            raise TrainiumError(f"The dns_name '{name}' of {path} is no host name; correct it.")
        return name
    identifier = _text(entry, "file_system_id")
    if not _FILE_SYSTEM_ID.match(identifier):
        raise TrainiumError(
            f"The {kind} mount at {path} has the file_system_id '{identifier}'; give one such as"
            " fs-0123456789abcdef0, or a dns_name."
        )
    where = _text(entry, "region") or region
    if not _REGION.match(where):
        raise TrainiumError(f"The {kind} mount at {path} has the region '{where}'; give one such as us-west-2.")
    domain = _DOMAINS.get(where.partition("-")[0], "amazonaws.com")
    return f"{identifier}.{'efs' if kind == 'efs' else 'fsx'}.{where}.{domain}"
