"""The filter training_objects: what is submitted at once for a training, by its launcher."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.filter import training

from tests.unit.kubernetes.definitions import OWN, SITE

Item = dict[str, Any]
FILTERS = training.FilterModule().filters()
QUEUED = {**SITE, "huge_pages": "", "queue": "trainium", "service_account": "", "priority_class": ""}
COMPILE = {"enabled": True, "success": "all compiled"}


def made(folder: Path, launcher: str, site: Item, **definition: Any) -> Item:
    (folder / "a.py").write_text("print(1)")
    (folder / "token").write_text("hf_secret")
    whole = {**site, "launcher": launcher}
    job = FILTERS["training_job"](
        {**OWN, "secrets": {"TOKEN": "token"}, **definition},
        "/fsx/trainium",
        "/opt/venv",
        launcher=launcher,
        usable=["a", "b"],
        known=2,
        search=[str(folder)],
        shared=True,
        site=whole,
    )
    assert job["refused"] == ""
    result: Item = FILTERS["training_objects"](job, {"pod.sh": "true"}, whole)
    return result


def test_a_training_for_kubernetes_is_one_part_with_its_files(tmp_path: Path) -> None:
    found = made(tmp_path, "kubernetes", SITE, compile=COMPILE)
    assert (found["refused"], found["tensorboard"]) == ("", {})
    (part,) = found["parts"]
    assert (part["part"], part["success"]) == ("train", "")
    assert part["name"].startswith("bert-")
    (files,) = [one for one in part["objects"] if one["kind"] == "ConfigMap"]
    content = [*files.get("data", {}).values(), *files.get("binaryData", {}).values()]
    # A script of the role and a file of the definition.
    assert any(one in content for one in ("true", base64.b64encode(b"true").decode()))
    assert any(one in content for one in ("print(1)", base64.b64encode(b"print(1)").decode()))
    # The values of a Secret are apart, so that nothing shows them.
    assert "hf_secret" not in str(part["objects"])
    assert base64.b64encode(b"hf_secret").decode() not in str(part["objects"])
    assert part["secret_data"]


def test_a_training_for_volcano_compiles_in_a_part_of_its_own(tmp_path: Path) -> None:
    found = made(tmp_path, "torchx", QUEUED, compile=COMPILE)
    told = {part["part"]: part["success"] for part in found["parts"]}
    assert told == {"stage": "", "compile": "all compiled", "train": "", "clean": ""}
    without = made(tmp_path, "torchx", QUEUED)
    assert [part["part"] for part in without["parts"]] == ["stage", "train", "clean"]


def test_events_are_shown_where_the_site_asks_for_it(tmp_path: Path) -> None:
    given = {"tensorboard": "/fsx/trainium/events"}
    assert made(tmp_path, "kubernetes", SITE, **given)["tensorboard"] == {}
    shown = made(tmp_path, "kubernetes", {**SITE, "tensorboard": True}, **given)["tensorboard"]
    assert shown["kind"] == "Deployment" and "/fsx/trainium/events" in str(shown)


def test_a_file_that_is_gone_meanwhile_is_said(tmp_path: Path) -> None:
    whole = {**SITE, "launcher": "kubernetes"}
    job = {"sources": [{"src": str(tmp_path / "gone"), "name": "a.py", "checksum": ""}]}
    found = FILTERS["training_objects"](job, {}, whole)
    assert (found["parts"], found["tensorboard"]) == ([], {})
    assert "No such file or directory" in found["refused"]


@pytest.mark.parametrize("value", [None, "job", []])
def test_what_is_no_job_is_refused(value: Any) -> None:
    with pytest.raises(Exception, match="needs a job of the filter training_job"):
        FILTERS["training_objects"](value, {}, {})
