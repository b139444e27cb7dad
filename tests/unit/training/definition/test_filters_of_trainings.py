"""What the filters say of a training beside its job: files, units, packages, nodes and its dataset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.filter import training

FILTERS = training.FilterModule().filters()
FILES = str(Path(__file__).parents[4] / "roles" / "training_job" / "files")
OWN = {"preset": "none", "script": "a.py", "files": ["a.py"]}


def test_a_file_is_found_by_its_place_or_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.py").symlink_to("a.py")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (str(tmp_path / "a.py"), "~/a.py", "a.py", "link.py"):
        assert training.find_file(name, ["/nonexistent", str(tmp_path)]) == os.path.realpath(tmp_path / "a.py")
    with pytest.raises(ValueError, match="which is no file in /x or /y; name another"):
        training.find_file("a.py", ["/x", "/y"])
    with pytest.raises(ValueError, match="which is no file; name another"):
        training.find_file(str(tmp_path / "folder"), [str(tmp_path)])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"The file '.*' of the training job cannot be read: Is a directory\."):
        training.checksum(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b" \n", b"one\ntwo", b"\xff", b"a\x00b"])
def test_what_is_no_secret_of_one_line_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"secrets\.TOKEN of the training job names no file with one line that is here"
    ):
        training.secret("TOKEN", "token", [str(tmp_path)])


def test_what_to_do_with_units_goes_by_their_digest() -> None:
    idle = {"active": False, "ended": False, "succeeded": False, "digest": ""}
    states = {"n1": {**idle, "active": True, "digest": "12"}, "n2": idle}
    assert FILTERS["training_units"](states, 12) == {"refused": "", "action": "follow", "nodes": ["n2"]}
    assert "runs on n1" in FILTERS["training_units"](states, "13")["refused"]


def test_what_a_definition_needs_is_known_from_its_preset() -> None:
    assert (
        FILTERS["training_packages"](None) == FILTERS["training_packages"]({}) == ["transformers", "tokenizers", "h5py"]
    )
    assert FILTERS["training_contents"](None)["packages"] == ["debian-reference-en"]
    assert [FILTERS["training_enough_nodes"](one) for one in (None, {}, OWN, {"preset": "llama2-7b"})] == [2, 2, 0, 0]
    assert FILTERS["training_dataset"](None) == {}
    found = FILTERS["training_dataset"]({"preset": "bert-large-phase1"})
    assert found["source"].startswith("s3://neuron-s3/") and found["signed"] is False


def test_a_definition_that_leaves_names_of_files_out_is_refused() -> None:
    call = FILTERS["training_job"]
    for files in ("a.py", [5], [None]):
        said = call({**OWN, "files": files}, "/opt/trainium", "/opt/venv", usable=["n1"], known=1, search=[FILES])
        assert said.keys() == {"refused"} and said["refused"].startswith("files of the training job is ")


def test_a_log_s_figures() -> None:
    step = "LOG Wed Dec 21 00:51:01 2022 - (0, {}) step_loss : {} learning_rate : 2.80e-06 throughput : 155.20\n"
    found = FILTERS["training_report"]("".join(step.format(number, 10 - number) for number in range(1, 4)))
    assert (found["steps"], found["initial_loss"], found["final_loss"], found["versions"]) == (3, 9, 7, {})
