# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node shows of itself and what it should show -> one verdict for each check. Pure.

*Observed* is what the node's tools printed, unread; a value is None where there was nothing to ask. *Wanted* are the
thresholds. A check that cannot say anything is skipped with a note, never silently passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.fi_info import domains_of
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.neuron_ls import devices_of

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
UNLIMITED = "unlimited"
# systemd and the kernel have several words for no limit.
_NO_LIMIT = frozenset({UNLIMITED, "infinity", "18446744073709551615"})
GIB = 1 << 30

Observed = Mapping[str, Any]
Wanted = Mapping[str, Any]


class Check(NamedTuple):
    """One verdict: ``reason`` is a few words for Slurm, ``message`` a sentence for people with what to do."""

    name: str
    result: str
    found: Any = None
    wanted: Any = None
    reason: str = ""
    message: str = ""


def _ok(name: str, found: Any, wanted: Any) -> Check:
    return Check(name, OK, found, wanted)


def _skip(name: str, note: str) -> Check:
    return Check(name, SKIPPED, message=note)


def _fail(name: str, found: Any, wanted: Any, reason: str, advice: str, where: str = "") -> Check:
    return Check(name, FAILED, found, wanted, reason, f"{where or reason}; {advice}.")


def parse_properties(text: str) -> dict[str, str]:
    """``Name=value`` lines, as systemctl show and timedatectl show print them."""
    return {name: value for name, sign, value in (line.strip().partition("=") for line in text.splitlines()) if sign}


def parse_limits(text: str) -> dict[str, tuple[str, str]]:
    """Soft and hard limits by name from ``/proc/PID/limits``."""
    rows = re.findall(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", text, re.MULTILINE)
    return {name: (soft, hard) for name, soft, hard in rows}


def limit(text: str | int) -> float:
    """A limit as a number that can be compared."""
    return float("inf") if str(text) in _NO_LIMIT else float(text)


def check_devices(observed: Observed, wanted: Wanted) -> Check:
    name, kind = "devices", wanted.get("instance_type") or "the instance type"
    known = TYPES.get(wanted.get("instance_type") or "")
    number = wanted.get("devices")
    number = number if number is not None else known.devices if known else None
    if not number:
        return _skip(name, f"no Neuron devices are known of for {kind}")
    tool, advice = observed.get("neuron_ls"), "reload the driver, or stop and start the instance"
    if not tool or not tool["found"]:
        reason = f"no neuron-ls to see {number} Neuron devices"
        return _fail(name, 0, number, reason, "install aws-neuronx-tools on the node")
    if not tool["ended"]:
        return _fail(name, 0, number, "neuron-ls hangs", advice)
    found = len(devices_of(tool["out"]) or ())
    if found < number:
        reason = f"{found} of {number} Neuron devices"
        return _fail(name, found, number, reason, advice, f"neuron-ls shows {reason}")
    return _ok(name, found, number)


def check_cores(observed: Observed, wanted: Wanted) -> Check:
    """Each device by itself, so that a missing device is not reported twice."""
    name = "cores"
    known = TYPES.get(wanted.get("instance_type") or "")
    if not known or not known.devices:
        return _skip(name, "the NeuronCores of the instance type are not known")
    cores = devices_of((observed.get("neuron_ls") or {}).get("out", ""))
    if not cores:
        return _skip(name, "neuron-ls shows no device")
    full = max([count for count in known.cores if count in cores] or known.cores)
    total = full * len(cores)
    poor = [index for index, count in enumerate(cores) if count != full]
    if poor:
        reason = f"{sum(cores)} of {total} NeuronCores"
        where = f"Neuron device {', '.join(map(str, poor))} shows other than {full} NeuronCores ({reason})"
        return _fail(name, sum(cores), total, reason, "stop and start the instance", where)
    return _ok(name, sum(cores), total)


def check_efa(observed: Observed, wanted: Wanted) -> Check:
    name, number = "efa", wanted.get("efa_interfaces")
    if number is None:
        known = TYPES.get(wanted.get("instance_type") or "")
        number = known.efa if known else None
    if not number:
        return _skip(name, "the instance has no EFA interfaces")
    tool = observed.get("fi_info")
    if not tool or not tool["found"]:
        return _fail(name, 0, number, f"no fi_info to see {number} EFA interfaces", "install EFA on the node")
    if not tool["ended"]:
        return _fail(name, 0, number, "fi_info hangs", "reload the EFA driver, or stop and start the instance")
    found = len(domains_of(tool["out"]))
    if found < number:
        reason = f"{found} of {number} EFA interfaces"
        advice = "see whether the efa driver is loaded and the interfaces are attached"
        return _fail(name, found, number, reason, advice, f"fi_info shows {reason}")
    return _ok(name, found, number)


def check_driver(observed: Observed, _wanted: Wanted) -> Check:
    """Driver and runtime are both there, and the driver that runs is the one that is installed."""
    name = "driver"
    packages = observed.get("packages") or {}
    driver, runtime = packages.get("aws-neuronx-dkms"), packages.get("aws-neuronx-runtime-lib")
    if not driver and not runtime:
        return _skip(name, "neither aws-neuronx-dkms nor aws-neuronx-runtime-lib is installed")
    for present, missing in ((driver, "aws-neuronx-dkms"), (runtime, "aws-neuronx-runtime-lib")):
        if not present:
            return _fail(name, "absent", "installed", f"{missing} is not installed", "install the Neuron SDK anew")
    version = str(driver).partition("-")[0]
    loaded = observed.get("driver_version")
    if not loaded:
        return _fail(name, "not loaded", version, f"Neuron driver {version} is not loaded", "run modprobe neuron")
    if loaded != version:
        reason = f"Neuron driver {loaded} runs, {version} is installed"
        return _fail(name, loaded, version, reason, "reload the module neuron or reboot the node")
    return _ok(name, loaded, version)


def check_clock(observed: Observed, wanted: Wanted) -> Check:
    """``clock_offset`` is what is certain of the distance to the controller's clock, in seconds."""
    name, most = "clock", float(wanted["clock_offset"])
    offset = observed.get("clock_offset")
    if offset is not None and abs(offset) > most:
        side = "ahead of" if offset > 0 else "behind"
        reason = f"clock is {abs(round(offset))} s {side} the controller's"
        return _fail(name, round(offset), most, reason, "start chrony on the node, and see to the controller's clock")
    synchronised = observed.get("clock_synchronised")
    if wanted["clock_synchronised"]:
        if synchronised is None:
            advice = "install chrony, or set acceptance_clock_synchronised to false where the clock is the host's"
            return _fail(name, "unknown", "synchronised", "nothing tells whether the clock is synchronised", advice)
        if not synchronised:
            return _fail(name, "not synchronised", "synchronised", "clock is not synchronised", "start chrony")
    return _ok(name, "synchronised" if synchronised else "near the controller's", most)


def check_disk(observed: Observed, wanted: Wanted) -> Check:
    name = "disk"
    least: Mapping[str, float] = wanted["disk"]
    if not least:
        return _skip(name, "no paths to look at")
    free: Mapping[str, int | None] = observed.get("disk") or {}
    shown: dict[str, Any] = {}
    short: list[str] = []
    for path, gib in least.items():
        there = free.get(path)
        shown[path] = None if there is None else round(there / GIB, 1)
        if there is None:
            short.append(f"{path} is not there")
        elif there < gib * GIB:
            short.append(f"{shown[path]} of {gib:g} GiB free in {path}")
    if short:
        return _fail(name, shown, dict(least), ", ".join(short), "make room or take a larger volume")
    return _ok(name, shown, dict(least))


def check_mounts(observed: Observed, wanted: Wanted) -> Check:
    """Where nothing is mounted, jobs would write into the folder below, and find nothing that others wrote."""
    name = "mounts"
    paths: Sequence[str] = wanted.get("mounts") or []
    if not paths:
        return _skip(name, "no mount points to look at")
    there = observed.get("mounts") or []
    missing = [path for path in paths if (path.rstrip("/") or "/") not in there]
    if missing:
        reason = f"{', '.join(path.rstrip('/') for path in missing)} is not mounted"
        advice = "read why with systemctl status on the node, and run nodes.yml"
        return _fail(name, list(there), list(paths), reason, advice)
    return _ok(name, list(paths), list(paths))


def _check_limit(name: str, row: str, observed: Observed, least: str | int) -> Check:
    limits = parse_limits(observed.get("slurmd_limits") or "")
    if row not in limits:
        return _skip(name, "slurmd does not run here")
    soft, hard = limits[row]
    found = soft if soft == hard else f"{soft} (hard {hard})"
    if limit(soft) < limit(least):
        reason = f"{name} limit of jobs is {found}, not {least}"
        return _fail(name, found, least, reason, "raise it in the unit of slurmd")
    return _ok(name, found, least)


def check_nofile(observed: Observed, wanted: Wanted) -> Check:
    return _check_limit("nofile", "Max open files", observed, wanted["nofile"])


def check_memlock(observed: Observed, wanted: Wanted) -> Check:
    return _check_limit("memlock", "Max locked memory", observed, wanted["memlock"])


def check_names(observed: Observed, wanted: Wanted) -> Check:
    """Each name has its one address, and the address one of its node's names."""
    name = "names"
    peers: Sequence[Mapping[str, Any]] = wanted["names"]
    if not peers:
        return _skip(name, "no names to look up")
    lookups: Mapping[str, Any] = observed.get("lookups") or {}
    wrong: list[str] = []
    for peer in peers:
        address = lookups.get(peer["name"])
        if address != peer["address"]:
            wrong.append(f"{peer['name']} is {address or 'unknown'} here, not {peer['address']}")
            continue
        back = lookups.get(peer["address"])
        names = {peer["name"].lower(), str(peer.get("full_name") or peer["name"]).lower()}
        if str(back or "").lower() not in names:
            wrong.append(f"{peer['address']} is {back or 'unknown'} here, not {peer['name']}")
    if wrong:
        return _fail(name, wrong, len(peers), wrong[0], "run the role cluster_hosts", ", ".join(wrong))
    return _ok(name, len(peers), len(peers))


CHECKS: dict[str, Callable[[Observed, Wanted], Check]] = {
    "devices": check_devices,
    "cores": check_cores,
    "efa": check_efa,
    "driver": check_driver,
    "clock": check_clock,
    "disk": check_disk,
    "mounts": check_mounts,
    "nofile": check_nofile,
    "memlock": check_memlock,
    "names": check_names,
}
# Made from the head node, not by the node itself.
FROM_HEAD = ("ssh", "slurm")
NAMES = (*CHECKS, *FROM_HEAD)


def judge(observed: Observed, wanted: Wanted, skip: Sequence[str] = ()) -> list[Check]:
    """All checks of a node, in their order; those switched off are skipped."""
    return [
        _skip(name, "switched off by acceptance_skip") if name in skip else check(observed, wanted)
        for name, check in CHECKS.items()
    ]


def certain_offset(before: float, node: float, after: float) -> float:
    """How far a node's clock is off for certain, when it was read between two looks at the controller's clock."""
    if node > after:
        return node - after
    return node - before if node < before else 0.0


def gate_record(name: str, checks: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, Any]:
    """What the head has to know of a node, short, as it is sent there for every node of the cluster."""
    failures = [check["reason"] for check in checks if check["result"] == FAILED]
    cores = [check["found"] for check in checks if check["name"] == "cores" and check["result"] == OK]
    return {**about, "name": name, "failures": failures, "cores": int(cores[0]) if cores else 0}


def with_clock(
    checks: Sequence[Mapping[str, Any]], synchronised: bool | None, offset: float, wanted: Wanted
) -> list[dict[str, Any]]:
    """The checks with the clock's judged anew, now that the distance to the controller's is known."""
    seen = {"clock_synchronised": synchronised, "clock_offset": offset}
    return [
        check_clock(seen, wanted)._asdict() if check["name"] == "clock" and check["result"] != SKIPPED else dict(check)
        for check in checks
    ]
