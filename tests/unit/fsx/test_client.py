"""How a host gets the Lustre client: every system, the kernels at the edges, and what is refused."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.client import Client, plan_client


def plan(
    system: str, version: str, kernel: str, installed: str = "", *types: str, versions: tuple[str, ...] = ()
) -> Client:
    return plan_client(system, version, kernel, installed, types or ("SCRATCH_2",), "node-1", versions)


@pytest.mark.parametrize(
    ("system", "version", "kernel", "method", "release", "package"),
    [
        ("Ubuntu", "22.04", "6.8.0-1021-aws", "apt", "jammy", "lustre-client-modules-6.8.0-1021-aws"),
        ("Ubuntu", "24.04", "6.8.0-1021-aws", "apt", "noble", "lustre-client-modules-6.8.0-1021-aws"),
        ("Amazon", "2023", "6.1.79-99.167.amzn2023.x86_64", "dnf", "", "lustre-client"),
        ("Amazon", "2023", "6.12.1-1.amzn2023.x86_64", "dnf", "", "lustre-client"),
        ("Amazon", "2", "5.10.144-127.601.amzn2.x86_64", "extras", "lustre", "lustre-client"),
        ("Amazon", "2", "5.10.100-99.1.amzn2.x86_64", "extras", "lustre2.10", "lustre-client"),
        ("Rocky", "9.7", "5.14.0-611.5.1.el9_7.x86_64", "yum", "9", "kmod-lustre-client"),
        ("Rocky", "9.4", "5.14.0-427.13.1.el9_4.x86_64", "yum", "9.4", "kmod-lustre-client"),
    ],
)
def test_every_system_has_its_way(
    system: str, version: str, kernel: str, method: str, release: str, package: str
) -> None:
    client = plan(system, version, kernel)
    assert (client.method, client.release, client.packages[0]) == (method, release, package)


@pytest.mark.parametrize("types", [("SCRATCH_1",), ("PERSISTENT_1", "PERSISTENT_2"), ("",)])
def test_a_client_that_fits_is_kept_on_any_system(types: tuple[str, ...]) -> None:
    assert plan("Debian", "12", "6.1.0-29-amd64", "2.15.6_1fsx", *types) == Client("none")


@pytest.mark.parametrize(
    ("system", "version", "kernel", "installed", "message"),
    [
        ("Debian", "12", "6.1.0-29-amd64", "", "no Lustre client for Debian 12"),
        ("Ubuntu", "20.04", "5.15.0-1051-aws", "", "no Lustre client for Ubuntu 20.04"),
        ("Ubuntu", "24.04", "6.8.0-45-generic", "", "aws kernels only"),
        ("Ubuntu", "24.04", "6.8.0-1021-aws", "2.10.8", r"too old \(2.10.8\): PERSISTENT_2 needs 2.12"),
        ("Amazon", "2", "5.10.100-99.1.amzn2.x86_64", "", "too old .2.10, the only one for kernel 5.10.100"),
        ("Amazon", "2", "6.1.1-1.amzn2.x86_64", "", "no Lustre client for Amazon Linux 2"),
        ("Amazon", "2023", "6.1.78-1.amzn2023.x86_64", "", "update the kernel and reboot"),
        ("Rocky", "9.2", "5.14.0-284.11.1.el9_2.x86_64", "", "no Lustre client in the FSx repository"),
        ("Rocky", "8.9", "4.18.0-513.el8.x86_64", "", "no Lustre client for Rocky 8.9"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(
    system: str, version: str, kernel: str, installed: str, message: str
) -> None:
    with pytest.raises(TrainiumError, match=message) as found:
        plan(system, version, kernel, installed, "SCRATCH_2", "PERSISTENT_2")
    assert str(found.value).count("\n") == 0
    assert "node-1" in str(found.value)


OLD, NEW = "5.10.100-99.1.amzn2.x86_64", "5.10.144-127.601.amzn2.x86_64"


@pytest.mark.parametrize(
    ("kernel", "installed", "versions", "message"),
    [
        (OLD, "", ("2.15",), "too old .2.10, .*: Lustre 2.15 needs 2.12"),
        (NEW, "2.10.8", ("2.12", "2.15"), r"too old \(2.10.8\): Lustre 2.15 needs 2.12"),
        (NEW, "2.15.6_1fsx", ("2.10",), r"too new \(2.15.6_1fsx\) for Lustre 2.10; raise"),
    ],
)
def test_a_client_fits_the_version_of_the_file_system(
    kernel: str, installed: str, versions: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TrainiumError, match=message):
        plan("Amazon", "2", kernel, installed, "SCRATCH_2", versions=versions)


@pytest.mark.parametrize(("kernel", "versions"), [(NEW, ("2.10", "2.15")), (OLD, ("2.12",))])
def test_an_old_client_serves_old_versions(kernel: str, versions: tuple[str, ...]) -> None:
    assert plan("Amazon", "2", kernel, versions=versions).method == "extras"


@pytest.mark.parametrize(
    ("system", "version", "oldest", "older", "method"),
    [
        ("Amazon", "2023", "6.1.79-99.167.amzn2023", "6.1.79-99.166.amzn2023", "dnf"),
        ("Amazon", "2", "5.10.144-127.601.amzn2", "5.10.144-127.600.amzn2", "extras"),
        ("Amazon", "2", "5.4.214-120.368.amzn2", "5.4.214-120.367.amzn2", "extras"),
        ("Amazon", "2", "4.14.294-220.533.amzn2", "4.14.294-220.532.amzn2", "extras"),
    ],
)
def test_each_line_of_kernels_has_an_oldest_that_there_is_the_client_for(
    system: str, version: str, oldest: str, older: str, method: str
) -> None:
    """The guide of FSx for Lustre, "Installing the Lustre client"; there is 2.10 for older ones of Amazon Linux 2."""
    assert plan(system, version, oldest).method == method
    assert plan(system, version, oldest, "", "PERSISTENT_2").release in ("", "lustre")
    with pytest.raises(TrainiumError, match="kernel"):
        plan(system, version, older, "", "PERSISTENT_2")


@pytest.mark.parametrize(
    ("build", "release"), [("70", "9.0"), ("362", "9.3"), ("427", "9.4"), ("503", "9.5"), ("570", "9.6"), ("611", "9")]
)
@pytest.mark.parametrize("system", ["Rocky", "RedHat", "AlmaLinux"])
def test_each_minor_release_of_enterprise_linux_has_a_folder(system: str, build: str, release: str) -> None:
    client = plan(system, "9.1", f"5.14.0-{build}.1.1.el9.x86_64")
    assert client == Client("yum", ["kmod-lustre-client", "lustre-client"], release)
    with pytest.raises(TrainiumError, match=r"boot one of 5\.14\.0-611, -570, -503"):
        plan(system, "9.1", f"5.15.0-{build}.1.1.el9.x86_64")


@pytest.mark.parametrize(
    ("installed", "kind", "fits"),
    [
        ("2.10.0", "SCRATCH_1", True),
        ("2.9.9", "SCRATCH_1", False),
        ("2.10.0", "SCRATCH_2", True),
        ("2.9.9", "SCRATCH_2", False),
        ("2.10.0", "PERSISTENT_1", True),
        ("2.9.9", "PERSISTENT_1", False),
        ("2.12.0", "PERSISTENT_2", True),
        ("2.11.9", "PERSISTENT_2", False),
        ("2.9.9", "OF_TOMORROW", False),
    ],
)
def test_the_oldest_client_of_each_deployment_type(installed: str, kind: str, fits: bool) -> None:
    if fits:
        assert plan("Amazon", "2", NEW, installed, kind).method == "none"
        return
    with pytest.raises(TrainiumError, match=r"too old .*upgrade the client or the image\.$"):
        plan("Amazon", "2", NEW, installed, kind)


def test_a_client_that_is_installed_serves_every_version_that_goes_with_it() -> None:
    assert plan("Amazon", "2", NEW, "2.12.8", versions=("2.10", "2.12", "2.15")).method == "none"
    with pytest.raises(TrainiumError, match="too new"):
        plan("Amazon", "2", NEW, "2.13.0", versions=("2.15", "2.10"))
