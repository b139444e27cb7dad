"""The process of ParallelCluster's library: what it is given, and what is made of its answers and errors."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls, worker
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library, snake

Item = dict[str, Any]
# Answers with what it was given: its request, arguments, variables and the current folder.
ECHO = """#!/bin/sh
request=$(cat)
printf '{"result": {"request": %s, "options": "%s %s", "path": "%s", "region": "%s", "home": "%s"}}' \
  "$request" "$1" "$2" "$PATH" "$AWS_REGION" "$HOME"
"""


def interpreter(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_the_library_runs_apart_from_ours(tmp_path: Path) -> None:
    python = interpreter(tmp_path, ECHO)
    given = {"AWS_REGION": "nowhere", "PATH": None, "HOME": str(tmp_path)}
    found = calls.call(python, "list_clusters", {"a": [1]}, region="us-west-2", environment=given)
    assert found["request"] == {"operation": "list_clusters", "arguments": {"a": [1]}, "region": "us-west-2"}
    assert (found["options"], found["region"], found["home"]) == ("-I -c", "us-west-2", str(tmp_path))
    # Its environment of Python may bring a node of its own, which comes first.
    assert found["path"] == f"{tmp_path}:{os.defpath}"


def test_arguments_that_are_none_are_left_out_and_pages_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Item] = []
    answers = [{"items": [1], "nextToken": "more"}, {"nextToken": "last"}, {"items": [2]}]

    def call(_python: Any, operation: str, arguments: Item, **_connection: Any) -> Any:
        asked.append({"operation": operation, **arguments})
        return answers.pop(0)

    monkeypatch.setattr(calls, "call", call)
    assert Library(None, "us-west-2", {}).all_pages("list_x", "items", name="a", other=None) == [1, 2]
    assert [one.get("next_token") for one in asked] == [None, "more", "last"]
    assert asked[0] == {"operation": "list_x", "name": "a"}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"result": {"a": 1}}, None),
        ({"result": None}, None),
        ({"error": {"code": 412, "message": "", "content": {"a": 1}}}, None),
        ({"error": {"code": 400, "message": "no", "content": {}}}, 400),
    ],
)
def test_a_dry_run_that_passes_is_an_answer(tmp_path: Path, answer: Item, code: int | None) -> None:
    library = Library(interpreter(tmp_path, f"#!/bin/sh\necho '{json.dumps(answer)}'\n"), "us-west-2", {})
    if code:
        with pytest.raises(calls.PclusterError, match="no") as caught:
            library.dry_run("create_cluster")
        assert caught.value.code == code
    else:
        assert library.dry_run("create_cluster") in ({"a": 1}, {})


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ({"code": 400, "message": " Bad\n request. ", "content": {}}, "Bad request"),
        ({"code": 500, "message": "", "content": {}}, "list_x failed"),
        ({"code": 0, "message": "x", "content": {}}, "/p has no aws-parallelcluster; name the interpreter"),
        (
            {"code": 400, "message": "No", "content": {"updateValidationErrors": [{"message": "a."}] * 5}},
            "No: update: a; update: a; update: a; update: a; update: a",
        ),
        (
            {"code": 400, "message": "No", "content": {"updateValidationErrors": [{"parameter": "P"}] * 7}},
            "No: P: ; P: ; P: ; P: ; P:  (and 2 more)",
        ),
        (
            {
                "code": 400,
                "message": "No",
                "content": {"configurationValidationErrors": [{"level": "ERROR", "message": "a"}]},
            },
            "No: configuration: a",
        ),
    ],
)
def test_what_the_library_says_is_one_sentence(failure: Item, sentence: str) -> None:
    assert calls._sentence(failure, "list_x", "/p").startswith(sentence)


def test_profiles_stay_where_they_are_when_the_home_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/config").touch()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    found = calls._environment({"HOME": str(home)}, None, "/other")
    assert (found["HOME"], found["AWS_CONFIG_FILE"]) == ("/other", str(home / ".aws/config"))
    assert "AWS_SHARED_CREDENTIALS_FILE" not in found
    named = calls._environment({"HOME": str(home), "AWS_CONFIG_FILE": "/mine"}, None, "/other")
    assert named["AWS_CONFIG_FILE"] == "/mine"
    assert "AWS_CONFIG_FILE" not in calls._environment({"HOME": ""}, None, "/other")


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (SimpleNamespace(content="text", code=404), {"code": 404, "message": "text", "content": {}}),
        (
            SimpleNamespace(data={"message": "m", "x": 1}),
            {"code": 500, "message": "m", "content": {"message": "m", "x": 1}},
        ),
        (ValueError("why"), {"code": 500, "message": "why", "content": {}}),
        (ValueError(), {"code": 500, "message": "ValueError", "content": {}}),
        (
            ModuleNotFoundError("x", name="pcluster.lib"),
            {"code": 0, "message": "aws-parallelcluster is not installed", "content": {}},
        ),
        (ModuleNotFoundError("no yaml", name="yaml"), {"code": 500, "message": "no yaml", "content": {}}),
    ],
)
def test_every_error_is_described(error: Any, described: Item) -> None:
    assert worker.described(error) == described


def test_what_is_no_operation_of_the_library_is_refused() -> None:
    with pytest.raises(calls.PclusterError, match="has no operation __name__"):
        calls.call(sys.executable, "__name__", {})


@pytest.mark.parametrize(
    ("allowed", "reason"), [("SUCCEEDED", ""), ("FAILED", "stop it first"), ("ACTION_NEEDED", "stop it first")]
)
def test_a_verdict_of_the_library(allowed: str, reason: str) -> None:
    def check(_change: Any, _patch: Any) -> Any:
        return SimpleNamespace(value=allowed), "stop it first", None, True

    change = SimpleNamespace(update_policy=SimpleNamespace(check=check))
    assert worker.update_verdict(change, None) == {"allowed": allowed == "SUCCEEDED", "reason": reason, "action": ""}

    def broken(_change: Any, _patch: Any) -> Any:
        raise KeyError("x")

    change = SimpleNamespace(update_policy=SimpleNamespace(check=broken))
    found = worker.update_verdict(change, None)
    assert (found["allowed"], found["reason"]) == (False, "ParallelCluster's own check of it breaks (KeyError)")


def test_an_answer_has_our_names_and_no_link_that_lets_anyone_in() -> None:
    answer = {"clusterName": "a", "clusterConfiguration": {"url": "https://x"}, "headNode": {"instanceId": "i"}}
    assert snake(answer) == {"cluster_name": "a", "head_node": {"instance_id": "i"}}
    assert snake({"tags": [{"key": "TeamName", "value": "x"}]}) == {"tags": {"TeamName": "x"}}
    assert snake({"tags": None}) == {"tags": {}}
