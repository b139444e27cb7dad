# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start a training script of another project as this collection starts its own.

start_upstream.py --start_script SCRIPT [--start_style argparse|hydra] [--start_checkpoints FOLDER] [--NAME VALUE ...]

All other arguments go to the script, which lies beside this one. In the style ``hydra`` they become ``++NAME=VALUE``,
and the number of nodes and of processes a node is added, which the scripts of NeMo want. With a folder of checkpoints,
``--resume_ckpt`` and the path of the newest whole one are added where TRAINIUM_RESUME is 1 and there is one.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path


def is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def as_hydra(arguments: Sequence[str]) -> list[str]:
    """``--name value`` as ``++name=value``, a name alone as true. Those that Hydra itself takes stay as they are."""
    result: list[str] = []
    for argument in arguments:
        if argument.startswith("--"):
            result.append(argument if argument.startswith("--config-") else f"++{argument[2:]}")
        elif result:
            result[-1] += f"={argument}"
    return [one if "=" in one else f"{one}=True" for one in result]


def newest(folder: Path) -> Path | None:
    """The newest checkpoint that is whole. PyTorch writes an archive, whose table of contents comes last."""
    numbered = [
        (int(match[1]), path) for path in folder.glob("ckpt_*.pt") if (match := re.search(r"_(\d+)\.pt$", path.name))
    ]
    for _step, path in sorted(numbered, reverse=True):
        if zipfile.is_zipfile(path):
            return path
        print(f"training: warning: {path} is not whole and passed over", flush=True)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--start_script", required=True)
    parser.add_argument("--start_style", choices=["argparse", "hydra"], default="argparse")
    parser.add_argument("--start_checkpoints", type=Path)
    own, others = parser.parse_known_args()
    if own.start_style == "hydra":
        each = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // each
        others = [*as_hydra(others), f"++trainer.devices={each}", f"++trainer.num_nodes={nodes}"]
    compiling = is_set("TRAINIUM_COMPILE") or is_set("NEURON_EXTRACT_GRAPHS_ONLY")
    if own.start_checkpoints and is_set("TRAINIUM_RESUME") and not compiling:
        path = newest(own.start_checkpoints)
        if path:
            others += ["--resume_ckpt", "--resume_ckpt_path", str(path)]
    script = Path(__file__).parent / own.start_script
    sys.argv = [str(script), *others]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
