# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bring once what the processes of a training would all fetch, and make its data as upstream makes it.

prepare_upstream.py [--model NAME ... [--only PATTERN ...]] [--dataset NAME ...]
                    [--script FILE --makes NAME --data FOLDER [--NAME VALUE ...]]

Models and datasets of Hugging Face come into HF_HOME, from which the training reads them offline. The script lies
beside this one and gets all other arguments. Neuron's get_dataset.py takes its tokenizer from the folder it runs in,
the first model's, and writes to ``~/examples_datasets/NAME``; what it has made is moved to FOLDER when it is whole.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path


def hub(home: Path, models: list[str], patterns: list[str] | None, datasets: list[str]) -> Path:
    """Fill the cache; the folder with the first model's files, or the cache's own."""
    # Both libraries read it when they are imported.
    os.environ["HF_HUB_OFFLINE"] = "0"
    folders = [home]
    if models:
        from huggingface_hub import snapshot_download

        folders = [Path(snapshot_download(model, allow_patterns=patterns)) for model in models]
    if datasets:
        from datasets import load_dataset

        for dataset in datasets:
            load_dataset(dataset)
    return folders[0]


def make(script: str, arguments: list[str], tokenizer: Path, data: Path, name: str) -> None:
    """Run the script with a home of its own beside the data, and move what it has made."""
    work = data.with_name(f".{data.name}.making")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = {
        **os.environ,
        "HOME": str(work),
        # Several times as large as the data, and nobody reads it again.
        "HF_DATASETS_CACHE": str(work / "cache"),
        # The dataset of Neuron's examples comes with a loader of its own, which has to be allowed.
        "HF_DATASETS_TRUST_REMOTE_CODE": "1",
    }
    # That loader is whatever the hub has today; the tokenizer, for which the token is, lies here already.
    for name_of_token in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        environment.pop(name_of_token, None)
    command = [sys.executable, str(Path(__file__).parent / script), *arguments]
    subprocess.run(command, cwd=tokenizer, env=environment, check=True)
    (work / "examples_datasets" / name).rename(data)
    shutil.rmtree(work)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", nargs="+", default=[])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--dataset", nargs="+", default=[])
    parser.add_argument("--script")
    parser.add_argument("--makes")
    parser.add_argument("--data", type=Path)
    own, others = parser.parse_known_args()
    home = Path(os.environ["HF_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    wanted = "--".join([*own.model, *own.dataset, *(own.only or [])]).replace("/", "-").replace("*", "")
    filled = home / f".{wanted}"
    # Another job on the same storage waits for the first.
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = own.data is not None and not own.data.exists()
        if filled.exists() and not missing:
            return
        tokenizer = hub(home, own.model, own.only, own.dataset)
        if missing:
            make(own.script, others, tokenizer, own.data, own.makes)
        filled.touch()


if __name__ == "__main__":
    main()
