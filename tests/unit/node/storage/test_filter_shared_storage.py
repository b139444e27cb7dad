"""The filters shared_mounts and lustre_client: a sentence in place of a failure."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.shared_storage import lustre_client, shared_mounts


def test_mounts_come_back_completed_or_with_a_sentence() -> None:
    sound = shared_mounts([{"type": "bind", "source": "/fsx/a", "path": "/a b"}])
    assert (sound["error"], sound["mounts"][0]["unit"]) == ("", "a\\x20b")
    wrong = shared_mounts([{"type": "bind", "source": "/fsx/a", "path": "/etc"}])
    assert wrong["error"].startswith("Mounting at /etc would hide")
    assert wrong["mounts"] == []


def test_what_is_no_list_is_a_mistake_of_the_playbook() -> None:
    with pytest.raises(AnsibleFilterError, match="needs a list of mounts"):
        shared_mounts("efs")


def test_the_client_comes_back_or_a_sentence() -> None:
    found = lustre_client("", "Ubuntu", "24.04", "6.8.0-1021-aws", ["PERSISTENT_2"], "node")
    assert (found["error"], found["method"], found["release"]) == ("", "apt", "noble")
    assert "no Lustre client for Debian" in lustre_client("", "Debian", "12", "6.1.0", [], "node")["error"]
