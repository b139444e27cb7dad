"""The files that the role slurm writes: units as systemd reads them, configuration of Slurm and of its database."""

from __future__ import annotations

import subprocess
from configparser import RawConfigParser
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.rendered import FACTS, evaluated, ini, rendered, unit

CLUSTER: dict[str, Any] = {"groups": {"head": ["head"], "compute": ["n1", "n2"]}}
HARDWARE = {"CPUs": "8", "Boards": "1", "SocketsPerBoard": "1", "CoresPerSocket": "8", "RealMemory": "32000"}


def text(template: str, **given: Any) -> str:
    return rendered("slurm", template, **{**CLUSTER, **given})


def words(line: str) -> dict[str, str]:
    """A line of Slurm's, or what a node has."""
    return dict(word.split("=", 1) for word in line.split())


def parameters(shown: str) -> dict[str, str]:
    lines = [line for line in shown.splitlines() if line and line[0] != "#"]
    assert all("=" in line for line in lines)
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd"])
def test_daemons_start_with_their_configuration_after_munge_and_the_network(daemon: str) -> None:
    found = unit(text("daemon.service.j2", __slurm_daemon=daemon))
    program, *options = found["Service"]["ExecStart"][0].split()
    assert (program, options) == (f"{evaluated('slurm', '__slurm_prefix')}/sbin/{daemon}", ["-D"])
    # In the foreground, which is what simple means.
    assert found["Service"]["Type"] == ["simple"]
    # Nobody could log in to it without; shared folders have its logs, or the programs of jobs.
    assert found["Unit"]["Requires"] == ["munge.service"]
    assert set(found["Unit"]["After"][0].split()) == {"network-online.target", "munge.service", "remote-fs.target"}
    assert found["Unit"]["Wants"] == ["network-online.target"]
    assert found["Unit"]["ConditionPathExists"] == ["/etc/slurm/slurm.conf"]
    # A hangup has both read slurm.conf again (slurmctld(8), slurmd(8)).
    assert found["Service"]["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert found["Service"]["TasksMax"] == ["infinity"]
    assert int(found["Service"]["LimitNOFILE"][0]) >= 65536
    assert found["Install"]["WantedBy"] == ["multi-user.target"]
    assert ("controller" in found["Unit"]["Description"][0]) == (daemon == "slurmctld")


def test_a_daemon_that_was_killed_is_started_again_but_not_one_that_refuses_its_configuration() -> None:
    written = evaluated("slurm", "__slurm_drop_ins")
    assert set(written) == {
        f"/etc/systemd/system/{name}.service.d/10-trainium.conf"
        for name in ("munge", "slurmctld", "slurmd", "slurmdbd")
    }
    for content in written.values():
        # Signals and timeouts, and no exit code (systemd.service(5), the table of Restart).
        assert unit(content)["Service"]["Restart"] == ["on-abnormal"]
        # Ten starts in a row take longer than ten pauses, and less than the time in which they are counted.
        pause, limit = int(unit(content)["Service"]["RestartSec"][0]), unit(content)["Unit"]
        assert 0 < 1.5 * pause * int(limit["StartLimitBurst"][0]) < int(limit["StartLimitIntervalSec"][0])


@pytest.mark.parametrize("source", ["packages", "repository", "archive"])
@pytest.mark.parametrize("missing", [0, 1, 4])
def test_a_node_without_that_is_configured_and_not_installed_anew(source: str, missing: int) -> None:
    lines = evaluated("slurm", "__slurm_wanted_drop_ins", **CLUSTER)
    content = evaluated("slurm", "__slurm_drop_in").encode()
    assert lines[0].split()[2:] == [
        sha256(content).hexdigest(),
        "/etc/systemd/system/munge.service.d/10-trainium.conf",
    ]
    given: dict[str, Any] = {**CLUSTER, "slurm_source": source}
    installed = evaluated("slurm", "__slurm_wanted_installed", **given)
    found = {"files": installed + lines[missing:], "missing_packages": [], "missing_programs": []}
    given["__slurm_found"] = found
    assert evaluated("slurm", "__slurm_drop_ins_differ", **given) is (missing > 0)
    assert evaluated("slurm", "__slurm_incomplete", **given) is False
    # The node is asked for them.
    assert {line.split()[-1] for line in lines} <= set(evaluated("slurm", "__slurm_looked_at", **given))


def test_jobs_outlive_slurmd_and_have_its_limits() -> None:
    node, controller = (
        unit(text("daemon.service.j2", __slurm_daemon=one))["Service"] for one in ("slurmd", "slurmctld")
    )
    # Only the daemon is ended, and the cgroups below it are its own (Slurm's guide to cgroup v2).
    assert (node["KillMode"], node["Delegate"]) == (["process"], ["yes"])
    # EFA needs locked memory, and the many ranks and connections of a job many files.
    assert (node["LimitMEMLOCK"], node["LimitSTACK"]) == (["infinity"], ["infinity"])
    assert int(node["LimitNOFILE"][0]) > int(controller["LimitNOFILE"][0])
    assert not {"KillMode", "Delegate", "LimitMEMLOCK", "LimitSTACK"} & set(controller)


def test_munge_runs_as_its_own_user_once_it_has_a_key() -> None:
    found = unit(text("munge.service.j2"))
    service = found["Service"]
    assert service["ExecStart"] == [f"{evaluated('slurm', '__slurm_prefix')}/sbin/munged"]
    # It goes into the background by itself, and writes its number where it was built to.
    assert (service["Type"], service["PIDFile"]) == (["forking"], ["/run/munge/munged.pid"])
    assert (service["User"], service["Group"]) == (["munge"], ["munge"])
    # The socket in that folder is for everybody.
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryMode"]) == (["munge"], ["0755"])
    # What is added to it has another, as for the packages' own unit; a changed unit would be installed anew.
    assert service["Restart"] == ["on-abort"]
    assert found["Unit"]["ConditionPathExists"] == ["/etc/munge/munge.key"]
    # What it signs is good for minutes, by the clock.
    assert set(found["Unit"]["After"][0].split()) == {"network.target", "time-sync.target"}
    assert found["Install"]["WantedBy"] == ["multi-user.target"]


def test_systemd_understands_every_line_of_the_units(tmp_path: Path) -> None:
    for name in ("munge", "slurmd", "slurmctld"):
        template = "munge" if name == "munge" else "daemon"
        shown = text(f"{template}.service.j2", __slurm_daemon=name, __slurm_prefix="/usr")
        program = unit(shown)["Service"]["ExecStart"][0].split()[0]
        (tmp_path / f"{name}.service").write_text(shown.replace(program, "/bin/true"))
    try:
        command = ["systemd-analyze", "verify", "--man=no", "munge.service", "slurmd.service", "slurmctld.service"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("systemd is not here")
    assert not [line for line in done.stderr.splitlines() if ".service:" in line and "slurm" in line], done.stderr


@pytest.mark.parametrize(
    ("devices", "files", "line"),
    [
        ((16, 16), (16, 16), ["NodeName=n[1-2] Name=neuron File=/dev/neuron[0-15]"]),
        ((1, 0), (1, 0), ["NodeName=n1 Name=neuron File=/dev/neuron0"]),
        # slurmd does not start where a file is named that is not there.
        ((16, 16), (15, 16), ["NodeName=n1 Name=neuron Count=16", "NodeName=n2 Name=neuron File=/dev/neuron[0-15]"]),
        ((1, 1), (0, 2), ["NodeName=n1 Name=neuron Count=1", "NodeName=n2 Name=neuron File=/dev/neuron0"]),
        ((0, 0), (0, 0), []),
    ],
)
def test_what_slurm_is_told_of_neuron_devices(
    devices: tuple[int, int], files: tuple[int, int], line: list[str]
) -> None:
    hosts: dict[str, Any] = {
        f"n{number}": {"__slurm_devices": count, "__slurm_found": {"neuron_device_files": there}}
        for number, (count, there) in enumerate(zip(devices, files), start=1)
    }
    for given in ({"hostvars": hosts}, {"hostvars": {}, "__slurm_seen": hosts}):
        shown = text("gres.conf.j2", **given).splitlines()
        assert [one for one in shown if one and one[0] != "#"] == line


@pytest.mark.parametrize(
    ("memory", "percent", "wanted"),
    [
        ("32000", 95, "30208"),
        ("32000", 100, "32000"),
        ("524288", 95, "497920"),
        ("600", 95, "512"),
        ("256", 100, "256"),
    ],
)
def test_some_memory_is_left_to_the_system(memory: str, percent: int, wanted: str) -> None:
    given = {"__slurm_found": {"hardware": {**HARDWARE, "RealMemory": memory}}, "slurm_memory_percent": percent}
    found = words(text("hardware.j2", **given, __slurm_own_devices=0))
    # In steps, so that nodes that differ by a page are of one kind.
    assert found == {**HARDWARE, "RealMemory": wanted}
    assert int(wanted) % 256 == 0


def test_a_node_has_its_devices_and_what_the_user_gives_wins() -> None:
    given = {"__slurm_found": {"hardware": HARDWARE}, "slurm_node_parameters": {"RealMemory": 1000, "Weight": 2}}
    found = words(text("hardware.j2", **given, __slurm_own_devices=16))
    assert found == {**HARDWARE, "RealMemory": "1000", "Gres": "neuron:16", "Weight": "2"}
    assert text("hardware.j2", **given, __slurm_own_devices=1).count("Gres=neuron:1 ") == 1


def test_nodes_of_one_kind_share_a_line_and_the_partition_has_all() -> None:
    hosts = {"n1": {"__slurm_hardware": "CPUs=8"}, "n2": {"__slurm_hardware": "CPUs=8"}, "n3": {}}
    given = {
        "hostvars": hosts,
        "slurm_compute_nodes": ["n1", "n2", "n3"],
        "slurm_extra_parameters": {"MpiDefault": "pmix"},
    }
    lines = text("slurm.conf.j2", **given).splitlines()
    assert [line.split() for line in lines if line.startswith("NodeName=")] == [
        ["NodeName=n[1-2]", "CPUs=8", "State=UNKNOWN"],
        ["NodeName=n3", "State=UNKNOWN"],
    ]
    (partition,) = (words(line) for line in lines if line.startswith("PartitionName="))
    assert partition == {
        "PartitionName": "compute",
        "Nodes": "ALL",
        "Default": "YES",
        "State": "UP",
        "MaxTime": "INFINITE",
        "OverSubscribe": "EXCLUSIVE",
    }
    assert "OverSubscribe=NO" in text("slurm.conf.j2", **given, slurm_exclusive=False)
    # What the user gives wins, and is there once.
    assert [line for line in lines if line.startswith("MpiDefault=")] == ["MpiDefault=pmix"]
    seen = text("slurm.conf.j2", **{**given, "hostvars": {}, "__slurm_seen": hosts})
    assert seen.splitlines() == lines


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, set()),
        ({"slurm_accounting": True}, {"AccountingStorageHost"}),
        ({"slurm_neuron_gres": True}, {"GresTypes"}),
        (
            {
                "slurm_neuron_gres": True,
                "slurm_accounting": True,
                "slurm_prolog": {"a": "b"},
                "slurm_epilog": {"a": "b"},
            },
            {"AccountingStorageHost", "GresTypes", "AccountingStorageTRES", "Prolog", "Epilog"},
        ),
    ],
)
def test_only_some_clusters_have_some_parameters(given: dict[str, Any], names: set[str]) -> None:
    shown = text("slurm.conf.j2", **given, hostvars={"n1": {}, "n2": {}})
    optional = {"AccountingStorageHost", "GresTypes", "AccountingStorageTRES", "Prolog", "Epilog"}
    assert {line.split("=")[0] for line in shown.splitlines()} & optional == names


def test_jobs_keep_to_their_cores_and_memory() -> None:
    found = parameters(text("cgroup.conf.j2"))
    # Devices are not: what is no GRES, as those of EFA, would be out of reach.
    assert found == {"ConstrainCores": "yes", "ConstrainRAMSpace": "yes", "ConstrainDevices": "no"}


def test_accounting_is_reached_by_munge_and_keeps_to_the_socket_of_its_database() -> None:
    found = parameters(text("slurmdbd.conf.j2"))
    assert found == {
        "AuthType": "auth/munge",
        "DbdHost": "head",
        "SlurmUser": "slurm",
        "LogFile": "/var/log/slurm/slurmdbd.log",
        "PidFile": "/run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": "slurm",
        "StorageLoc": "slurm_acct_db",
    }
    parser = RawConfigParser(allow_no_value=True)
    parser.read_string(text("mariadb.cnf.j2"))
    database = dict(parser.items("mysqld"))
    assert "skip-networking" in database
    # slurmdbd complains below these (Slurm's guide to accounting, "MySQL Configuration").
    assert int((database["innodb_buffer_pool_size"] or "").removesuffix("M")) >= 256
    assert int(database["innodb_lock_wait_timeout"] or "0") >= 900


def test_packages_from_a_repository_of_ones_own_are_only_taken_signed() -> None:
    own = {"slurm_repository": "https://example.com/slurm stable main"}
    line = text("repository.list.j2", **own).splitlines()[-1]
    place = evaluated("slurm", "__slurm_repository_key", **CLUSTER)
    assert line == f"deb [signed-by={place}] https://example.com/slurm stable main"
    facts = {"ansible_facts": FACTS["RedHat"], "slurm_repository": "https://example.com/el9"}
    (repository,) = ini(text("repository.repo.j2", **facts)).values()
    place = evaluated("slurm", "__slurm_repository_key", **CLUSTER, ansible_facts=FACTS["RedHat"])
    assert repository == {
        "name": "Slurm",
        "baseurl": "https://example.com/el9",
        "enabled": "1",
        "gpgcheck": "1",
        "gpgkey": f"file://{place}",
    }
