"""Entries of a repository in apt's sources, in both formats."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.apt_sources import without

NEURON = "https://apt.repos.neuron.amazonaws.com"
DLAMI = f"deb [signed-by=/etc/apt/keyrings/neuron.gpg] {NEURON} noble main\n"
UBUNTU = "deb http://archive.ubuntu.com/ubuntu noble main\n"


@pytest.mark.parametrize(
    "line",
    [
        DLAMI,
        f"deb {NEURON} jammy main\n",
        f"deb-src {NEURON}/ jammy main\n",
        f"  deb\t[ arch=amd64 signed-by=/a.gpg ]  {NEURON} noble main # as the manual says\n",
    ],
)
def test_a_line_of_the_repository_goes_and_others_stay(line: str) -> None:
    assert without(f"# mine\n{UBUNTU}{line}", [NEURON], False) == f"# mine\n{UBUNTU}"
    # Nothing but remarks is left: the whole file may go.
    assert without(f"# mine\n{line}", [NEURON], False) == ""


@pytest.mark.parametrize("text", [UBUNTU, f"# {DLAMI}", "", f"deb {NEURON}.example.com noble main\n"])
def test_what_does_not_name_it_is_returned_as_it_is(text: str) -> None:
    assert without(text, [NEURON], False) == text
    assert without(text, [NEURON], True) == text


def paragraph(*uris: str, more: str = "") -> str:
    return f"Types: deb\nURIs: {' '.join(uris)}\n{more}Suites: noble\nComponents: main\n"


def test_a_paragraph_of_the_repository_goes_and_others_stay() -> None:
    other = paragraph("http://archive.ubuntu.com/ubuntu")
    assert without(f"{paragraph(NEURON)}\n{other}", [NEURON], True) == other
    assert without(paragraph(NEURON + "/").replace("URIs", "uris"), [NEURON], True) == ""


def test_a_paragraph_of_several_repositories_keeps_the_others() -> None:
    text = paragraph("http://one", more=f" {NEURON}\n http://two\n")
    assert without(text, [NEURON], True).splitlines()[:3] == [
        "Types: deb",
        "URIs: http://one http://two",
        "Suites: noble",
    ]


def test_several_names_of_one_repository() -> None:
    assert without(DLAMI + "deb http://mirror/neuron noble main\n", [NEURON, "http://mirror/neuron/"], False) == ""
