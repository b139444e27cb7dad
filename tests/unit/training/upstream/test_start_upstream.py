"""How training scripts of other projects are started, with a script that shows what it was given."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

START = Path(__file__).parents[4] / "roles" / "training_job" / "files" / "upstream" / "start_upstream.py"
BERT = ("--start_resume", "bert", "--start_checkpoints")
SHOWS = "import json, sys\nfrom beside import VALUE\nprint(json.dumps(sys.argv[1:]), VALUE, __name__)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder: all files of the job lie in it."""
    (tmp_path / "start_upstream.py").write_bytes(START.read_bytes())
    (tmp_path / "shows.py").write_text(SHOWS, encoding="utf-8")
    (tmp_path / "beside.py").write_text("VALUE = 'beside'\n", encoding="utf-8")
    return tmp_path


def start(folder: Path, *arguments: str, **variables: str) -> tuple[list[str], str]:
    """The arguments that the script was given, and all that was written."""
    environment = {"PATH": os.environ["PATH"], **variables}
    command = [sys.executable, str(folder / "start_upstream.py"), "--start_script", "shows.py", *arguments]
    result = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True)
    last = result.stdout.splitlines()[-1]
    assert last.endswith(" beside __main__")
    given: list[str] = json.loads(last.removesuffix(" beside __main__"))
    return given, result.stdout


def checkpoint(folder: Path, step: int, whole: bool = True) -> str:
    path = folder / "output" / f"ckpt_{step}.pt"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", "x" * 1000)
    if not whole:
        path.write_bytes(path.read_bytes()[:500])
    return str(path)


def test_passes_other_arguments_on(folder: Path) -> None:
    assert start(folder, "--steps", "5", "--flag", "--empty", "")[0] == ["--steps", "5", "--flag", "--empty", ""]


@pytest.mark.parametrize(("nodes", "each"), [(1, "32"), (2, "16"), (16, "2"), (32, "1"), (3, "10")])
def test_keeps_the_global_batch_at_any_number_of_nodes(nodes: int, each: str) -> None:
    """As Neuron's bash does it: 16 sequences x 32 micro-steps x 32 cores are 16,384, also on 16 nodes (seed 001)."""
    arguments = ["--batch_size", "16", "--grad_accum_usteps", "32", "--micro", "96"]
    divided = runpy.run_path(str(START))["divided"](arguments, ["grad_accum_usteps", "micro"], nodes)
    assert divided == ["--batch_size", "16", "--grad_accum_usteps", each, "--micro", str(96 // nodes)]
    assert int(each) * nodes == 32 or nodes == 3


def test_says_where_the_batch_is_another_and_refuses_more_nodes_than_can_share_it(folder: Path) -> None:
    names = ("--start_keep_batch", "usteps", "--usteps")
    given, text = start(folder, *names, "32", WORLD_SIZE="6", LOCAL_WORLD_SIZE="2", RANK="0")
    assert given == ["--usteps", "10"]
    assert "3 nodes do not divide usteps 32, batch is 94%" in text
    with pytest.raises(subprocess.CalledProcessError) as failed:
        start(folder, *names, "2", WORLD_SIZE="6", LOCAL_WORLD_SIZE="2")
    assert "usteps is 2, which 3 nodes cannot share" in failed.value.stderr


def test_goes_on_from_the_newest_whole_checkpoint(folder: Path) -> None:
    checkpoint(folder, 9)
    wanted = checkpoint(folder, 20)
    broken = checkpoint(folder, 30, whole=False)
    arguments = (*BERT, str(folder / "output"), "--resume_ckpt_path", "phase1")
    given, text = start(folder, *arguments, TRAINIUM_RESUME="1")
    assert given == ["--resume_ckpt_path", "phase1", "--resume_ckpt", "--resume_ckpt_path", wanted]
    assert f"training: warning: {broken} is not whole and passed over" in text


@pytest.mark.parametrize(
    "variables", [{}, {"TRAINIUM_RESUME": "0"}, {"TRAINIUM_RESUME": "1", "NEURON_EXTRACT_GRAPHS_ONLY": "1"}]
)
def test_begins_anew_where_it_is_not_to_resume(folder: Path, variables: dict[str, str]) -> None:
    checkpoint(folder, 9)
    assert start(folder, *BERT, str(folder / "output"), **variables)[0] == []


def test_begins_anew_where_there_is_no_checkpoint(folder: Path) -> None:
    assert start(folder, *BERT, str(folder / "output"), TRAINIUM_RESUME="1")[0] == []


# What dp_bert_large_hf_pretrain_hdf5.py does with its arguments: it takes the step from the name, and leaves optimizer,
# schedule and the place in the data out where it is told of phase 2.
PHASE2 = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--phase2", action="store_true")
parser.add_argument("--phase1_end_step", type=int)
parser.add_argument("--resume_ckpt", action="store_true")
parser.add_argument("--resume_ckpt_path")
flags = parser.parse_args()
step = int(os.path.basename(flags.resume_ckpt_path).split(".pt")[0].split("_")[1])
print(json.dumps({
    "moments": not flags.phase2,
    "step": step - flags.phase1_end_step if flags.phase2 else step,
    "read": os.path.realpath(flags.resume_ckpt_path),
}))
"""


@pytest.mark.parametrize(
    ("written", "moments", "step", "read"),
    [
        ([], False, 0, "phase1/ckpt_7032.pt"),
        # The names that it gives before a requeue, and those after one.
        ([7132, 7232], True, 200, "output/ckpt_7232.pt"),
        ([7132, 7232, 150, 350], True, 350, "output/ckpt_350.pt"),
    ],
)
def test_phase_2_goes_on_with_moments_and_schedule(
    folder: Path, written: list[int], moments: bool, step: int, read: str
) -> None:
    (folder / "shows.py").write_text(PHASE2, encoding="utf-8")
    for number in written:
        checkpoint(folder, number)
    before = folder / "phase1" / "ckpt_7032.pt"
    before.parent.mkdir()
    before.write_bytes(b"")
    command = [sys.executable, str(folder / "start_upstream.py"), "--start_script", "shows.py", *BERT]
    command += [str(folder / "output"), "--phase2", "--phase1_end_step", "7032", "--resume_ckpt"]
    environment = {"PATH": os.environ["PATH"], "TRAINIUM_RESUME": "1"}
    done = subprocess.run(
        [*command, "--resume_ckpt_path", str(before)], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"moments": moments, "step": step, "read": str((folder / read).resolve())}


def test_the_library_of_neuron_is_told_to_go_on(folder: Path) -> None:
    arguments = ("--start_resume", "nxd", "--checkpoint_dir", "x")
    assert start(folder, *arguments)[0] == ["--checkpoint_dir", "x"]
    assert start(folder, *arguments, TRAINIUM_RESUME="1")[0][2:] == ["--loading_step", "latest_if_exists"]


def test_the_trainer_goes_on_from_a_checkpoint_that_has_its_state(folder: Path) -> None:
    for step in (500, 1000, 1500):
        (folder / "output" / f"checkpoint-{step}").mkdir(parents=True)
    for step, text in ((500, '{"global_step": 500}'), (1000, '{"global_step": 1000}'), (1500, '{"glo')):
        (folder / "output" / f"checkpoint-{step}" / "trainer_state.json").write_text(text, encoding="utf-8")
    arguments = ("--start_resume", "trainer", "--start_checkpoints", str(folder / "output"))
    given, text = start(folder, *arguments, TRAINIUM_RESUME="1")
    assert given == ["--resume_from_checkpoint", str(folder / "output" / "checkpoint-1000")]
    assert "checkpoint-1500 is not whole and passed over" in text


def test_events_of_each_start_stay_where_the_script_empties_its_folder(folder: Path) -> None:
    """As logger.py of Llama 3 70B does it: shutil.rmtree(tb_dir), whatever a start before has written there."""
    (folder / "shows.py").write_text(
        "import json, os, shutil, sys\nfrom beside import VALUE\n"
        "place = sys.argv[sys.argv.index('--tb_dir') + 1]\n"
        "if os.path.exists(place):\n    shutil.rmtree(place)\n"
        "os.makedirs(place)\nopen(place + '/events', 'w').write(os.environ['SAYS'])\n"
        "print(json.dumps(sys.argv[1:]), VALUE, __name__)\n",
        encoding="utf-8",
    )
    place = folder / "output" / "tensorboard"
    arguments = ("--start_tensorboard", "tb_dir", "--tb_dir", str(place))
    for says in ("first", "second"):
        start(folder, *arguments, SAYS=says, TRAINIUM_RESUME="1")
    # What is computed in a trial run is no result.
    given, _text = start(folder, *arguments, "--metrics_file", "/m.json", SAYS="trial", TRAINIUM_COMPILE="1")
    assert not given[given.index("--metrics_file") + 1].startswith("/m.json")
    assert [path.read_text() for path in sorted(place.rglob("events"))] == ["first", "second"]
    assert [path.name for path in sorted(place.iterdir())] == ["start-0001", "start-0002"]
