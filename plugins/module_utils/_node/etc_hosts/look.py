# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with a node's /etc/hosts, for the modules etc_hosts and node_look."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.entries import (
    check_length,
    parse_entries,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.plan import (
    EtcHostsPlan,
    changed_lines,
    plan_etc_hosts,
    plan_strip_alias,
)

HOSTS: dict[str, dict[str, Any]] = {
    "entries": {"type": "str"},
    "mode": {"type": "str", "choices": ["entries", "strip-alias"], "default": "entries"},
    "node": {"type": "str"},
    "path": {"type": "path", "default": "/etc/hosts"},
    "cloud_init_config": {"type": "path"},
}

# What the comments around the block say, after "# BEGIN" and "# END".
MARKER = "trainium.cluster"


class Seen(NamedTuple):
    """``result`` is what the module returns; the texts are the same while cloud-init is at work."""

    result: dict[str, Any]
    path: Path
    before: str
    after: str


def _read(path: Path) -> str:
    """The file as text in which every byte survives; empty when there is no file."""
    return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""


def _plan(options: dict[str, Any], current: str) -> EtcHostsPlan:
    if options["mode"] == "strip-alias":
        return plan_strip_alias(current)
    own = options["node"] or os.uname().nodename
    check_length(own)
    return plan_etc_hosts(current, parse_entries(options["entries"] or ""), MARKER, own)


def _cloud_init(module: AnsibleModule, config: str) -> dict[str, Any]:
    """What the host's cloud-init is at; without one there is nothing to wait for."""
    program = module.get_bin_path("cloud-init")
    if program is None:
        return {"present": False, "finished": True, "config": ""}
    code, output, errors = module.run_command([program, "status"], environ_update={"LC_ALL": "C"})
    # 1 and 2: it has finished with errors or warnings, which is for others to judge.
    if code not in (0, 1, 2):
        reason = (errors.strip().splitlines() or [f"code {code}"])[-1]
        module.fail_json(msg=f"cloud-init does not say how far it is ({reason}); run 'cloud-init status' on the host.")
    finished = re.search(r"status: (running|not run|not started)", output) is None
    return {"present": True, "finished": finished, "config": _read(Path(config))}


def look(module: AnsibleModule, options: dict[str, Any]) -> Seen:
    """The file by options as in HOSTS; ends the module where it cannot be as it should."""
    path = Path(os.path.realpath(options["path"]))
    asked: dict[str, Any] = {}
    if options["cloud_init_config"]:
        asked["cloud_init"] = _cloud_init(module, options["cloud_init_config"])
        if not asked["cloud_init"]["finished"]:
            nothing: dict[str, Any] = {"changed": False, "repaired": [], "faults": [], "before": [], "after": []}
            return Seen({**nothing, **asked}, path, "", "")
    try:
        current = _read(path)
        plan = _plan(options, current)
    except TrainiumError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be read ({error.strerror}); run the task as root.")
    gone, come = changed_lines(current, plan.content)
    result = {
        "changed": plan.content != current,
        "repaired": plan.repaired,
        "faults": [
            {"kind": fault.kind, "message": fault.message, "count": fault.count, "examples": fault.examples}
            for fault in plan.faults
        ],
        "before": gone,
        "after": come,
        **asked,
    }
    return Seen(result, path, current, plan.content)
