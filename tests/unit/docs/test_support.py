"""The page of what is supported is that of the code's tables."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import SYSTEMS

from docs.tools.support import page, releases_of, systems_of_roles

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_that_of_the_tables() -> None:
    assert (ROOT / "docs/support.md").read_text(encoding="utf-8") == page(ROOT), "run make readmes"


def test_systems_are_those_that_a_role_lets_pass() -> None:
    found = systems_of_roles(ROOT)
    assert found["slurm"] == "Debian 12+, Ubuntu 24.04+"
    # Named by a variable.
    assert found["efa"].startswith("Amazon 2 2023, ")


def test_releases_go_from_the_first_to_the_last_for_a_system() -> None:
    assert releases_of(SYSTEMS["Ubuntu", "26.04"]) == "2.33.0"
    assert releases_of(SYSTEMS["Amazon", "2"]).endswith(" to 2.21.1")
    assert releases_of(SYSTEMS["Debian", "12"]).endswith(", from a mirror of your own")
