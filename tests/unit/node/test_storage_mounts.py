"""The wanted mounts: what is completed, what is refused, and names that systemd itself would give."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mount_state import (
    Mounted,
    is_sound,
    parse_mountinfo,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mounts import (
    Mount,
    escape_path,
    plan_mounts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

EFS = {"type": "efs", "file_system_id": "fs-0123456789abcdef0", "path": "/home"}
LUSTRE = {"type": "lustre", "file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdef", "path": "/fsx"}
BIND = {"type": "bind", "source": "/fsx/data", "path": "/data"}


def one(**wanted: Any) -> Mount:
    return plan_mounts([wanted], "us-west-2")[0]


def test_efs_gets_the_options_that_amazon_recommends() -> None:
    mount = one(**EFS)
    assert mount.source == "fs-0123456789abcdef0.efs.us-west-2.amazonaws.com:/"
    amazon = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"
    assert mount.options == f"{amazon},nosuid,nodev,_netdev"
    assert (mount.fstype, mount.unit, mount.automount) == ("nfs4", "home", False)


def test_lustre_is_named_by_its_server_and_its_mount_name() -> None:
    assert one(**LUSTRE).source == "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com@tcp:/abcdef"
    assert one(**LUSTRE, dns_name="10.0.0.9").source == "10.0.0.9@tcp:/abcdef"
    first = one(**{**LUSTRE, "mount_name": "", "deployment_type": "SCRATCH_1"})
    assert first.source.endswith("@tcp:/fsx")
    assert one(**LUSTRE).options == "noatime,flock,nosuid,nodev,_netdev"


def test_some_partitions_have_a_domain_of_their_own() -> None:
    assert one(**EFS, region="cn-north-1").source == "fs-0123456789abcdef0.efs.cn-north-1.amazonaws.com.cn:/"
    europe = one(**LUSTRE, region="eusc-de-east-1").source
    assert europe == "fs-0123456789abcdef0.fsx.eusc-de-east-1.amazonaws.eu@tcp:/abcdef"


@pytest.mark.parametrize(
    ("mount", "options", "expected"),
    [
        (LUSTRE, "relatime", "flock,nosuid,nodev,_netdev,relatime"),
        (LUSTRE, "localflock,ro", "noatime,nosuid,nodev,_netdev,localflock,ro"),
        ({"type": "nfs", "source": "a:/x", "path": "/x"}, "soft, timeo=50", "nosuid,nodev,_netdev,soft,timeo=50"),
        (LUSTRE, "suid", "noatime,flock,nodev,_netdev,suid"),
        (LUSTRE, "dev,suid", "noatime,flock,_netdev,dev,suid"),
        (BIND, "ro", "bind,_netdev,ro"),
        (BIND, "rbind", "_netdev,rbind"),
        (
            EFS,
            "vers=4.0,noresvport",
            "rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,nosuid,nodev,_netdev,vers=4.0,noresvport",
        ),
        (LUSTRE, "nofail,x-systemd.requires=a.service", "noatime,flock,nosuid,nodev,_netdev"),
    ],
)
def test_own_options_win_over_the_defaults(mount: dict[str, Any], options: str, expected: str) -> None:
    assert one(**mount, options=options).options == expected


@pytest.mark.parametrize("mount", [EFS, LUSTRE, {"type": "nfs", "source": "a:/x", "path": "/x"}])
def test_what_comes_over_the_network_makes_nobody_root(mount: dict[str, Any]) -> None:
    assert {"nosuid", "nodev"} <= set(one(**mount).options.split(","))
    assert {"nosuid", "nodev"} <= set(one(**mount, options="ro,noatime").options.split(","))


def test_mounting_on_demand_is_an_option_or_a_key() -> None:
    assert one(**LUSTRE, options="x-systemd.automount").automount
    assert one(**LUSTRE, automount="true").automount
    assert not one(**LUSTRE, options="x-systemd.automount", automount=False).automount


def test_what_goes_away_needs_no_source() -> None:
    assert one(type="lustre", path="/fsx", state="absent").source == ""


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/etc", "/etc/x", "/usr", "/usr/bin/", "/proc/x", "/var", "/root", "/run/x", "/dev/x"],
)
def test_a_part_of_the_system_is_never_hidden(path: str) -> None:
    with pytest.raises(TrainiumError, match="would hide a part of the system"):
        one(**{**BIND, "path": path})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"type": "efs"}, "Entry 1 .* has no path"),
        ({**BIND, "path": "data"}, "is no absolute path"),
        ({**BIND, "path": "/data/../etc"}, "is no absolute path"),
        ({**BIND, "path": "/a\nb"}, "control character"),
        ({**BIND, "path": "/a "}, "ends in a space or a backslash"),
        ({**BIND, "path": "/" + "a" * 250}, "too long for the name of a systemd unit"),
        ({**BIND, "type": "smb"}, "type 'smb'"),
        ({**BIND, "fstype": "x"}, "unknown key fstype"),
        ({**BIND, "state": "present"}, "state 'present'"),
        ({**BIND, "mode": "rwx"}, "not an octal mode"),
        ({**BIND, "source": "data"}, "absolute path as its source"),
        ({**BIND, "deployment_type": "SCRATCH_2"}, "none of FSx for Lustre"),
        ({**BIND, "options": "ro, a b"}, "have a space"),
        ({**BIND, "options": "ro\nExecStart=x"}, "control character"),
        ({"type": "nfs", "path": "/x"}, "has no source"),
        ({"type": "nfs", "path": "/x", "source": "server"}, "not of the form server:/directory"),
        ({**EFS, "file_system_id": "efs-1"}, "file_system_id 'efs-1'"),
        ({**EFS, "region": "us"}, "region 'us'"),
        ({**EFS, "dns_name": "a b"}, "is no host name"),
        ({**LUSTRE, "mount_name": ""}, "MountName"),
        ({**LUSTRE, "deployment_type": "PERSISTENT_3"}, "deployment type PERSISTENT_3"),
        ({**LUSTRE, "file_system_version": 2.1}, "file_system_version 2.1 of /fsx is none of FSx for Lustre"),
        ({**BIND, "file_system_version": "2.15"}, "none of FSx for Lustre"),
    ],
)
def test_wrong_mounts_are_refused_in_one_sentence(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainiumError, match=message) as found:
        plan_mounts([wanted], "us-west-2")
    assert "\n" not in str(found.value)


def test_an_entry_that_is_no_dictionary_is_refused() -> None:
    with pytest.raises(TrainiumError, match="Entry 2 of shared_storage_mounts is not a dictionary"):
        plan_mounts([BIND, "/x"])  # type: ignore[list-item]


def test_a_path_that_occurs_twice_is_refused_however_it_is_written() -> None:
    with pytest.raises(TrainiumError, match="/data is given to two mounts"):
        plan_mounts([BIND, {**BIND, "path": "//data/"}])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "-"),
        ("/fsx", "fsx"),
        ("/mnt/a b", "mnt-a\\x20b"),
        ("/a-b/c_d.e", "a\\x2db-c_d.e"),
        ("/.hidden", "\\x2ehidden"),
        ("/é", "\\xc3\\xa9"),
    ],
)
def test_names_of_units(path: str, name: str) -> None:
    assert escape_path(path) == name


@pytest.mark.skipif(shutil.which("systemd-escape") is None, reason="systemd-escape is not here")
@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc")), min_size=1, max_size=12))
def test_names_of_units_are_those_of_systemd(text: str) -> None:
    path = "/x" + text
    if {".", ".."} & set(path.split("/")):
        return
    done = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True)
    assert escape_path(path) == done.stdout.rstrip("\n")


KEYS = ["type", "path", "source", "file_system_id", "options", "mode", "state", "automount", "mount_name", "region"]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=12), st.sampled_from(["efs", "/x", "a:/b"])
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), max_size=3))
def test_any_list_gives_mounts_or_one_sentence(wanted: list[dict[str, Any]]) -> None:
    try:
        mounts = plan_mounts(wanted, "us-west-2")
    except TrainiumError as error:
        assert "\n" not in str(error)
        return
    assert len({mount.path for mount in mounts}) == len(wanted)
    for mount in mounts:
        assert "\n" not in mount.source + mount.path + mount.options


MOUNTINFO = """\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
30 22 0:50 / /home rw - nfs4 fs-1.efs.us-west-2.amazonaws.com:/ rw,vers=4.1
31 22 259:1 /srv/a\\040b /mnt/a\\040b rw,relatime shared:1 master:2 - ext4 /dev/nvme0n1p1 rw
32 22 0:51 / /fsx rw - autofs systemd-1 rw
33 32 0:52 / /fsx rw - lustre 10.0.0.9@tcp:/abcdef rw
broken line
"""


def test_the_mount_on_top_counts_and_escapes_are_undone() -> None:
    found = parse_mountinfo(MOUNTINFO)
    assert found["/mnt/a b"].root == "/srv/a b"
    assert found["/fsx"].fstype == "lustre"
    assert set(found) == {"/", "/home", "/mnt/a b", "/fsx"}


@pytest.mark.parametrize(
    ("path", "source", "fstype", "same", "sound"),
    [
        ("/home", "fs-1.efs.us-west-2.amazonaws.com:/", "nfs4", False, True),
        ("/home", "fs-2.efs.us-west-2.amazonaws.com:/", "nfs4", False, False),
        ("/fsx", "fs-1.fsx.us-west-2.amazonaws.com@tcp:/abcdef", "lustre", False, True),
        ("/fsx", "fs-1.fsx.us-west-2.amazonaws.com@tcp:/other", "lustre", False, False),
        ("/mnt/a b", "/srv/a b", "none", True, True),
        ("/mnt/a b", "/srv/a b", "none", False, False),
        ("/", "/dev/nvme0n1p1", "ext4", False, True),
        ("/", "fs-1:/", "nfs4", False, False),
    ],
)
def test_what_is_mounted_is_compared_with_what_is_wanted(
    path: str, source: str, fstype: str, same: bool, sound: bool
) -> None:
    there: Mounted = parse_mountinfo(MOUNTINFO)[path]
    assert is_sound(there, source, fstype, same) is sound
