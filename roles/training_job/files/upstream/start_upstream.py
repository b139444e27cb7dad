# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start a training script that knows nothing of this collection, from its newest whole checkpoint where there is one.

start_upstream.py --start_script SCRIPT [--start_checkpoints FOLDER] [--start_resume bert|nxd|trainer]
                  [--start_keep_batch NAME ...] [--start_tensorboard NAME] [--NAME VALUE ...]

All other arguments go to the script, which lies beside this one. Those that ``--start_keep_batch`` names are for one
node, and are divided by the number of nodes, as Neuron's own scripts do it in bash
(``GRAD_ACCUM_USTEPS=$(($GRAD_ACCUM_USTEPS/$WORLD_SIZE_JOB))``): the global batch is the same on any number. The folder
in the argument that ``--start_tensorboard`` names is emptied by the script: each start gets one of its own in it. Where
TRAINIUM_RESUME is 1, the script is given what makes it go on:

bert     --resume_ckpt and the path of the newest ``ckpt_*.pt`` of the folder
nxd      --loading_step latest_if_exists; the library takes the newest with a file ``done`` in its --checkpoint_dir
trainer  --resume_from_checkpoint and the newest ``checkpoint-*`` of the folder, as the Hugging Face Trainer writes them
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def divided(arguments: Sequence[str], names: Sequence[str], nodes: int) -> list[str]:
    """The arguments with those of these names divided by the number of nodes, also by that left after a loss."""
    result = list(arguments)
    for name in names:
        place = result.index(f"--{name}") + 1
        value = int(result[place])
        if value < nodes:
            raise SystemExit(f"{name} is {value}, which {nodes} nodes cannot share; start fewer.")
        if value % nodes and os.environ.get("RANK") == "0":
            share = value // nodes * nodes / value
            print(f"training: warning: {nodes} nodes do not divide {name} {value}, batch is {share:.0%}", flush=True)
        result[place] = str(value // nodes)
    return result


def with_own_events(arguments: Sequence[str], name: str, scratch: Path, compiling: bool) -> list[str]:
    """The arguments with a new folder for TensorBoard's events in the one of this name; of a trial run they are gone.

    What a start before has written there would be removed (logger.py of Llama 3 70B). One process writes, so that the
    others may count its folder already.
    """
    place = list(arguments).index(f"--{name}") + 1
    folder = Path(arguments[place])
    numbers = [int(path.name[-4:]) for path in folder.glob("start-[0-9][0-9][0-9][0-9]")]
    own = scratch / "events" if compiling else folder / f"start-{max(numbers, default=0) + 1:04}"
    return [*arguments[:place], str(own), *arguments[place + 1 :]]


def newest(folder: Path, pattern: str, whole: Callable[[Path], bool], before: int = 0) -> tuple[int, Path] | None:
    """Step and path of the newest checkpoint that is whole. Numbers above ``before`` are counted on from there."""
    numbered = [
        (int(match[1]), path) for path in folder.glob(pattern) if (match := re.search(r"[_-](\d+)(\.pt)?$", path.name))
    ]
    steps = [(number - before if number > before else number, path) for number, path in numbered]
    for step, path in sorted(steps, reverse=True):
        if whole(path):
            return step, path
        print(f"training: warning: {path} is not whole and passed over", flush=True)
    return None


def has_state(path: Path) -> bool:
    """Whether the Trainer has come to the file that it writes last (transformers, Trainer._save_checkpoint)."""
    try:
        return "global_step" in json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def keep_rates() -> None:
    """Make a schedule that is loaded set the learning rates as well.

    The script makes its schedule before it loads the state of it, which sets the rate to that of a first step, and
    LambdaLR.load_state_dict leaves the rates as they are: one step would be made with the wrong one.
    """
    with suppress(ImportError):
        from torch.optim.lr_scheduler import LambdaLR

        load = LambdaLR.load_state_dict

        def load_with_rates(self: Any, state_dict: Mapping[str, Any]) -> None:
            load(self, state_dict)
            for group, rate in zip(self.optimizer.param_groups, self.get_last_lr()):
                group["lr"] = rate

        LambdaLR.load_state_dict = load_with_rates


def resume_bert(others: list[str], folder: Path, scratch: Path) -> list[str]:
    """For dp_bert_large_hf_pretrain_hdf5.py. PyTorch writes an archive, whose table of contents comes last.

    Told of phase 2, it loads the weights alone, since phase 2 begins with those of phase 1: a requeue would have
    moments of zero and a second warm-up. So what goes on in phase 2 is not told of it. It then takes the step from the
    file's name, where those that it wrote before are numbered from phase 1 on, and gets a link with the right number.
    """
    before = int(others[others.index("--phase1_end_step") + 1]) if "--phase2" in others else 0
    found = newest(folder, "ckpt_*.pt", zipfile.is_zipfile, before)
    if not found:
        return others
    step, path = found
    keep_rates()
    if before:
        others = [other for other in others if other != "--phase2"]
        link = scratch / f"ckpt_{step}.pt"
        link.symlink_to(path.absolute())
        path = link
    return [*others, "--resume_ckpt", "--resume_ckpt_path", str(path)]


def resume_trainer(others: list[str], folder: Path, _scratch: Path) -> list[str]:
    found = newest(folder, "checkpoint-*", has_state)
    return [*others, "--resume_from_checkpoint", str(found[1])] if found else others


def resume_nxd(others: list[str], _folder: Path, _scratch: Path) -> list[str]:
    return [*others, "--loading_step", "latest_if_exists"]


RESUME = {"bert": resume_bert, "nxd": resume_nxd, "trainer": resume_trainer}


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--start_script", required=True)
    parser.add_argument("--start_checkpoints", type=Path, default=Path())
    parser.add_argument("--start_resume", choices=list(RESUME))
    parser.add_argument("--start_keep_batch", nargs="+", default=[])
    parser.add_argument("--start_tensorboard")
    own, others = parser.parse_known_args()
    if own.start_keep_batch:
        nodes = int(os.environ["WORLD_SIZE"]) // int(os.environ["LOCAL_WORLD_SIZE"])
        others = divided(others, own.start_keep_batch, nodes)
    compiling = is_set("TRAINIUM_COMPILE") or is_set("NEURON_EXTRACT_GRAPHS_ONLY")
    script = Path(__file__).parent / own.start_script
    with tempfile.TemporaryDirectory() as scratch:
        if own.start_tensorboard:
            others = with_own_events(others, own.start_tensorboard, Path(scratch), compiling)
        if own.start_resume and is_set("TRAINIUM_RESUME") and not compiling:
            others = RESUME[own.start_resume](others, own.start_checkpoints, Path(scratch))
        if compiling and "--metrics_file" in others:
            # What is computed in a trial run is no result.
            others[others.index("--metrics_file") + 1] = f"{scratch}/results.json"
        sys.argv = [str(script), *others]
        runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
