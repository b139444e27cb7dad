"""The matrix of SDK releases: what fits together is planned, what cannot work is refused with what does."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.filter.hardware import neuron_sdk
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import (
    PACKAGES,
    NeuronSdkError,
    Request,
    nearest,
    numbers,
    plan,
    torchvision_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import (
    RELEASES,
    SYSTEMS,
    find_system,
)
from hypothesis import given
from hypothesis import strategies as st

UBUNTU = ("Ubuntu", "24.04")


def refusal(*arguments: str, **options: object) -> str:
    with pytest.raises(NeuronSdkError) as caught:
        plan(Request(*arguments, **options))  # type: ignore[arg-type]
    return str(caught.value)


def test_the_default_release_has_the_versions_of_the_release_page() -> None:
    found = plan(Request("2.29.1", *UBUNTU, python="3.12"))
    assert found.packages == {
        "aws-neuronx-dkms": "2.27.4.0",
        "aws-neuronx-collectives": "2.31.24.0",
        "aws-neuronx-runtime-lib": "2.31.24.0",
        "aws-neuronx-tools": "2.29.22.0",
    }
    assert found.pip == ["torch-neuronx==2.9.0.2.13.26312", "neuronx-cc==2.24.8799.0"]
    assert found.codename == "noble"


def test_a_release_without_pytorch_is_refused_where_pytorch_is_wanted() -> None:
    assert refusal("2.32.0", *UBUNTU).endswith("set neuron_sdk_version to 2.29.1")
    assert plan(Request("2.32.0", *UBUNTU, torch="")).pip == []


@pytest.mark.parametrize(
    ("sdk", "family"), [("2.30.0", "trn1"), ("2.31.1", "trn1n"), ("2.31.1", "trn2"), ("2.33.0", "inf2")]
)
def test_a_release_that_does_not_train_on_the_instances_is_refused(sdk: str, family: str) -> None:
    """PyTorch/XLA trains up to SDK 2.29; TorchNeuron is for trn2 and trn3."""
    said = refusal(sdk, *UBUNTU, family=family)
    assert f"does not support training on {family} with PyTorch of its SDK {sdk}" in said
    assert plan(Request(sdk, *UBUNTU, torch="", family=family)).pip == []


def test_other_instances_and_inference_go_on() -> None:
    assert plan(Request("2.31.1", *UBUNTU, family="inf2")).pip[0] == "torch-neuronx==2.9.0.2.15.32035"
    assert plan(Request("2.31.1", *UBUNTU, family="m5")).pip
    assert neuron_sdk("2.31.1", *UBUNTU, instance_type="inf2.xlarge")["refused"] == ""
    assert "set neuron_sdk_version to 2.29.1" in neuron_sdk("2.31.1", *UBUNTU, instance_type="trn2.48xlarge")["refused"]


def test_torchneuron_on_its_system_and_its_instances() -> None:
    for family in ("trn2", "trn2u", "trn3"):
        found = plan(Request("2.33.0", "Ubuntu", "26.04", python="3.14", family=family))
        assert found.pip == ["torch-neuronx==2.14.3.0.*", "neuronx-cc==2.28.7631.0", "nki==0.7.*"]
        assert found.codename == "resolute"
    assert "does not run on Ubuntu 24.04" in refusal("2.33.0", *UBUNTU, family="trn2")
    assert "whose first release is 2.33.0" in refusal("2.31.1", "Ubuntu", "26.04", family="inf2")


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (
            ("2.31.1", "Ubuntu", "22.04"),
            {"family": "inf2"},
            "does not support Ubuntu 22.04, whose last release is 2.29.1",
        ),
        (("2.29.1", *UBUNTU), {"python": "3.9"}, "needs Python 3.10 to 3.12, and the interpreter is 3.9"),
        (("2.29.1", "Amazon", "2023"), {"python": "3.12"}, "does not run on Amazon Linux 2023"),
        (("2.31.1", "Debian", "12"), {}, "AWS serves no Neuron packages for Debian 12"),
        (("2.31.1", "Fedora", "42"), {}, "Neuron has no packages for Fedora 42: use Ubuntu 24.04"),
        (("2.31", *UBUNTU), {}, "Neuron SDK 2.31 is not one that this collection knows"),
        (("2.29.1", *UBUNTU), {"torch": "2.8"}, "set neuron_sdk_version to 2.28.1"),
        (("2.29.1", *UBUNTU), {"versions": {"aws-neuronx-dkms": "2.26.10.0"}}, "is older than"),
        (("2.28.1", *UBUNTU), {"versions": {"aws-neuronx-dkms": "2.29.0.0"}}, "needs aws-neuronx-runtime-lib 2.33"),
        (("2.29.1", *UBUNTU), {"versions": {"aws-neuron-dkms": "1.0"}}, "which is no package of Neuron"),
    ],
)
def test_what_cannot_work_is_refused(arguments: tuple[str, ...], options: dict[str, object], sentence: str) -> None:
    assert sentence in refusal(*arguments, **options)


def test_a_mirror_may_have_what_aws_has_not() -> None:
    assert plan(Request("2.29.1", "Debian", "12", python="3.11", mirror=True)).codename == "bookworm"


def test_an_interpreter_that_no_release_supports_gets_advice_about_the_interpreter() -> None:
    assert "install Python 3.10 to 3.12 and name it in neuron_venv_python" in refusal("2.29.1", *UBUNTU, python="3.14")


@given(
    st.sampled_from([release.sdk for release in RELEASES]),
    st.sampled_from(sorted(SYSTEMS)),
    st.sampled_from(["", "latest", "2.9", "2.8", "2.5", "1.13", "1.12", "9"]),
    st.sampled_from(["", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]),
    st.booleans(),
    st.sampled_from(["trn1", "trn2", "trn3", "inf2", "m5"]),
)
def test_the_advised_release_always_works(
    sdk: str, system: tuple[str, str], torch: str, python: str, mirror: bool, family: str
) -> None:
    request = Request(sdk, *system, torch=torch, python=python, mirror=mirror, family=family)
    try:
        found = plan(request)
    except NeuronSdkError as error:
        advice = str(error).rsplit("set neuron_sdk_version to ", 1)
        if len(advice) == 2:
            assert plan(request._replace(sdk=advice[1])).sdk == advice[1]
    else:
        assert sorted(found.packages) == sorted(PACKAGES)
        assert bool(found.pip) == bool(torch)


def test_the_matrix_is_in_order_and_its_drivers_fit_their_runtimes() -> None:
    assert [release.sdk for release in RELEASES] == sorted((r.sdk for r in RELEASES), key=numbers, reverse=True)
    for release in RELEASES:
        assert bool(release.torch) == bool(release.pythons[0])
        assert plan(Request(release.sdk, *UBUNTU, torch="")).packages["aws-neuronx-dkms"] == release.driver


@pytest.mark.parametrize(
    ("version", "parts"),
    [
        ("2.9.0.2", (2, 9, 0, 2)),
        ("2.14.*", (2, 14, 0)),
        ("3.12rc1", (3, 12)),
        ("x.1", (0, 1)),
        ("", (0,)),
        ("10", (10,)),
    ],
)
def test_a_version_as_numbers(version: str, parts: tuple[int, ...]) -> None:
    assert numbers(version) == parts


def test_a_torch_is_named_by_its_first_numbers_and_no_other_begins_with_them() -> None:
    request = Request("2.29.1", *UBUNTU)
    for wanted in ("2.9", "2.9.0", "2.9.0.2.13.26312", "latest"):
        assert plan(request._replace(torch=wanted)).pip[0] == "torch-neuronx==2.9.0.2.13.26312"
    for wanted in ("2.9.", "2.9.0.2.13.2", "9"):
        assert "does not run on" in refusal("2.29.1", *UBUNTU, torch=wanted)


def test_the_interpreter_is_judged_by_its_first_two_numbers() -> None:
    for python in ("3.10", "3.10.0", "3.12", "3.12.11"):
        assert plan(Request("2.29.1", *UBUNTU, python=python)).pip
    for python in ("3.9.22", "3.13.0", "2.11"):
        assert f"and the interpreter is {python}" in refusal("2.29.1", *UBUNTU, python=python)


def test_the_nearest_release_is_advised_and_of_two_the_newer() -> None:
    order = [release.sdk for release in RELEASES]
    system = find_system(*UBUNTU)
    assert system
    everything = Request("", *UBUNTU, torch="")
    # Whatever works is its own nearest; of what lies between two it is the newer, and beyond all it is the last.
    assert [nearest(everything._replace(sdk=sdk), system) for sdk in order] == order
    assert nearest(everything._replace(sdk="99.0.0"), system) == order[0]
    assert nearest(everything._replace(sdk="2.0.0"), system) == order[-1]
    between = f"{order[2]}.1"
    assert nearest(everything._replace(sdk=between), system) == order[2]
    working = [index for index, sdk in enumerate(order) if not fails(sdk)]
    for wanted, sdk in enumerate(order):
        near = nearest(Request(sdk, *UBUNTU), system)
        assert near and abs(order.index(near) - wanted) == min(abs(index - wanted) for index in working)


def fails(sdk: str) -> bool:
    try:
        plan(Request(sdk, *UBUNTU))
    except NeuronSdkError:
        return True
    return False


def test_torchvision_follows_pytorch() -> None:
    assert [torchvision_of(version) for version in ("2.9.0.2.15", "2.1.2", "1.13.1")] == ["0.24.*", "0.16.*", "0.14.*"]


@pytest.mark.parametrize(
    ("arguments", "options", "advice"),
    [
        # Nothing serves it, whatever the release and the interpreter.
        (("2.29.1", *UBUNTU), {"torch": "9"}, "use Ubuntu 24.04, the system that current releases support"),
        (
            ("2.29.1", *UBUNTU),
            {"torch": "9", "python": "3.12"},
            "use Ubuntu 24.04, the system that current releases support",
        ),
        (("2.29.1", *UBUNTU), {"python": "3.14"}, "install Python 3.10 to 3.12 and name it in neuron_venv_python"),
        (
            ("2.32.0", *UBUNTU),
            {"python": "3.14"},
            "install Python 3.10 to 3.12 and name it in neuron_venv_python, with neuron_sdk_version 2.29.1",
        ),
        (("2.32.0", *UBUNTU), {"python": "3.12"}, "set neuron_sdk_version to 2.29.1"),
    ],
)
def test_what_is_advised(arguments: tuple[str, ...], options: dict[str, object], advice: str) -> None:
    assert refusal(*arguments, **options).endswith(f": {advice}")


def test_the_filter_gives_the_sentence_and_not_an_error() -> None:
    found = neuron_sdk("2.32.0", *UBUNTU)
    assert found["refused"].endswith("2.29.1.") and found["packages"] == {}
    assert neuron_sdk("2.29.1", *UBUNTU)["torchvision"] == "0.24.*"


def test_where_there_are_no_devices_the_advice_is_for_trn1() -> None:
    with pytest.raises(NeuronSdkError, match=r"2\.32\.0 has no torch-neuronx.*set neuron_sdk_version to 2\.29\.1$"):
        plan(Request("2.32.0", "Debian", "12", "latest", "3.11.2", {}, True, "m5"))
