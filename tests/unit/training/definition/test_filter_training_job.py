"""The filters of a training job as Jinja calls them: files of the controller, presets, types and messages."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.training import FilterModule
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

FILTER = FilterModule().filters()["training_job"]
UNITS = FilterModule().filters()["training_units"]
FILES = str(Path(__file__).parents[4] / "roles" / "training_job" / "files")


def resolve(definition: Any, *folders: Any, shared: bool = True) -> dict[str, Any]:
    search = [str(folder) for folder in folders]
    return dict(
        FILTER(
            definition,
            "/opt/trainium",
            "/opt/venv",
            usable=[f"n{number}" for number in range(64)],
            known=64,
            search=search,
            shared=shared,
        )
    )


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_secret\n")
    secrets = dict.fromkeys(PRESETS[name].get("secrets", {}), str(tmp_path / "token"))
    job = resolve({"preset": name, "secrets": secrets}, FILES)
    assert job["refused"] == ""
    assert {job["env"][one] for one in secrets} <= {"hf_secret"}
    assert all(Path(source["src"]).is_file() for source in job["sources"])
    assert "{" not in " ".join([*job["argv"], *job["compile_argv"], *job["prepare_argv"]])
    # A checkpoint that all nodes must find is none on disks of their own.
    needs = job["checkpoint"]["shared"] and (job["checkpoint"]["resume"] or job["requeue"])
    own = resolve({"preset": name, "secrets": secrets}, FILES, shared=False)
    assert ("share no storage" in own["refused"]) == needs


def test_files_are_looked_for_in_each_folder_and_make_the_job_another(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "a.py").write_text("1")
    definition = {"preset": "none", "script": "a.py", "files": ["a.py"]}
    first = resolve(definition, tmp_path / "one", tmp_path / "two")
    checksum = f"sha256:{hashlib.sha256((tmp_path / 'two' / 'a.py').read_bytes()).hexdigest()}"
    assert first["sources"] == [{"src": str(tmp_path / "two" / "a.py"), "name": "a.py", "checksum": checksum}]
    (tmp_path / "two" / "a.py").write_text("2")
    second = resolve(definition, tmp_path / "two")
    assert first["digest"] != second["digest"]
    assert second == resolve({**definition, "files": ["a.py"]}, tmp_path / "two")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert resolve({"preset": "none", "script": "a.py", "files": ["a.py"]}, tmp_path) == {
        "refused": f"files of the training job names 'a.py', which is no file in {tmp_path}; name another."
    }
    assert "is no file; name another" in resolve({"preset": "none", "files": ["/nonexistent/a.py"]})["refused"]


def test_a_secret_is_read_from_its_file_and_makes_no_other_job(tmp_path: Path) -> None:
    job = {"preset": "none", "script": "a.py", "files": ["a.py"], "secrets": {"HF_TOKEN": "token"}}
    (tmp_path / "a.py").touch()
    assert resolve({"preset": "llama3-8b"}, FILES)["refused"] == (
        "secrets.HF_TOKEN of the training job is ''; name the file here that holds it, as ~/.cache/huggingface/token "
        "for a token of Hugging Face."
    )
    assert "secrets.HF_TOKEN of the training job names no file with one line" in resolve(job, tmp_path)["refused"]
    digests = set()
    for text in ("hf_one", "hf_two\n"):
        (tmp_path / "token").write_text(text)
        resolved = resolve(job, tmp_path)
        assert resolved["env"] == {"HF_TOKEN": text.strip()}
        digests.add(resolved["digest"])
    assert len(digests) == 1
    (tmp_path / "token").write_text("hf_one\nhf_two")
    assert resolve(job, tmp_path)["refused"].endswith("give its path, not the secret.")
    assert "hf_" not in resolve(job, tmp_path)["refused"]
    taken = {**job, "secrets": {"LD_PRELOAD": "token"}}
    assert "use names of environment variables" in resolve(taken, tmp_path)["refused"]


def test_a_report_of_a_log_has_versions_that_are_no_templates() -> None:
    log = 'JOB versions {"torch": "2.9.0", "python": "{{ 6 * 7 }}"}\n'
    assert FilterModule().filters()["training_report"](log)["versions"] == {"torch": "2.9.0"}


def test_what_is_no_definition() -> None:
    with pytest.raises(AnsibleFilterError, match="needs a definition as a dictionary, not str"):
        resolve("bert")
    with pytest.raises(AnsibleFilterError, match="needs a dictionary of states, not list"):
        UNITS([], "0")
    with pytest.raises(AnsibleFilterError, match="has no state of n2"):
        UNITS({"n1": {"active": False, "ended": False, "succeeded": False}, "n2": {}}, "0")


def test_the_number_of_nodes_may_be_text_as_older_releases_of_ansible_give_it() -> None:
    jobs = [
        FILTER({}, "/opt/trainium", "/opt/venv", usable=["n1", "n2"], known=known, search=[FILES]) for known in (2, "2")
    ]
    assert jobs[0]["refused"] == ""
    assert jobs[0] == jobs[1]
