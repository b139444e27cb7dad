"""The wanted mounts: what is completed, what is refused, and names that systemd itself would give."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
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


@pytest.mark.parametrize(
    ("own", "dropped"),
    [
        ("soft", "hard"),
        ("softerr", "hard"),
        ("resvport", "noresvport"),
        ("vers=3", "nfsvers=4.1"),
        ("nfsvers=3", "nfsvers=4.1"),
        ("timeo=5", "timeo=600"),
        ("dev", "nodev"),
        ("suid", "nosuid"),
        ("_netdev", ""),
        ("auto", "auto"),
        ("nofail", "nofail"),
        ("x-systemd.mount-timeout=5", "x-systemd.mount-timeout=5"),
    ],
)
def test_an_option_takes_the_place_of_what_it_contradicts_and_of_nothing_else(own: str, dropped: str) -> None:
    before, after = one(**EFS).options.split(","), one(**EFS, options=f" {own},,").options.split(",")
    assert set(before) - set(after) == ({dropped} & set(before))
    assert set(after) - set(before) == ({own} - {dropped, "_netdev"})
    assert len(set(after)) == len(after)


@pytest.mark.parametrize("own", ["atime", "relatime", "strictatime", "noflock", "localflock"])
def test_options_of_lustre_contradict_each_other_too(own: str) -> None:
    assert set(one(**LUSTRE).options.split(",")) - set(one(**LUSTRE, options=own).options.split(",")) == {
        "flock" if "flock" in own else "noatime"
    }


def test_nfs_waits_for_its_server_and_is_of_the_type_that_mount_knows() -> None:
    mount = one(type="nfs", source="a:/x", path="/x")
    assert (mount.options, mount.fstype, mount.source) == ("hard,nosuid,nodev,_netdev", "nfs", "a:/x")
    assert [one(**given).fstype for given in (EFS, LUSTRE, BIND)] == ["nfs4", "lustre", "none"]


def test_what_a_mount_is_given_is_what_it_has() -> None:
    given = {**LUSTRE, "owner": "ann", "group": "team", "mode": "0770", "deployment_type": "persistent_2"}
    mount = one(**{**given, "path": "//fsx//a/"}, file_system_version="2.15")
    assert (mount.owner, mount.group, mount.mode) == ("ann", "team", "0770")
    assert (mount.deployment_type, mount.file_system_version) == ("PERSISTENT_2", "2.15")
    assert (mount.path, mount.unit, mount.state, mount.type) == ("/fsx/a", "fsx-a", "mounted", "lustre")
    plain = one(**BIND, owner="", mode=None)
    assert (plain.owner, plain.group, plain.mode) == (None, None, None)
    assert (plain.deployment_type, plain.file_system_version, plain.automount) == ("", "", False)
    assert one(**{**BIND, "source": "//fsx//data/"}).source == "/fsx/data"


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "1", True, 1])
def test_words_that_mean_yes(word: Any) -> None:
    assert one(**BIND, automount=word).automount
    assert not one(**BIND, automount=f"un{word}").automount


def test_the_region_of_a_mount_wins_over_that_of_all_and_a_name_over_both() -> None:
    assert ".us-east-1." in one(**EFS, region="us-east-1").source
    assert ".us-gov-west-1.amazonaws.com:" in one(**EFS, region="us-gov-west-1").source
    assert one(**{**EFS, "file_system_id": ""}, dns_name="10.0.0.1").source == "10.0.0.1:/"
    with pytest.raises(TrainiumError, match="has the region ''; give one such as us-west-2"):
        plan_mounts([EFS])


def test_mounting_on_demand_is_an_option_or_a_key() -> None:
    assert one(**LUSTRE, options="x-systemd.automount").automount
    assert one(**LUSTRE, automount="true").automount
    assert not one(**LUSTRE, options="x-systemd.automount", automount=False).automount


def test_what_goes_away_needs_no_source() -> None:
    assert one(type="lustre", path="/fsx", state="absent").source == ""


@pytest.mark.parametrize(
    "path",
    [
        *("/var/lib", "/var/log", "/boot", "/bin/x", "/lib64", "/sbin", "/sys/x", "/usr/lib/x"),
        "/usr/sbin",
        "/",
        "//",
        "/etc",
        "/etc/x",
        "/usr",
        "/usr/bin/",
        "/proc/x",
        "/var",
        "/root",
        "/run/x",
        "/dev/x",
    ],
)
def test_a_part_of_the_system_is_never_hidden(path: str) -> None:
    with pytest.raises(TrainiumError, match="would hide a part of the system"):
        one(**{**BIND, "path": path})


@pytest.mark.parametrize("path", ["/etcetera", "/usr/local", "/var/lib/x", "/opt", "/srv", "/root/x", "/home"])
def test_what_lies_beside_the_system_or_is_made_for_data_may_be_used(path: str) -> None:
    assert one(**{**BIND, "path": path}).path == path


def test_the_longest_name_of_a_unit_is_one_that_the_file_system_takes() -> None:
    longest = "/" + "a" * (255 - len(".automount"))
    assert f"{one(**{**BIND, 'path': longest}).unit}.automount" == "a" * 245 + ".automount"
    with pytest.raises(TrainiumError, match="too long for the name of a systemd unit"):
        one(**{**BIND, "path": f"{longest}a"})


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
        ({**BIND, "path": "/a\\"}, "ends in a space or a backslash"),
        ({**BIND, "path": "/./a"}, "is no absolute path"),
        ({**BIND, "path": "/a\x7f"}, "control character"),
        ({**BIND, "mode": "75"}, "The mode 75 of /data is not an octal mode"),
        ({**BIND, "mode": "07555"}, "not an octal mode"),
        ({**BIND, "mode": "789"}, "not an octal mode"),
        ({**BIND, "source": "/a/../etc"}, "absolute path as its source, not '/a/../etc'"),
        ({"type": "nfs", "path": "/x", "source": "a b:/c"}, "not of the form server:/directory"),
        ({**EFS, "file_system_id": "fs-0123456"}, "file_system_id 'fs-0123456'"),
        ({**EFS, "file_system_id": "fs-0123456g"}, "give one such as fs-0123456789abcdef0, or a dns_name"),
        ({**EFS, "dns_name": "-a"}, "is no host name"),
        ({**EFS, "region": "us-west"}, "region 'us-west'"),
        ({**LUSTRE, "mount_name": "abcdefghi"}, "MountName"),
        ({**LUSTRE, "mount_name": "a/b"}, "MountName"),
        ({**LUSTRE, "mount_name": "", "deployment_type": "SCRATCH_2"}, "MountName"),
        ({**BIND, "surprise": 1, "another": 2}, "unknown key another; known are automount, deployment_type, dns_name"),
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
