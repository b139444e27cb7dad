"""Units and lists of packages of the role shared_storage, as systemd, apt and dnf read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rendered import FACTS, evaluated, ini, rendered, unit

BIND = {"type": "bind", "path": "/data", "source": "/fsx/d", "fstype": "none", "options": "bind,_netdev"}
EFS = {"type": "efs", "path": "/home", "source": "fs-1.efs:/", "fstype": "nfs4", "options": "hard,_netdev"}
CLIENT = {"__shared_storage_client": {"release": "noble"}}


def mount(**changes: Any) -> dict[str, dict[str, list[str]]]:
    return unit(rendered("shared_storage", "mount.j2", mount={**EFS, **changes}, shared_storage_timeout="45"))


def test_a_mount_is_that_of_the_plan_and_gives_up_in_time() -> None:
    found = mount()
    assert found["Mount"] == {
        "What": ["fs-1.efs:/"],
        "Where": ["/home"],
        "Type": ["nfs4"],
        "Options": ["hard,_netdev"],
        "TimeoutSec": ["45"],
    }
    assert found["Unit"]["Description"] == ["efs at /home"]
    assert found["Install"]["WantedBy"] == ["remote-fs.target"]


def test_a_file_system_of_the_network_waits_for_it() -> None:
    found = mount()["Unit"]
    assert found["Wants"] == found["After"] == ["network-online.target"]
    # remote-fs.target, and so a login, is only reached with it.
    assert found["Before"] == ["remote-fs.target"]
    assert "RequiresMountsFor" not in found


def test_a_bind_mount_waits_for_its_source() -> None:
    found = unit(rendered("shared_storage", "mount.j2", mount={**BIND, "source": '/a "b" 100%\\'}))
    assert found["Unit"]["RequiresMountsFor"] == ['"/a \\"b\\" 100%%\\\\"']
    assert "Wants" not in found["Unit"] and "After" not in found["Unit"]
    assert found["Unit"]["Before"] == ["remote-fs.target"]


@pytest.mark.parametrize("template", ["mount.j2", "automount.j2"])
def test_a_percent_sign_is_none_of_systemd_s_specifiers(template: str) -> None:
    given = {"path": "/a%h", "source": "h:/%i", "options": "x=%n"}
    found = unit(rendered("shared_storage", template, mount={**EFS, **given}))
    texts = [value for section in found.values() for values in section.values() for value in values]
    assert sum(value.count("%%") for value in texts) == (4 if template == "mount.j2" else 2)
    assert not [value for value in texts if "%" in value.replace("%%", "")]


def test_on_demand_it_is_mounted_when_somebody_looks_and_stays() -> None:
    found = unit(rendered("shared_storage", "automount.j2", mount=EFS))
    assert found["Unit"]["Description"] == ["efs at /home on demand"]
    assert found["Automount"] == {"Where": ["/home"], "TimeoutIdleSec": ["0"]}
    # The point is there before whoever waits for remote file systems, and needs no network itself.
    assert found["Unit"]["Before"] == ["remote-fs.target"]
    assert "After" not in found["Unit"]
    assert found["Install"]["WantedBy"] == ["remote-fs.target"]


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    (tmp_path / "home.mount").write_text(rendered("shared_storage", "mount.j2", mount=EFS))
    (tmp_path / "home.automount").write_text(rendered("shared_storage", "automount.j2", mount=EFS))
    try:
        done = subprocess.run(
            ["systemd-analyze", "verify", "home.mount", "home.automount"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("systemd is not here")
    assert not [line for line in done.stderr.splitlines() if "home." in line], done.stderr


def test_units_are_made_for_what_is_mounted() -> None:
    owner = {"owner": "root", "group": "root", "mode": "0755"}
    mounts = [
        {**EFS, **owner, "unit": "home", "state": "mounted", "automount": True},
        {**BIND, **owner, "unit": "data", "state": "mounted", "automount": False},
        {**BIND, **owner, "unit": "old", "path": "/old", "state": "absent", "automount": True},
    ]
    text = rendered("shared_storage", "units.j2", __shared_storage_plan={"mounts": mounts})
    found = json.loads(text)
    keys = ("path", "unit", "source", "fstype", "state", "owner", "group", "mode")
    assert [{key: one[key] for key in keys} for one in found] == [{key: one[key] for key in keys} for one in mounts]
    kinds = [
        [unit(one[f"{kind}_unit"]).get(kind.title()) is not None for kind in ("mount", "automount")] for one in found
    ]
    assert kinds == [[True, True], [True, False], [False, False]]
    assert unit(found[1]["mount_unit"])["Mount"]["What"] == ["/fsx/d"]


def test_the_scratch_volume_is_there_before_jobs_are() -> None:
    given = {"shared_storage_scratch_path": "/nvme", "shared_storage_scratch_mode": "0755"}
    found = unit(rendered("shared_storage", "scratch.service.j2", **given))
    service = found["Service"]
    assert service["ExecStart"][0].split() == [
        *("/usr/bin/python3", "/usr/local/lib/trainium-scratch/scratch.py", "make", "/nvme", "xfs", "0755"),
    ]
    assert found["Unit"]["Before"] == ["slurmd.service"]
    # All devices are known by then: one that came later would not be part of the array.
    assert found["Unit"]["Wants"] == ["systemd-udev-settle.service"]
    assert {"systemd-udev-settle.service", "local-fs.target"} == set(found["Unit"]["After"][0].split())
    # It ends, and counts as started as long as the machine runs.
    assert (service["Type"], service["RemainAfterExit"]) == (["oneshot"], ["yes"])
    # A oneshot has no limit of its own, and an array of 8 TB takes a while.
    assert 60 <= int(service["TimeoutStartSec"][0]) <= 600
    assert found["Unit"]["Description"][0].endswith("/nvme")
    assert found["Install"]["WantedBy"] == ["multi-user.target"]


def test_packages_for_lustre_are_only_taken_with_amazon_s_signature() -> None:
    line = rendered("shared_storage", "lustre.list.j2", **CLIENT).splitlines()[-1]
    key = evaluated("shared_storage", "__shared_storage_keyring")
    address = "https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu"
    assert line.split() == ["deb", f"[signed-by={key}]", address, "noble", "main"]
    facts = {"ansible_facts": FACTS["RedHat"], "__shared_storage_client": {"release": "9.4"}}
    (repository,) = ini(rendered("shared_storage", "lustre.repo.j2", **facts)).values()
    key = evaluated("shared_storage", "__shared_storage_yum_key")
    assert repository["gpgkey"] == f"file://{key}" and key.startswith("/etc/pki/rpm-gpg/")
    assert (repository["gpgcheck"], repository["enabled"]) == ("1", "1")
    # dnf asks for a name as well.
    assert repository["name"]
    assert repository["baseurl"] == "https://fsx-lustre-client-repo.s3.amazonaws.com/el/9.4/$basearch"
