#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mount_units
version_added: 0.1.0
short_description: Keep file systems mounted through units of systemd
description:
  - Puts mount and automount units into C(/etc/systemd/system), enables and starts them, all in one call.
  - Every unit that differs is read by C(systemd-analyze verify) first. When systemd has anything against one of them,
    nothing is changed.
  - When a new unit cannot be started, the unit and the mount that were there before are put back.
  - What is compared is the file, whether the unit is enabled, and what is really mounted, so a mount that was lost or
    replaced by hand is repaired.
extends_documentation_fragment:
  - trainium.cluster.attributes
options:
  mounts:
    description: The mounts, in the order in which they are made.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where the file system is mounted. The directory is made where it is missing, and never deleted.
        type: str
        required: true
      unit:
        description: The name of the unit without its ending, as C(systemd-escape --path) gives it for the path.
        type: str
        required: true
      source:
        description: What is mounted, as the unit has it. A directory that a bind mount shows must exist.
        type: str
        default: ""
      fstype:
        description: The type of the file system, V(none) for a bind mount.
        type: str
        default: none
      mount_unit:
        description: The text of the mount unit.
        type: str
        default: ""
      automount_unit:
        description: The text of the automount unit. If empty, the file system is mounted at once and at boot.
        type: str
        default: ""
      owner:
        description: The owner of the root of the mounted file system. Not touched if it is not given.
        type: str
      group:
        description: The group of the root of the mounted file system. Not touched if it is not given.
        type: str
      mode:
        description: The mode of the root of the mounted file system, in octal digits. Not touched if it is not given.
        type: str
      state:
        description: Whether the file system is mounted, or is unmounted and its units are deleted.
        type: str
        choices: [mounted, absent]
        default: mounted
seealso:
  - module: ansible.posix.mount
"""

EXAMPLES = r"""
- name: Show a directory of the shared file system as /data
  trainium.cluster.internal.mount_units:
    mounts:
      - path: /data
        unit: data
        source: /fsx/data
        mount_unit: |
          [Mount]
          What=/fsx/data
          Where=/data
          Type=none
          Options=bind,_netdev

          [Install]
          WantedBy=remote-fs.target
"""

RETURN = r"""
repaired:
  description: The paths whose units or mounts were, or would be, changed.
  returned: success
  type: list
  elements: str
missing_helpers:
  description: The programs that mount needs for a file system and that the host lacks.
  returned: check mode
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import difference
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mount_state import (
    is_sound,
    parse_mountinfo,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.unit_files import (
    DIRECTORY,
    UnitError,
    UnitFiles,
)

MOUNT = {
    "path": {"type": "str", "required": True},
    "unit": {"type": "str", "required": True},
    "source": {"type": "str", "default": ""},
    "fstype": {"type": "str", "default": "none"},
    "mount_unit": {"type": "str", "default": ""},
    "automount_unit": {"type": "str", "default": ""},
    "owner": {"type": "str"},
    "group": {"type": "str"},
    "mode": {"type": "str"},
    "state": {"type": "str", "choices": ["mounted", "absent"], "default": "mounted"},
}


class Host:
    """What is on the host: units' files, units' states and mounts."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.files = UnitFiles(module)
        self.wanted: list[dict[str, Any]] = module.params["mounts"]
        names = [name for mount in self.wanted for name in _names(mount)]
        self.texts = {name: self.files.read(DIRECTORY / name) for name in names}
        self.states = self.files.show(names)
        self.mounted = parse_mountinfo(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
        self.paused: list[str] = []

    def differs(self, mount: dict[str, Any]) -> bool:
        """Whether anything but the attributes of the mounted root has to change."""
        if mount["state"] == "absent":
            return any(self.texts[name] is not None for name in _names(mount)) or mount["path"] in self.mounted
        unit = _entry_unit(mount)
        return (
            any(self.texts[name] != text for name, text in _wanted_texts(mount).items())
            or self.states[unit].get("ActiveState") != "active"
            or self.states[unit].get("UnitFileState") != "enabled"
            or any(self.states[name].get("NeedDaemonReload") == "yes" for name in _names(mount))
            or not self._is_right(mount)
        )

    def refuse_foreign(self, mount: dict[str, Any]) -> None:
        """Fail where something is mounted that no unit of this kind made: it may hold what others need."""
        there = self.mounted.get(mount["path"])
        mine = any(self.texts[name] is not None for name in _names(mount))
        if there and not mine and there.fstype != "autofs" and not self._is_right(mount):
            raise UnitError(
                f"{there.source or there.fstype} is mounted at {mount['path']} already, and not by this role; unmount"
                " it and take it out of /etc/fstab, or choose another path."
            )

    def _is_right(self, mount: dict[str, Any]) -> bool:
        there = self.mounted.get(mount["path"])
        if mount["automount_unit"]:
            # Not mounted before the first use; what is there then came through the unit.
            return True
        return bool(there and is_sound(there, mount["source"], mount["fstype"], _same(mount)))

    def remove(self, mount: dict[str, Any]) -> None:
        """Unmount and delete the units; a file system in use stays, with its units."""
        self._stop(mount)
        self.files.systemctl("disable", *[name for name in _names(mount) if self.texts[name] is not None])
        for name in _names(mount):
            if self.texts[name] is not None:
                (DIRECTORY / name).unlink()
        self.files.systemctl("daemon-reload")

    def make(self, mount: dict[str, Any]) -> None:
        """Put the units in place and start them, or put back what was there."""
        before = {DIRECTORY / name: self.texts[name] for name in _names(mount)}
        had = [name for name in _names(mount) if self.texts[name] is not None]
        was_active = [name for name in had if self.states[name].get("ActiveState") == "active"]
        was_enabled = [name for name in had if self.states[name].get("UnitFileState") == "enabled"]
        if mount["path"] in self.mounted and not (not had and self._is_right(mount)):
            self._stop(mount)
        if mount["fstype"] == "none" and not Path(mount["source"]).is_dir():
            self.files.systemctl("start", *was_active)
            raise UnitError(
                f"{mount['source']}, which {mount['path']} is to show, is no directory; make or mount it first."
            )
        texts = _wanted_texts(mount)
        for name, text in texts.items():
            if text is not None:
                self.files.write(DIRECTORY / name, text)
            elif self.texts[name] is not None:
                self.files.systemctl("disable", "--now", name)
                (DIRECTORY / name).unlink()
        unit = _entry_unit(mount)
        idle = [name for name in was_enabled if name != unit and texts[name] is not None]
        failed = self.files.systemctl("daemon-reload")
        failed = failed or (self.files.systemctl("disable", *idle) if idle else "")
        failed = failed or self.files.systemctl("enable", unit) or self.files.systemctl("start", unit)
        if not failed:
            return
        reason = self.files.reason(unit) or failed
        self.files.systemctl("disable", "--now", unit)
        self.files.restore(before)
        self.files.systemctl("daemon-reload")
        self.files.systemctl("reset-failed", *_names(mount))
        if was_enabled:
            self.files.systemctl("enable", *was_enabled)
        back = self.files.systemctl("start", *was_active) if was_active else ""
        state = f"what was there cannot be put back either ({back})" if back else "everything is as it was"
        if ".efs." in mount["source"] and "resolve" in reason.lower():
            state += "; the name of a new file system may take two minutes, so run the same again"
        raise UnitError(f"{mount['source']} cannot be mounted at {mount['path']} ({reason}); {state}.")

    def resume(self) -> None:
        """Start again what systemd stopped together with a mount: mounts of its directories, services that need it."""
        units = [name for name in dict.fromkeys(self.paused) if (DIRECTORY / name).exists() or name not in self.texts]
        for name in units:
            self.files.systemctl("start", name)
        self.paused = []

    def _stop(self, mount: dict[str, Any]) -> None:
        self.paused += self.files.dependents(_names(mount)[0])
        failed = self.files.systemctl("stop", *reversed(_names(mount)))
        # A unit that does not exist is stopped already; only what is still mounted is a failure.
        still = parse_mountinfo(Path("/proc/self/mountinfo").read_text(encoding="utf-8")).get(mount["path"])
        if still is None:
            return
        automount = f"{mount['unit']}.automount"
        if self.states[automount].get("ActiveState") == "active":
            self.files.systemctl("start", automount)
        raise UnitError(
            f"{mount['path']} cannot be unmounted ({failed or 'it is in use'}); end the processes that use it"
            f" (fuser --mount {mount['path']}) and try again."
        )

    def attributes(self, mount: dict[str, Any]) -> bool:
        """Set owner, group and mode of the mounted root where they are given; whether that changes anything."""
        wanted = {key: mount[key] for key in ("owner", "group", "mode")}
        if mount["state"] == "absent" or not any(wanted.values()) or not Path(mount["path"]).is_dir():
            return False
        rest = {"path": mount["path"], "secontext": [None, None, None], "attributes": None}
        return bool(self.module.set_fs_attributes_if_different({**rest, **wanted}, False))


def _names(mount: dict[str, Any]) -> list[str]:
    return [f"{mount['unit']}.mount", f"{mount['unit']}.automount"]


def _entry_unit(mount: dict[str, Any]) -> str:
    """The unit that is enabled and started."""
    return _names(mount)[1 if mount["automount_unit"] else 0]


def _wanted_texts(mount: dict[str, Any]) -> dict[str, str | None]:
    return dict(zip(_names(mount), (mount["mount_unit"] or None, mount["automount_unit"] or None)))


def _same(mount: dict[str, Any]) -> bool:
    """Whether a bind mount shows its source. Remote file systems are not asked: a dead server would hang the answer."""
    source, path = Path(mount["source"]), Path(mount["path"])
    return mount["fstype"] == "none" and source.is_dir() and path.is_dir() and source.samefile(path)


def _missing_helpers(module: AnsibleModule, mounts: list[dict[str, Any]]) -> list[str]:
    helpers = {f"mount.{m['fstype']}" for m in mounts if m["state"] == "mounted" and m["fstype"] != "none"}
    return sorted(helper for helper in helpers if module.get_bin_path(helper, opt_dirs=["/sbin", "/usr/sbin"]) is None)


def _diff(host: Host, mounts: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for mount in mounts:
        wanted = _wanted_texts(mount) if mount["state"] == "mounted" else {}
        for name in _names(mount):
            before, after = host.texts[name] or "", wanted.get(name) or ""
            if before != after:
                found.append(difference(DIRECTORY / name, before, after))
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={"mounts": {"type": "list", "elements": "dict", "required": True, "options": MOUNT}},
        supports_check_mode=True,
    )
    host = Host(module)
    changes = [mount for mount in host.wanted if host.differs(mount)]
    kept = [mount for mount in host.wanted if mount not in changes]
    result: dict[str, Any] = {"repaired": [mount["path"] for mount in changes]}
    if module._diff:
        result["diff"] = _diff(host, changes)
    mounted = [mount for mount in changes if mount["state"] == "mounted"]
    try:
        for mount in mounted:
            host.refuse_foreign(mount)
        texts = {name: text for mount in mounted for name, text in _wanted_texts(mount).items() if text}
        host.files.verify({name: text for name, text in texts.items() if host.texts[name] != text})
        missing = _missing_helpers(module, mounted)
        if module.check_mode:
            result["missing_helpers"] = missing
        else:
            if missing:
                raise UnitError(f"The host lacks {', '.join(missing)}; install the client of the file system first.")
            # What lies deeper goes first.
            for mount in sorted(changes, key=lambda mount: mount["path"], reverse=True):
                if mount["state"] == "absent":
                    host.remove(mount)
            for mount in mounted:
                host.make(mount)
            host.resume()
    except UnitError as error:
        host.resume()
        module.fail_json(msg=str(error))
    except OSError as error:
        host.resume()
        module.fail_json(msg=f"{error.filename or DIRECTORY} cannot be used ({error.strerror}); run the task as root.")
    there = kept if module.check_mode else host.wanted
    attributes = [mount["path"] for mount in there if host.attributes(mount)]
    result["repaired"] = list(dict.fromkeys([*result["repaired"], *attributes]))
    module.exit_json(changed=bool(result["repaired"]), **result)


if __name__ == "__main__":
    main()
