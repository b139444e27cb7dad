# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which rows of docs/fidelity.md a proof has seen or refuted, each by what it goes by. Pure.

A row is known by its first cell. ``seen`` says that AWS did what the sandbox does in its place as far as the evidence
goes, ``refuted`` that it did something else; what had no occasion to show itself was not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.image_names import sdk_in
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.neuron_ls import devices_of
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import (
    Evidence,
    first_line,
)
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import hostless, nameless, public

SEEN, REFUTED, NOT_LOOKED = "seen", "refuted", "not looked at"


class Verdict(NamedTuple):
    verdict: str
    evidence: str


class Row(NamedTuple):
    """A row of the page: the section it is in, its first cell, and what the part stands for."""

    section: str
    part: str
    stands_for: str


def rows(page: str) -> Iterator[Row]:
    """The rows of docs/fidelity.md."""
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) > 1 and cells[0] != "part" and set(cells[0]) != {"-"}:
            yield Row(section, cells[0], cells[1])


def _not(reason: str) -> Verdict:
    return Verdict(NOT_LOOKED, reason)


def _say(good: bool, text: str) -> Verdict:
    return Verdict(SEEN if good else REFUTED, text)


def _options(seen: Evidence, market: str) -> list[dict[str, Any]]:
    return [one for one in (seen.account.get("capacity") or {}).get("options") or () if one["market"] == market]


def _apis(seen: Evidence) -> Verdict:
    done = [name for name in ("validate", "network", "compute", "teardown") if seen.ok(name)]
    if not done:
        return _not("no step that calls AWS has succeeded")
    return Verdict(SEEN, f"EC2, SSM, IAM and Service Quotas as {', '.join(done)} use them; not the other services")


# EC2's error codes that say something of the account or of the moment, and nothing of the request itself.
_ELSEWHERE = frozenset(
    [
        *("AuthFailure", "UnauthorizedOperation", "OptInRequired", "PendingVerification", "Blocked"),
        *("InsufficientInstanceCapacity", "InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"),
        # Of a type that a zone does not have.
        "Unsupported",
        *("RequestLimitExceeded", "InternalError", "ServiceUnavailable", "Unavailable"),
    ]
)


def outcome(run: dict[str, Any]) -> str:
    """What EC2 said to a dry run."""
    if not run.get("asked"):
        return "not asked"
    return "accepted" if run["accepted"] else f"refused ({run.get('code') or 'without a code'})"


def _dry_runs(seen: Evidence) -> Verdict:
    runs = seen.account.get("dry_runs") or []
    asked = [one for one in runs if one.get("asked")]
    wrong = [one for one in asked if not one["accepted"] and one.get("code") and one["code"] not in _ELSEWHERE]
    if wrong:
        return Verdict(
            REFUTED, f"EC2 did not accept {wrong[0]['instance_type']}: {wrong[0]['code']}: {wrong[0]['said']}"
        )
    accepted = [f"{one['instance_type']} with {one['interfaces']} interfaces" for one in asked if one["accepted"]]
    if not accepted:
        return _not(f"EC2 was not asked, or not of the request: {runs[0]['said']}" if runs else "no launch was tried")
    # "Checks whether you have the required permissions for the action" is all that EC2's reference promises of DryRun.
    control = seen.account.get("control") or {}
    said = f"EC2 would accept by DryRun: {', '.join(accepted)}"
    if not control.get("asked") or control.get("code") in _ELSEWHERE:
        return _not(f"{said}; whether it looks at interfaces then was not tried")
    if not control.get("code"):
        return _not(f"{said}; it says nothing of interfaces, since it accepted two interfaces in one place as well")
    return Verdict(SEEN, f"{said}; it refused two interfaces in one place ({control['code']})")


def _quotas(seen: Evidence) -> Verdict:
    regions = (seen.account.get("capacity") or {}).get("regions") or []
    found = [f"{one['name']}: {one['used']} of {one['vcpus']} vCPUs in use" for r in regions for one in r["quotas"]]
    return Verdict(SEEN, f"{'; '.join(found)}") if found else _not("Service Quotas did not tell")


def _times(seen: Evidence) -> Verdict:
    launch, end = seen.step("compute"), seen.step("teardown")
    if launch is None or not launch.ok:
        return _not("no instance was launched")
    ended = f", teardown.yml took {end.seconds:.0f} s" if end is not None and end.ok else ""
    return Verdict(SEEN, f"an instance ran {launch.seconds:.0f} s after compute.yml began{ended}")


def _image(seen: Evidence) -> Verdict:
    image = seen.launched.get("image") or {}
    if not image:
        return _not("no instance was launched")
    text = f"'{image.get('name')}' is described as '{image.get('description')}'"
    return _say(bool(sdk_in(str(image.get("description") or ""))), text)


def _names(seen: Evidence) -> Verdict:
    node = next(iter(seen.launched.get("instances") or ()), None)
    if node is None or not seen.boot.get("name"):
        return _not("no node was logged in to")
    wanted = "ip-" + str(node["private_ip_address"]).replace(".", "-")
    return _say(
        seen.boot["name"] == wanted, f"the node of {node['private_ip_address']} calls itself {seen.boot['name']}"
    )


def _price(seen: Evidence) -> Verdict:
    regions = (seen.account.get("capacity") or {}).get("regions") or []
    found = [f"{one['region']}: {one['price_per_hour']} USD an hour" for one in regions if one.get("price_per_hour")]
    return Verdict(SEEN, f"{seen.account.get('type')} in {found[0]}") if found else _not("the price list did not tell")


def _spot(seen: Evidence) -> Verdict:
    found = [one for one in _options(seen, "spot") if one["price_per_hour"] is not None]
    if not found:
        return _not("EC2 told no spot price")
    told = [f"{one['availability_zone']}: {one['price_per_hour']} USD, score {one['placement_score']}" for one in found]
    return Verdict(SEEN, "; ".join(told[:4]))


def _blocks(seen: Evidence) -> Verdict:
    found = _options(seen, "capacity-block")
    if not found:
        return _not("EC2 offered no Capacity Block")
    return Verdict(SEEN, f"offerings only: {len(found)}, the first from {found[0]['starts_at']}; none was bought")


def _console(seen: Evidence) -> Verdict:
    console = seen.launched.get("console") or {}
    if console.get("known"):
        return Verdict(SEEN, "the host keys stood in the console when they were looked for")
    if console.get("unknown"):
        return Verdict(REFUTED, "the console showed no host keys in time")
    return _not("no instance was at its first boot")


def _sessions(seen: Evidence) -> Verdict:
    if seen.account.get("connection") != "ssm":
        return _not("trainium_connection was ssh")
    return Verdict(SEEN, "the node was reached over it") if seen.ok("compute", "nodes") else _not("no node was reached")


def _resolver(seen: Evidence) -> Verdict:
    if not seen.boot:
        return _not("no node was logged in to")
    node: dict[str, Any] = next(iter(seen.launched.get("instances") or ()), {})
    told = seen.boot.get("resolver", "")
    if not told or "unrecognized option" in told:
        return _not("nothing answered for the node's own name")
    found = re.findall(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])", told)
    good = node.get("private_ip_address") in found
    return _say(
        good, f"the node's own name in the VPC is found as {', '.join(dict.fromkeys(found))}" if found else told
    )


def _metadata(seen: Evidence) -> Verdict:
    code = seen.boot.get("metadata", "")
    return (
        Verdict(SEEN, f"it gives a session with HTTP {code}, and no role asks it")
        if code == "200"
        else _not("it did not answer" if seen.boot else "no node was logged in to")
    )


def _address(seen: Evidence) -> Verdict:
    if seen.account.get("public_ip") != "primary" or seen.account.get("cidrs"):
        return _not("the network did not need it")
    return Verdict(SEEN, "ssh was opened for the address that it told") if seen.ok("network") else _not("no network")


def _host(seen: Evidence) -> Verdict:
    lists = seen.boot.get("apt_lists", "")
    if not lists:
        return _not("no node was logged in to")
    # Those that apt has fetched since then are apt-daily's.
    return _say(lists == "0", f"{lists} lists of apt from before the first boot, kernel {seen.boot.get('kernel')}")


def _cloud_init(seen: Evidence) -> Verdict:
    status = first_line(seen.boot.get("cloud_init", ""))
    if not status:
        return _not("cloud-init did not answer")
    if re.search(r"running|not run|not started|disabled", status):
        return _not(f"cloud-init had not ended, or does not run: '{status}'")
    return _say("done" in status, f"cloud-init says '{status}'")


def _neuron_source(seen: Evidence) -> Verdict:
    if not seen.boot:
        return _not("no node was logged in to")
    found = first_line(hostless(seen.boot.get("neuron_source", "")))
    return _say("signed-by=/etc/apt/keyrings/neuron.gpg" in found, found or "the image has no source of Neuron's")


def _helper(seen: Evidence) -> Verdict:
    if not seen.boot:
        return _not("no node was logged in to")
    state = seen.boot.get("eni_helper", "")
    return _say(state == "enabled", f"its service is {state}" if state else "the image does not have it")


def _modules(seen: Evidence) -> Verdict:
    version = seen.ready.get("neuron_module", "")
    if not seen.ok("nodes") or not version:
        return _not("no driver was built")
    return Verdict(SEEN, f"the module neuron {version}; dkms: {first_line(seen.ready.get('dkms', ''))}")


def _devices(seen: Evidence) -> Verdict:
    node = next(iter(seen.launched.get("instances") or ()), None)
    known = TYPES.get(node["instance_type"]) if node else None
    if known is None or not seen.ready:
        return _not("no node was made ready")
    count = first_line(seen.ready.get("devices", "")) or "0"
    text = f"Neuron devices only: {count} of /dev/neuron*, and {known.devices} are in the table"
    return _say(count == str(known.devices), text)


def _packages(seen: Evidence) -> Verdict:
    found = seen.ready.get("neuron_packages", "").splitlines()
    return Verdict(SEEN, ", ".join(found)) if seen.ok("nodes") and found else _not("nothing was installed from it")


def _tools(seen: Evidence) -> Verdict:
    if "neuron_ls" not in seen.ready:
        return _not("no node was made ready")
    cores = devices_of(seen.ready["neuron_ls"])
    if cores is None:
        return Verdict(REFUTED, f"neuron-ls answers what is not understood: {first_line(seen.ready['neuron_ls'])}")
    return Verdict(SEEN, f"neuron-ls only: NeuronCores of each device: {cores}")


def _wheels(seen: Evidence) -> Verdict:
    if not seen.ok("training"):
        return _not("no training has ended well")
    found = ", ".join(seen.ready.get("wheels", "").splitlines())
    return Verdict(SEEN, f"compiled, and {seen.job.get('steps')} steps trained, with {found}")


def _installer(seen: Evidence) -> Verdict:
    found = seen.ready.get("efa_installer", "")
    return Verdict(SEEN, found) if seen.ok("nodes") and found else _not("it did not run")


# By the first cell of the row.
JUDGES: dict[str, Callable[[Evidence], Verdict]] = {
    "`sandbox/emulator` over moto": _apis,
    "`launch/run_instances.py`, `launch/checks.py`, `ec2/interfaces.py`": _dry_runs,
    "`ec2/quotas.py`": _quotas,
    "`launch/lifecycle.py`": _times,
    "`images.json`": _image,
    "`ec2/addresses.py`, podman's networks": _names,
    "`market/prices.py`": _price,
    "`market/spot.py`": _spot,
    "`market/blocks.py`": _blocks,
    "`ec2/console.py`, the console of hosts": _console,
    "`services/sessions.py`, `server/streams.py`, `standins/controller`": _sessions,
    "`sandbox/network/resolver.py`": _resolver,
    "—": _metadata,
    "`/sandbox-api/address` in `server/control.py`": _address,
    "`sandbox/image.py`, `hosts.py`": _host,
    "`sandbox-init`": _cloud_init,
    "`neuron.list` with a keyring of its own": _neuron_source,
    "`aws-ubuntu-eni-helper`": _helper,
    "`modprobe`, `modinfo`, `dkms`": _modules,
    "`devices.py`": _devices,
    "`standins/neuron.py`": _packages,
    "`standins/tools`": _tools,
    "`standins/wheels.py`, `pip`": _wheels,
    "`standins/efa`": _installer,
}
# Whose evidence has versions of four numbers, which look like addresses.
_VERSIONS = frozenset([_modules, _packages, _wheels, _installer])
# Why others have no occasion to show themselves.
_REASONS = {
    "EKS": "no cluster of EKS is made",
    "`sandbox/parallelcluster`": "no cluster of ParallelCluster is made",
    "`standins/libfabric`": "the type has no EFA",
    "`sandbox-eni`": "the type has one network card",
    "`services/efs.py`": "no file system is made",
    "`services/fsx.py`": "no file system is made",
    "`sandbox-mount-nfs4`, `sandbox_mounts.py`": "no file system is made",
}


def judged(page: str, seen: Evidence) -> list[dict[str, str]]:
    """Each row of the page with its verdict and what that goes by."""
    answers = []
    for row in rows(page):
        judge = JUDGES.get(row.part)
        reason = _REASONS.get(row.part) or _REASONS.get(row.section) or "nothing in a proof shows it"
        found = judge(seen) if judge else _not(reason)
        shown = nameless if judge in _VERSIONS else public
        answers.append(
            {
                "part": row.part,
                "stands_for": row.stands_for,
                "verdict": found.verdict,
                "evidence": shown(found.evidence),
            }
        )
    return answers
