# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bring once what the processes of a training would all fetch, and make its data as upstream makes it.

prepare_upstream.py [--model NAME[@COMMIT] ... [--only PATTERN ...]] [--dataset NAME[@COMMIT] ...]
                    [--script FILE --makes NAME --data FOLDER [--corpus_revision REVISION] [--NAME VALUE ...]]

Models and datasets of Hugging Face come into HF_HOME, from which the training reads them offline; without a commit,
what is newest there. The script lies beside this one and gets all other arguments. Neuron's get_dataset.py takes its
tokenizer from the folder it runs in, the first model's, or from HF_HOME by its name, and its text from the hub at the
revision that is given. It writes to ``~/examples_datasets/NAME``; what it has made is moved to FOLDER when it is whole.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import runpy
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
        folders = [download(*parted(model), patterns) for model in models]
    if datasets:
        from datasets import load_dataset

        for name, commit in map(parted, datasets):
            load_dataset(name, revision=commit)
    return folders[0]


def parted(text: str) -> tuple[str, str | None]:
    """Name and commit; None for the newest."""
    name, _at, commit = text.partition("@")
    return name, commit or None


def download(name: str, commit: str | None, patterns: list[str] | None) -> Path:
    """A model's folder in the cache. Whoever asks for the model by its name alone finds this commit there, offline."""
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(name, revision=commit, allow_patterns=patterns))
    if commit:
        named = folder.parents[1] / "refs" / "main"
        named.parent.mkdir(exist_ok=True)
        part = named.with_name(f".{named.name}")
        part.write_text(commit, encoding="ascii")
        part.replace(named)
    return folder


def run(script: str, revision: str) -> None:
    """Run a script that asks the hub for a dataset, and for a tokenizer that is here, by their names alone."""
    import datasets
    import transformers

    datasets.load_dataset = functools.partial(datasets.load_dataset, revision=revision)
    tokenizer = transformers.AutoTokenizer
    tokenizer.from_pretrained = functools.partial(tokenizer.from_pretrained, local_files_only=True)
    runpy.run_path(script, run_name="__main__")


def make(script: str, arguments: list[str], tokenizer: Path, data: Path, name: str, revision: str) -> None:
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
    # That loader may be whatever the hub has today; the tokenizer, for which the token is, lies here already.
    for name_of_token in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        environment.pop(name_of_token, None)
    command = [sys.executable, __file__, "--run", str(Path(__file__).parent / script), revision, *arguments]
    subprocess.run(command, cwd=tokenizer, env=environment, check=True)
    (work / "examples_datasets" / name).rename(data)
    shutil.rmtree(work)


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        _own, _option, script, revision = sys.argv[:4]
        sys.argv[:4] = [script]
        run(script, revision)
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", nargs="+", default=[])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--dataset", nargs="+", default=[])
    parser.add_argument("--script")
    parser.add_argument("--makes")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus_revision", default="main")
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
            make(own.script, others, tokenizer, own.data, own.makes, own.corpus_revision)
        filled.touch()


if __name__ == "__main__":
    main()
