"""The keys by which new nodes are known: whose consoles are read, for how long, and what is written and said."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils import modules
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.host_keys import FIRST_BOOT
from ansible_collections.trainium.cluster.plugins.modules.internal import host_keys

from tests.in_process import ended
from tests.security.test_host_keys import BOOT, ED25519, RSA, block
from tests.unit.passing_time import Clock

Result = dict[str, Any]
WHOLE = BOOT + block(ED25519, RSA)
AT_WORK = BOOT + BOOT.replace("init-local", "modules:final")


class Consoles(Clock):
    """What the console of each node shows at one look after the other, the last for ever; time passes by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, age: float = 60, **shown: list[Any]) -> None:
        super().__init__()
        self.shown = {name.replace("_", "-"): list(texts) for name, texts in shown.items()}
        self.age = age
        self.read: list[str] = []
        self.warned: list[str] = []
        monkeypatch.setattr(host_keys.ec2, "describe_instances", self._instances)
        monkeypatch.setattr(host_keys.ec2, "console_output", self._output)
        monkeypatch.setattr(host_keys, "warn", self.warned.append)
        self.governs(monkeypatch, host_keys)
        monkeypatch.setattr(modules.AnsibleAWSModule, "client", lambda _self, service: SimpleNamespace(name=service))

    def _instances(self, client: Any, filters: dict[str, str]) -> list[Result]:
        assert client.name == "ec2"
        assert filters == {"tag:trainium:cluster": "bert", "instance-state-name": "running"}
        launched = datetime.now(timezone.utc) - timedelta(seconds=self.age)
        return [{"InstanceId": name, "LaunchTime": launched} for name in self.shown]

    def _output(self, _client: Any, identity: str) -> str:
        self.read.append(identity)
        texts = self.shown[identity]
        found = texts.pop(0) if len(texts) > 1 else texts[0]
        if isinstance(found, Exception):
            raise found
        return str(found)


@pytest.fixture
def learn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(**arguments: Any) -> Result:
        given = {"region": "us-west-2", "cluster_name": "bert", "path": str(tmp_path / "ssh/pins"), **arguments}
        return ended(host_keys.main, given, capsys)[0]

    return run


def test_the_keys_of_new_nodes_are_added_to_the_file(
    monkeypatch: pytest.MonkeyPatch, learn: Any, tmp_path: Path
) -> None:
    consoles = Consoles(monkeypatch, i_2=["", WHOLE], i_1=[WHOLE])
    result = learn()
    assert (result["changed"], result["known"], result["unknown"]) == (True, ["i-1", "i-2"], [])
    pins = tmp_path / "ssh/pins"
    assert pins.read_text(encoding="utf-8") == "".join(f"i-{n} {key}\n" for n in (1, 2) for key in (ED25519, RSA))
    assert (stat.S_IMODE(pins.stat().st_mode), stat.S_IMODE(pins.parent.stat().st_mode)) == (0o600, 0o700)
    # Who has told its keys is not asked again.
    assert (consoles.read, consoles.now, consoles.warned) == (["i-2", "i-1", "i-2"], 1, [])
    Consoles(monkeypatch, i_1=[WHOLE], i_2=[WHOLE], i_3=[WHOLE])
    assert learn()["known"] == ["i-3"]
    assert pins.read_text(encoding="utf-8").count("i-1 ") == 2
    again = learn()
    assert (again["changed"], again["known"], again["unknown"]) == (False, [], [])


@pytest.mark.parametrize(("age", "read"), [(FIRST_BOOT - 60, True), (FIRST_BOOT + 60, False)])
def test_only_new_nodes_are_asked(monkeypatch: pytest.MonkeyPatch, learn: Any, age: float, read: bool) -> None:
    """A console tells for an hour what came first; later a user of the node may have written it."""
    consoles = Consoles(monkeypatch, age, i_1=[WHOLE])
    assert learn()["changed"] == read
    assert consoles.read == (["i-1"] if read else [])


@pytest.mark.parametrize(("arguments", "seconds"), [({}, 120), ({"timeout": 5}, 5), ({"timeout": 0}, 0)])
def test_those_without_keys_are_named_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, learn: Any, arguments: dict[str, int], seconds: int
) -> None:
    consoles = Consoles(monkeypatch, i_1=[BOOT], i_2=[WHOLE])
    result = learn(**arguments)
    assert (result["known"], result["unknown"], consoles.now) == (["i-2"], ["i-1"], seconds)
    assert consoles.warned == [
        (
            f"The console of i-1 showed no ssh host keys of a first boot in {seconds} s, so that ssh accepts whatever "
            "it meets there first; compare the keys where you do not trust the network."
        )
    ]


def test_nodes_whose_user_data_runs_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, learn: Any) -> None:
    consoles = Consoles(monkeypatch, i_1=[AT_WORK], i_2=[BOOT, WHOLE])
    result = learn()
    assert (result["known"], result["unknown"]) == (["i-2"], ["i-1"])
    assert 20 <= consoles.now < 40
    assert (
        "boot as their user data still runs (run this again within an hour of the launch), so that"
        in consoles.warned[0]
    )


def test_one_that_may_tell_any_moment_is_waited_for_with_the_others(
    monkeypatch: pytest.MonkeyPatch, learn: Any
) -> None:
    consoles = Consoles(monkeypatch, i_1=[AT_WORK], i_2=[BOOT])
    assert learn(timeout=60)["unknown"] == ["i-1", "i-2"]
    assert consoles.now == 60
    assert "of a first boot in 60 s, so that" in consoles.warned[0]


def test_who_may_not_read_consoles_is_told_and_goes_on(monkeypatch: pytest.MonkeyPatch, learn: Any) -> None:
    denied = AwsCallError("AWS would not read the console: no (Denied)")
    consoles = Consoles(monkeypatch, i_1=[WHOLE], i_2=[denied], i_3=[WHOLE])
    result = learn()
    assert (result["changed"], result["known"], result["unknown"]) == (True, ["i-1"], ["i-2", "i-3"])
    assert consoles.warned[0].startswith(
        "The console of i-2, i-3 showed no ssh host keys of a first boot (AWS would not read the console: no (Denied)),"
    )


def test_check_mode_looks_once_and_writes_nothing(monkeypatch: pytest.MonkeyPatch, learn: Any, tmp_path: Path) -> None:
    consoles = Consoles(monkeypatch, i_1=[WHOLE], i_2=[BOOT])
    result = learn(_ansible_check_mode=True)
    assert (result["changed"], result["known"], result["unknown"]) == (True, ["i-1"], ["i-2"])
    assert (consoles.now, consoles.warned, list(tmp_path.iterdir())) == (0, [], [])


def test_a_file_that_cannot_be_written_says_why(monkeypatch: pytest.MonkeyPatch, learn: Any, tmp_path: Path) -> None:
    Consoles(monkeypatch, i_1=[WHOLE])
    (tmp_path / "ssh").touch()
    said = learn()["msg"]
    assert said.startswith(f"{tmp_path}/ssh/pins can not be written: ") and said.endswith("; check who owns it.")
