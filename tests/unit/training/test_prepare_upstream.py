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

PREPARE = Path(__file__).parents[3] / "roles" / "training_job" / "files" / "upstream" / "prepare_upstream.py"
NOTE = "import os\ndef note(*words):\n    print(*words, file=open(os.environ['NOTES'], 'a'))\n"
HUB = """from note import note
import os
def snapshot_download(name, allow_patterns=None):
    note("hub", name, allow_patterns, os.environ["HF_HUB_OFFLINE"])
    folder = os.path.join(os.environ["HF_HOME"], name.replace("/", "-"))
    os.makedirs(folder, exist_ok=True)
    return folder
"""
GET_DATASET = """import os, sys
from note import note
note("script", sys.argv[1:], os.path.basename(os.getcwd()), os.environ["HF_DATASETS_TRUST_REMOTE_CODE"])
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
    texts["datasets.py"] = "from note import note\ndef load_dataset(name):\n    note('dataset', name)\n"
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


def test_fills_the_cache_once_and_online(folder: Path) -> None:
    bert = ("--model", "bert-large-uncased", "--only", "config.json")
    assert prepare(folder, *bert) == ["hub bert-large-uncased ['config.json'] 0"]
    assert prepare(folder, *bert) == []
    lora = ("--model", "a/model", "--dataset", "databricks/dolly")
    assert prepare(folder, *lora) == ["hub a/model None 0", "dataset databricks/dolly"]


def test_makes_the_data_as_upstream_does_and_where_the_training_reads_it(folder: Path) -> None:
    data = folder / "shared/data/wikicorpus_llama3_tokenized_8k"
    makes = ("--script", "get_dataset.py", "--makes", data.name, "--data", str(data), "--llama-version", "3")
    with pytest.raises(subprocess.CalledProcessError):
        prepare(folder, *LLAMA, *makes, BREAKS="1")
    # Half of it would be trained on.
    assert not data.exists()
    assert prepare(folder, *LLAMA, *makes) == [
        "hub meta-llama/Meta-Llama-3-8B ['tokenizer*', 'special_tokens_map.json'] 0",
        "script ['--llama-version', '3'] meta-llama-Meta-Llama-3-8B 1",
    ]
    assert [path.name for path in data.parent.iterdir()] == [data.name]
    assert (data / "data-00000.arrow").read_text() == "tokens"
    assert prepare(folder, *LLAMA, *makes) == []
