"""The scripts of a training job as bash runs them: every value reaches the script as it was written, whatever it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import DEFAULTS

from tests.unit.training.scripts.job_scripts import ADDRESS, Job

DEFAULT = DEFAULTS["cache"]["directory"]
LONG = "x'\"$(id)\n" * 1250
HOSTILE: dict[str, Any] = {
    "space": "two words",
    "ends with a space": "x ",
    "single quote": "it's",
    "double quotes": 'say "no"',
    "both quotes": """'"'"'""",
    "substitution": "$(touch spoiled)",
    "backticks": "`touch spoiled`",
    "variable": "$HOME ${PATH} $1 $$",
    "semicolon": "x; touch spoiled",
    "and": "x && touch spoiled &",
    "redirection": "> spoiled < /etc/passwd",
    "newlines": "one\ntouch spoiled\n",
    "carriage return": "one\r\ntwo\ttab",
    "glob": "* ? [a-z] {a,b} ~",
    "backslashes": "\\n \\$(id) \\",
    "history and comment": "!x #y",
    "option": "--steps=5",
    "unicode": "Grüße 漢字 🚂 \u202e \u00a0",
    "empty": "",
    "ten thousand characters": LONG,
    "jinja": "{{ 7 * 7 }} {% if true %}x{% endif %} {# y #}",
    "percent": "%j %% %n",
    "control characters": "\x01\x1b[31m\x7f",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_value_reaches_the_script_as_it_was_written(tmp_path: Path, text: str) -> None:
    definition = {
        "args": {"text": text, "several": [text, "b"]},
        "env": {"TEXT": text},
        "prepare": {"script": "a.py", "args": {"text": text}},
        "compile": {"enabled": True, "args": {"more": text}},
    }
    job = Job(tmp_path, definition)
    for mode, more in (("train", []), ("compile", ["--steps_this_run", "10", "--more", text])):
        done = job.run("job.sh", mode, SAYS="Total failed compilations: 0")
        assert done.returncode == 0, done.stderr
        argv, environment = job.calls("torchrun")[-1]
        script = argv.index(f"{job.folder}/a.py")
        assert argv[script + 1 :] == ["--text", text, "--several", text, "b", *more]
        assert environment["TEXT"] == text
        assert "--node-rank=0" in argv
        assert f"--master-addr={ADDRESS}" in argv
    prepared = [call[0] for call in job.calls("python") if call[0][0].endswith("a.py")]
    assert prepared == [[f"{job.folder}/a.py", "--text", text]] * 2
    assert not list(tmp_path.rglob("spoiled"))
    assert not Path("/tmp/spoiled").exists()  # noqa: S108  # where the script runs


@pytest.mark.parametrize(
    "name", ["a b.py", "it's.py", 'a".py', "$(touch spoiled).py", "`id`.py", "a;b.py", "漢.py", "*.py"]
)
def test_a_file_of_any_name_is_started_or_refused(tmp_path: Path, name: str) -> None:
    job = Job(tmp_path, {"files": [f"x/{name}"], "script": name})
    assert job.run("job.sh", "train").returncode == 0
    assert job.calls("torchrun")[-1][0][-1] == f"{job.folder}/{name}"
    assert not list(tmp_path.rglob("spoiled"))


def test_the_command_that_compiles_is_quoted_as_well(tmp_path: Path) -> None:
    command = ["env", "MORE=a b $(touch spoiled)", "neuron_parallel_compile"]
    job = Job(tmp_path, {"compile": {"enabled": True, "command": command, "success": "fine: '[0-9]+' \\(x\\)"}})
    done = job.run("job.sh", "compile", SAYS="fine: '12' (x)")
    assert done.returncode == 0, done.stdout
    assert job.calls("torchrun")[-1][1]["MORE"] == "a b $(touch spoiled)"


@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"SAYS": "||PARALLEL_COMPILE||: Total failed compilations: 0"}, 0, ""),
        ({"SAYS": "||PARALLEL_COMPILE||: Total failed compilations: 3"}, 1, "said nothing like"),
        ({"SAYS": "Total failed compilations: 0", "ENDS_WITH": "4"}, 4, "ended with code 4"),
        # All graphs were in the cache, as where another number of steps makes another job.
        ({"SAYS": "No todo hlos found in cache or hlo_tasklist, parallel_compile return before"}, 0, ""),
        ({"SAYS": "Got a cached failed neff at /c\nNo todo hlos found in cache"}, 1, "a graph that has failed before"),
    ],
)
def test_compiling_is_checked_by_its_line_and_its_code(
    tmp_path: Path, environment: dict[str, str], code: int, said: str
) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}, "requeue": False})
    done = job.run("compile.batch", **environment)
    assert (done.returncode, said in done.stdout) == (code, True)
    assert (job.folder / "end").read_text() == f"7 {code}\n"


@pytest.mark.parametrize(("failures", "waits"), [(0, 0), (3, 1)])
def test_why_a_node_failed_is_read_before_srun_ends_the_job(tmp_path: Path, failures: int, waits: int) -> None:
    """srun passes on nothing more once it knows that a node has failed: the reason gets a second before."""
    job = Job(tmp_path, {"compile": {"enabled": True}})
    stub = tmp_path / "bin" / "sleep"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\necho \"$1\" >> '{tmp_path}/slept'\n")
    stub.chmod(0o755)
    (tmp_path / "slept").touch()
    path = f"{stub.parent}:{os.environ['PATH']}"
    says = f"Total failed compilations: {failures}"
    for step in ("0", ""):
        done = job.run("job.sh", "compile", PATH=path, SLURM_STEP_ID=step, SAYS=says)
        assert done.returncode == (failures > 0), done.stdout
    # Without srun nobody ends it.
    assert (tmp_path / "slept").read_text() == "1\n" * waits


@pytest.mark.parametrize(("version", "code"), [("2.9.0.2.13.26312", 0), ("2.14.3.0.17", 1)])
def test_torchneuron_is_not_compiled_for_xla(tmp_path: Path, version: str, code: int) -> None:
    """Where a lock file or an image of one's own made the environment, the role does not know which one it has."""
    job = Job(tmp_path, {"compile": {"enabled": True}})
    (tmp_path / f"a venv/lib/python3.12/site-packages/torch_neuronx-{version}.dist-info").mkdir(parents=True)
    done = job.run("job.sh", "compile", SAYS="Total failed compilations: 0")
    assert done.returncode == code
    assert (f"n 1 has TorchNeuron {version}, and neuron_parallel_compile is for XLA" in done.stderr) == bool(code)
    assert bool(job.calls("torchrun")) == (not code)


def test_a_graph_that_has_failed_is_compiled_again_and_has_the_same_flags_in_the_training(tmp_path: Path) -> None:
    """Or the failure would be taken from the cache for ever; flags are part of what a graph is looked up by."""
    job = Job(tmp_path, {"compile": {"enabled": True}, "env": {"NEURON_CC_FLAGS": "-O1"}})
    for mode in ("compile", "train"):
        job.run("job.sh", mode, SAYS="Total failed compilations: 0")
        assert job.calls("torchrun")[-1][1]["NEURON_CC_FLAGS"] == "-O1 --retry_failed_compilation"
    shutil.rmtree(tmp_path / "a venv")
    shutil.rmtree(tmp_path / "work")
    given = "--retry_failed_compilation -O2"
    job = Job(tmp_path, {"compile": {"enabled": True}, "env": {"NEURON_CC_FLAGS": given}})
    job.run("job.sh", "train")
    assert job.calls("torchrun")[-1][1]["NEURON_CC_FLAGS"] == given
    shutil.rmtree(tmp_path / "a venv")
    shutil.rmtree(tmp_path / "work")
    job = Job(tmp_path, {})
    job.run("job.sh", "train")
    assert "NEURON_CC_FLAGS" not in job.calls("torchrun")[-1][1]


def test_its_programs_run_where_nobody_else_writes(tmp_path: Path) -> None:
    """In /tmp anybody could lay a multiprocessing.py, which ``python -c`` imports before Python's own."""
    job = Job(tmp_path, {})
    for _again in range(2):
        process = job.start("job.sh", "train", SLEEPS="5")
        deadline = time.monotonic() + 300
        while not job.calls("torchrun"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        place = Path(job.calls("torchrun")[-1][1]["PWD"])
        assert place.parent.parent == Path("/tmp")  # noqa: S108
        assert place.parent.stat().st_mode & 0o777 == 0o700
        process.terminate()
        process.communicate()
        assert not place.parent.exists()
        job.shown.unlink()


@pytest.mark.parametrize("there", ["nothing", "a folder", "a link", "a file"])
def test_a_folder_of_its_own_is_that_or_refused(tmp_path: Path, there: str) -> None:
    """Of the place where programs run, and of the compile cache, whose programs the device runs."""
    job, folder = Job(tmp_path, {}), tmp_path / "own"
    if there == "a folder":
        folder.mkdir(mode=0o777)
    elif there == "a link":
        folder.symlink_to(tmp_path)
    elif there == "a file":
        folder.touch()
    code = '. "$1"/restart.sh; own_folder "$2"; echo made'
    done = subprocess.run(["bash", "-c", code, "_", job.folder, folder], capture_output=True, text=True, check=False)
    if there in ("a link", "a file"):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"{folder} on ") and done.stderr.endswith("who runs the job; remove it.\n")
        return
    assert done.stdout == "made\n"
    assert folder.stat().st_mode & 0o777 == 0o700


def with_default_cache(job: Job, place: Path) -> Path:
    """The folder that the user who runs the tests gets, where the default lies in the place of /var/tmp."""
    for script in job.folder.glob("*.sh"):
        script.write_text(script.read_text().replace(DEFAULT, str(place / "cache")))
    return place / f"cache-{os.geteuid()}"


@pytest.mark.parametrize("there", ["nothing", "another's", "a link"])
def test_the_compile_cache_is_each_user_s_own(tmp_path: Path, there: str) -> None:
    """Whose jobs came first on a node keeps nobody out; and the device runs nobody else's programs."""
    job = Job(tmp_path, {"cache": {"directory": DEFAULT}})
    cache = with_default_cache(job, tmp_path)
    (tmp_path / "cache").touch()
    if there == "a link":
        cache.symlink_to(tmp_path / "work")
    elif there == "another's":
        cache.mkdir(mode=0o777)
        if os.geteuid():
            cache.rmdir()
            cache.touch()
        else:
            os.chown(cache, 65534, 65534)
    done = job.run("job.sh", "train")
    if there == "nothing":
        assert (done.returncode, done.stderr) == (0, "")
        assert job.calls("torchrun")[-1][1]["NEURON_COMPILE_CACHE_URL"] == str(cache)
        assert cache.stat().st_mode & 0o777 == 0o700
        return
    assert done.returncode == 1
    assert f"{cache} on " in done.stderr and "who runs the job; remove it." in done.stderr
    assert job.calls("torchrun") == []


def test_what_any_script_may_go_by(tmp_path: Path) -> None:
    job = Job(tmp_path, {"checkpoint": {"steps": 5}, "time_limit": "10", "stop_before": 60})
    assert job.run("job.sh", "train", TRAINIUM_JOB_STARTED="4000000000").returncode == 0
    environment = job.calls("torchrun")[-1][1]
    wanted = {"CHECKPOINT_STEPS": "5", "CHECKPOINT_KEEP": "3", "RESUME": "1", "STOP_AT": str(4000000000 + 600 - 60)}
    assert {name: environment[f"TRAINIUM_{name}"] for name in wanted} == wanted
    assert job.run("job.sh", "compile", SAYS="Total failed compilations: 0").returncode == 0
    compiling = job.calls("torchrun")[-1][1]
    assert (compiling["TRAINIUM_CHECKPOINT_STEPS"], compiling["TRAINIUM_RESUME"]) == ("0", "0")
    assert environment["NEURON_COMPILE_CACHE_URL"] == job.job["cache"]["directory"]
    assert Path(job.job["cache"]["directory"]).is_dir()


def test_the_end_of_a_capacity_block_counts_where_it_is_earlier(tmp_path: Path) -> None:
    job = Job(tmp_path, {"ends_at": "2096-10-02T07:06:40Z", "time_limit": "UNLIMITED"})
    assert job.run("job.sh", "train").returncode == 0
    assert job.calls("torchrun")[-1][1]["TRAINIUM_STOP_AT"] == str(4000000000 - 120)
    shutil.rmtree(tmp_path / "a venv")
    shutil.rmtree(tmp_path / "work")
    over = Job(tmp_path, {"ends_at": "2020-01-01T00:00:00Z"})
    done = over.run("job.sh", "train")
    assert done.returncode == 1
    assert "see ends_at" in done.stderr


def test_an_old_cache_is_pruned(tmp_path: Path) -> None:
    job = Job(tmp_path, {"cache": {"keep_days": 30}})
    cache = Path(job.job["cache"]["directory"]) / "neuronxcc-2.26"
    for name in ("MODULE_old", "MODULE_new", "other"):
        (cache / name).mkdir(parents=True)
    for name in ("MODULE_old", "other"):
        os.utime(cache / name, (1, 1))
    assert job.run("job.sh", "train").returncode == 0
    assert sorted(path.name for path in cache.iterdir()) == ["MODULE_new", "other"]


def test_a_node_without_a_cache_compiles_before_the_training(tmp_path: Path) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}})
    environment = {"SAYS": "Total failed compilations: 0"}
    done = job.run("train.batch", **environment)
    assert done.returncode == 0
    assert "JOB compiles once more: n 1 has not." in done.stdout
    assert "Total failed" in Path(job.job["compile_log"]).read_text()
    assert [call[1]["TRAINIUM_RESUME"] for call in job.calls("torchrun")] == ["0", "1"]
    assert "JOB compiles" not in job.run("train.batch", **environment).stdout
    assert len(job.calls("torchrun")) == 3
    # What another node has in its place has not; nor where the compilation has failed.
    shutil.rmtree(job.job["cache"]["directory"])
    for _again in range(2):
        done = job.run("train.batch")
        assert "JOB note: that has failed, see compile.log" in done.stdout
        assert done.returncode == 0


@pytest.mark.parametrize(
    ("directory", "wanted"), [("", "s3://example-bucket/cache"), ("s3://own/cache", "s3://own/cache")]
)
def test_nodes_that_come_and_go_name_a_cache_that_outlives_them(tmp_path: Path, directory: str, wanted: str) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}, "cache": {"directory": directory or DEFAULT}})
    named = tmp_path / "named"
    named.write_text("s3://example-bucket/cache\n")
    script = job.folder / "job.sh"
    script.write_text(script.read_text().replace("/etc/trainium-compile-cache", f"'{named}'"))
    assert "JOB compiles" not in job.run("train.batch").stdout
    assert [call[1]["NEURON_COMPILE_CACHE_URL"] for call in job.calls("torchrun")] == [wanted]
    assert not list(job.work.iterdir())
