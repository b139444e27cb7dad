"""What is brought before a training of another project starts: once, and put in place when it is whole.

huggingface_hub and datasets are stand-ins that note how they are called; the script is one that reads and writes where
Neuron's get_dataset.py does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PREPARE = Path(__file__).parents[4] / "roles" / "training_job" / "files" / "upstream" / "prepare_upstream.py"
NOTE = "import os\ndef note(*words):\n    print(*words, file=open(os.environ['NOTES'], 'a'))\n"
HUB = """from note import note
import os
def snapshot_download(name, revision=None, allow_patterns=None):
    note("hub", name, revision, allow_patterns, os.environ["HF_HUB_OFFLINE"])
    home = os.path.join(os.environ["HF_HOME"], "hub", "models--" + name.replace("/", "--"))
    folder = os.path.join(home, "snapshots", revision or 40 * "0")
    os.makedirs(folder, exist_ok=True)
    if revision is None:
        os.makedirs(os.path.join(home, "refs"), exist_ok=True)
        open(os.path.join(home, "refs", "main"), "w").write(40 * "0")
    return folder
"""
GET_DATASET = """import os, sys
from datasets import load_dataset
from note import note
from transformers import AutoTokenizer
AutoTokenizer.from_pretrained("some/tokenizer")
load_dataset("wikicorpus", "raw_en", trust_remote_code=True)
note("script", sys.argv[1:], os.getcwd().split("/")[-3], os.environ["HF_DATASETS_TRUST_REMOTE_CODE"])
save_path = os.path.expanduser("~/examples_datasets/wikicorpus_llama3_tokenized_8k")
os.makedirs(save_path)
if os.environ.get("BREAKS"):
    sys.exit("no room")
open(save_path + "/data-00000.arrow", "w").write("tokens")
"""
LLAMA = ("--model", "meta-llama/Meta-Llama-3-8B", "--only", "tokenizer*", "special_tokens_map.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job").mkdir()
    (tmp_path / "job/prepare_upstream.py").write_bytes(PREPARE.read_bytes())
    texts = {"get_dataset.py": GET_DATASET, "note.py": NOTE, "huggingface_hub.py": HUB}
    texts["datasets.py"] = (
        "from note import note\n"
        "def load_dataset(name, config='', revision=None, trust_remote_code=False):\n"
        "    note('dataset', name, config, revision)\n"
    )
    texts["transformers.py"] = (
        "from note import note\n"
        "class AutoTokenizer:\n"
        "    @classmethod\n"
        "    def from_pretrained(cls, name, local_files_only=False):\n"
        "        note('tokenizer', name, local_files_only)\n"
    )
    for name, text in texts.items():
        (tmp_path / "job" / name).write_text(text, encoding="utf-8")
    return tmp_path


def prepare(folder: Path, *arguments: str, **more: str) -> list[str]:
    """What was called."""
    notes = folder / "notes"
    notes.write_text("")
    home = {"HF_HOME": str(folder / "shared/huggingface"), "HF_HUB_OFFLINE": "1", "HOME": "/nowhere"}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "job"), "NOTES": str(notes), **home, **more}
    command = [sys.executable, str(folder / "job/prepare_upstream.py"), *arguments]
    subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True)
    return notes.read_text().splitlines()


COMMIT = "6da4b6a26a1877e173fca3225479512db81a5e5b"


def test_fills_the_cache_once_and_online(folder: Path) -> None:
    bert = ("--model", f"bert-large-uncased@{COMMIT}", "--only", "config.json")
    assert prepare(folder, *bert) == [f"hub bert-large-uncased {COMMIT} ['config.json'] 0"]
    assert prepare(folder, *bert) == []
    # Without a commit the newest, for whoever wants that.
    lora = ("--model", "a/model", "--dataset", f"databricks/dolly@{COMMIT}", "a/set")
    assert prepare(folder, *lora) == [
        "hub a/model None None 0",
        f"dataset databricks/dolly  {COMMIT}",
        "dataset a/set  None",
    ]


def test_a_model_is_found_by_its_name_in_the_commit_that_was_brought(folder: Path) -> None:
    """Offline, transformers takes the commit that refs/main names (huggingface_hub, try_to_load_from_cache)."""
    named = folder / "shared/huggingface/hub/models--bert-large-uncased/refs/main"
    prepare(folder, "--model", "bert-large-uncased")
    assert named.read_text() == 40 * "0"
    prepare(folder, "--model", f"bert-large-uncased@{COMMIT}")
    assert named.read_text() == COMMIT
    assert [path.name for path in named.parent.iterdir()] == ["main"]


def test_makes_the_data_as_upstream_does_and_where_the_training_reads_it(folder: Path) -> None:
    data = folder / "shared/data/wikicorpus_llama3_tokenized_8k"
    makes = ("--script", "get_dataset.py", "--makes", data.name, "--data", str(data), "--llama-version", "3")
    with pytest.raises(subprocess.CalledProcessError):
        prepare(folder, *LLAMA, *makes, BREAKS="1")
    # Half of it would be trained on.
    assert not data.exists()
    assert prepare(folder, *LLAMA, *makes) == [
        "hub meta-llama/Meta-Llama-3-8B None ['tokenizer*', 'special_tokens_map.json'] 0",
        "tokenizer some/tokenizer True",
        "dataset wikicorpus raw_en main",
        "script ['--llama-version', '3'] models--meta-llama--Meta-Llama-3-8B 1",
    ]
    assert [path.name for path in data.parent.iterdir()] == [data.name]
    assert (data / "data-00000.arrow").read_text() == "tokens"
    assert prepare(folder, *LLAMA, *makes) == []


def test_the_text_is_that_of_the_commit_that_is_asked_for(folder: Path) -> None:
    data = folder / "shared/data/wikicorpus_llama3_tokenized_8k"
    makes = ("--script", "get_dataset.py", "--makes", data.name, "--data", str(data), "--corpus_revision", COMMIT)
    assert f"dataset wikicorpus raw_en {COMMIT}" in prepare(folder, *LLAMA, *makes)
