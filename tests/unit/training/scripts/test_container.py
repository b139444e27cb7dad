"""A training in an image: what of it is refused, and its scripts with stand-ins for Enroot and Slurm's plugin Pyxis."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve
from ansible_collections.trainium.cluster.plugins.module_utils._training.image import sdk_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import problem

from tests.unit.training.scripts.job_scripts import SHOW, STUBS, Job
from tests.unit.training.scripts.test_job_scripts import DEFAULT, with_default_cache

IMAGE = "example.com/a/b:1"
NEURON = "public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04"
DIGEST = "sha256:" + "0" * 64
OWN = {"preset": "none", "files": ["a.py"], "script": "a.py"}
CONTEXT = {
    "directory": "/shared/trainium",
    "venv_path": "/opt/venv",
    "launcher": "slurm",
    "usable": ["n1"],
    "known": 1,
    "checksums": {},
}


def container(image: Any, context: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found = resolve({**OWN, "image": image, **more}, {}, {**CONTEXT, **(context or {})})["container"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("image", "uri"),
    [
        (NEURON, f"docker://{NEURON.replace('/', '#', 1)}"),
        ("docker://ubuntu:22.04", "docker://ubuntu:22.04"),
        ("pytorch/pytorch:2.9", "docker://pytorch/pytorch:2.9"),
        ("localhost:5000/a/b:1", "docker://localhost:5000#a/b:1"),
        ("$oauthtoken@nvcr.io#nvidia/pytorch:25.06-py3", "docker://$oauthtoken@nvcr.io#nvidia/pytorch:25.06-py3"),
        (f"example.com/a/b@{DIGEST}", f"docker://example.com#a/b:{DIGEST}"),
        (f"example.com/a/b:1@{DIGEST}", f"docker://example.com#a/b:{DIGEST}"),
    ],
)
def test_an_image_is_named_as_enroot_takes_it(image: str, uri: str) -> None:
    found = container(image)
    assert (found["uri"], found["region"]) == (uri, "")
    assert found["file"].startswith("/shared/trainium/images/")


def test_images_of_a_registry_of_amazon_are_fetched_as_aws() -> None:
    found = container("123456789012.dkr.ecr.us-west-2.amazonaws.com/own:3")
    assert found["uri"] == "docker://AWS@123456789012.dkr.ecr.us-west-2.amazonaws.com#own:3"
    assert (found["registry"], found["region"]) == ("123456789012.dkr.ecr.us-west-2.amazonaws.com", "us-west-2")


def test_a_squashfs_file_serves_as_it_is() -> None:
    assert (container("/shared/a.sqsh")["uri"], container("/shared/a.sqsh")["file"]) == ("", "/shared/a.sqsh")
    assert container("") == {}


def test_a_container_sees_jobs_cache_and_data() -> None:
    found = container(IMAGE, {"mounts": ["/fsx", "/shared/trainium"]}, mounts=["/data", "/fsx"])
    assert found["mounts"] == ["/shared/trainium", "/var/tmp/neuron-compile-cache", "/fsx", "/data"]  # noqa: S108
    assert container(IMAGE, cache={"directory": "s3://bucket/cache"})["mounts"] == ["/shared/trainium"]


@pytest.mark.parametrize(
    ("image", "more", "sentence"),
    [
        (7, {}, "image of the training job is '7'; write it as public.ecr.aws/neuron/"),
        ("Example.com/A:1", {}, "write it as"),
        ("a b:1", {}, "write it as"),
        ("example.com/a:1\n", {}, "write it as"),
        ("exa$mple.com#a:1", {}, "write it as"),
        ("example.com/a", {}, "name a tag other than latest, or a digest"),
        ("example.com/a:latest", {}, "name a tag other than latest, or a digest"),
        ("/shared/a b.sqsh", {}, "image of the training job is '/shared/a b.sqsh'; use a path without blanks"),
        (IMAGE, {"mounts": "/data"}, "mounts of the training job is '/data'; use a list"),
        (IMAGE, {"mounts": ["data"]}, "mounts of the training job is 'data'; use an absolute path"),
        (IMAGE, {"mounts": ["/a:/b"]}, "use a path without blanks, commas and colons"),
        (IMAGE, {"cache": {"directory": "/var/a cache"}}, "mounts of the training job is '/var/a cache'"),
        (
            IMAGE,
            {"packages": ["git"]},
            "packages of the training job is 'git'; take an image that has it, and set",
        ),
        (IMAGE, {"requirements": ["h5py", "six"]}, "requirements of the training job is 'h5py, six'; take an image"),
    ],
)
def test_what_cannot_run_is_refused(image: Any, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        container(image, **more)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_image_is_for_slurm() -> None:
    with pytest.raises(ValueError, match="set training_job_launcher to slurm"):
        container(IMAGE, {"launcher": "torchrun"})


@pytest.mark.parametrize(
    ("image", "sdk", "refused"),
    [
        (NEURON, "2.29.1", False),
        (NEURON, "2.30.0", False),
        (NEURON, "2.28.0", True),
        (NEURON, "2.33.0", True),
        (NEURON, "", False),
        (IMAGE, "2.33.0", False),
    ],
)
def test_the_runtime_of_an_image_goes_with_the_driver_of_its_nodes(image: str, sdk: str, refused: bool) -> None:
    said = problem({**OWN, "image": image}, {}, {"directory": "/opt/trainium", "sdk": sdk})
    assert ("does not run with the driver of SDK" in said) == refused
    assert sdk_of(NEURON) == "2.29.1"
    assert sdk_of(f"a/b:trainium-0123456789abcdef-sdk2.29.1@sha256:{'0' * 64}") == "2.29.1"


def test_nodes_without_pyxis_are_named() -> None:
    site = {"directory": "/opt/trainium", "pyxis": "backend ec2 installs neither Pyxis nor Enroot: set x"}
    assert problem({**OWN, "image": IMAGE}, {}, site) == (
        f"image of the training job is '{IMAGE}', and backend ec2 installs neither Pyxis nor Enroot: set x."
    )
    assert problem(OWN, {}, site) == ""


# --- scripts ---

SECRET = "of this job alone"
DEFINITION: dict[str, Any] = {
    "image": IMAGE,
    "env": {"TOKEN": SECRET},
    "compile": {"enabled": True},
    "prepare": {"script": "a.py", "args": {"text": "x"}},
}
COMPILED = {"SAYS": "Total failed compilations: 0"}


def contained(folder: Path, *, shared: bool = True, **more: Any) -> Job:
    """A job whose image has Python, torchrun, and a compiler, but no Slurm, ip or sudo."""
    job = Job(folder, {**DEFINITION, **more}, shared=shared)
    job.shown = job.folder / "shown"
    image = folder / "image"
    image.mkdir()
    for name in ("torchrun", "neuron_parallel_compile"):
        text = STUBS[name].replace(SHOW.splitlines()[0], "#!/usr/bin/env python3")
        (image / name).write_text(text)
        (image / name).chmod(0o755)
    (folder / "a venv" / "bin" / "torchrun").unlink(missing_ok=True)
    (job.folder / "a.py").write_text("import os\nopen(os.environ['SHOWN'] + '.prepared', 'a').write('once\\n')\n")
    return job


@pytest.fixture(autouse=True)
def namespaces(request: pytest.FixtureRequest) -> None:
    """Containers are made of them; some builders of containers allow none."""
    if "tmp_path" not in request.fixturenames:
        return
    made = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False)
    if made.returncode:
        pytest.skip("no user namespaces here")


@pytest.mark.parametrize("shared", [True, False])
def test_everything_runs_in_the_image_which_is_imported_once(tmp_path: Path, shared: bool) -> None:
    job = contained(tmp_path, shared=shared)
    for name in ("compile", "train", "train"):
        done = job.run(f"{name}.batch", SHOWN=str(job.shown), **COMPILED)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (job.folder / "end").read_text() == "7 0\n", done.stdout + done.stderr
    calls = job.calls("torchrun")
    assert [environment["TRAINIUM_RESUME"] for _argv, environment in calls] == ["0", "1", "1"]
    for argv, environment in calls:
        assert "--node-rank=0" in argv
        assert environment["TOKEN"] == SECRET
        assert environment["PATH"].startswith("/mnt/image:")
        assert "a venv/bin" not in environment["PATH"].split("/usr/bin")[0]
        assert environment["GLOO_SOCKET_IFNAME"] == "lo"
        assert environment["NEURON_COMPILE_CACHE_URL"] == str(tmp_path / "cache")
        assert SECRET not in " ".join(argv)
    imported = Path(f"{job.shown}.enroot").read_text().splitlines()
    assert [line.split()[-1] for line in imported] == ["docker://example.com#a/b:1"]
    assert [path.name for path in (tmp_path / "jobs" / "images").iterdir()] == [Path(job.job["container"]["file"]).name]
    # On shared storage once, else on each node at each start.
    assert Path(f"{job.shown}.prepared").read_text() == "once\n" * (1 if shared else 3)
    assert not list(job.folder.glob("tmp.*"))
    for script in job.folder.glob("*.sh"):
        assert SECRET not in script.read_text()


def test_the_cache_of_the_user_is_seen_in_the_image(tmp_path: Path) -> None:
    job = contained(tmp_path, cache={"directory": DEFAULT}, prepare={})
    cache = with_default_cache(job, tmp_path)
    done = job.run("compile.batch", SHOWN=str(job.shown), **COMPILED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert job.calls("torchrun")[-1][1]["NEURON_COMPILE_CACHE_URL"] == str(cache)
    assert (cache / f".{job.job['digest']}").is_file()
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_script_in_an_image_that_stopped_in_time_is_put_back(tmp_path: Path) -> None:
    job = contained(tmp_path, compile={"enabled": False}, prepare={})
    done = job.run("train.batch", SHOWN=str(job.shown), STOPS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "JOB is put into the queue again and goes on from its checkpoint." in done.stdout
    assert Path(f"{job.shown}.slurm").read_text() == "requeue 7\n"


def test_pyxis_is_told_what_of_the_node_is_not_in_the_container(tmp_path: Path) -> None:
    """The options as Pyxis names them (srun --help with the plugin, its README)."""
    job = contained(tmp_path, compile={"enabled": False}, prepare={})
    job.run("train.batch", SHOWN=str(job.shown))
    (train,) = (line.split() for line in job.told("srun") if "--container-image" in line)
    assert {word for word in train if "container" in word and "=" not in word} == {
        "--container-writable",
        # Its user is the node's, which owns what it writes.
        *("--no-container-mount-home", "--no-container-remap-root", "--no-container-entrypoint"),
    }
    # The node's working directory is not there.
    assert "--container-workdir=/tmp" in train


def test_a_failure_in_an_image_has_its_code(tmp_path: Path) -> None:
    job = contained(tmp_path, requeue=False)
    assert job.run("train.batch", SHOWN=str(job.shown), ENDS_WITH="3").returncode == 3
    assert (
        "JOB compiles once more"
        in Path(job.job["compile_log"]).read_text() + job.run("train.batch", SHOWN=str(job.shown), ENDS_WITH="3").stdout
    )


def test_the_first_node_s_end_is_heard_out_of_the_container(tmp_path: Path) -> None:
    """Else a node that is gone without a word would keep the others."""
    job = contained(tmp_path, compile={"enabled": False}, prepare={})
    script = job.folder / "restart.sh"
    script.write_text(script.read_text().replace("SILENT_SECONDS=30", "SILENT_SECONDS=1"))
    pyxis = tmp_path / "a venv" / "bin" / "pyxis"
    pyxis.write_text(pyxis.read_text().replace("exec unshare", "unshare") + "exec sleep 60\n")
    done = job.run("train.batch", SHOWN=str(job.shown), SLURMD_PORT="1")
    assert (done.returncode, "starts again without n 1" in done.stdout) == (0, True)


def test_an_image_that_cannot_be_imported_ends_the_job(tmp_path: Path) -> None:
    job = contained(tmp_path, requeue=False)
    done = job.run("train.batch", SHOWN=str(job.shown), REFUSES="1")
    assert done.returncode == 1
    assert "docker://example.com#a/b:1 cannot be imported on n 1" in done.stderr
    assert job.calls("torchrun") == []
    assert list((tmp_path / "jobs" / "images").iterdir()) == []


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    job = contained(tmp_path, image="/nonexistent/a.sqsh", requeue=False)
    done = job.run("train.batch", SHOWN=str(job.shown))
    assert done.returncode == 1
    assert "/nonexistent/a.sqsh, the image of the job, is no file that can be read on n 1" in done.stderr


def test_the_token_of_amazon_s_registry_lies_nowhere(tmp_path: Path) -> None:
    job = contained(tmp_path, image="123456789012.dkr.ecr.us-west-2.amazonaws.com/own:3", requeue=False)
    job.run("job.sh", "host", SHOWN=str(job.shown))
    _import, line = Path(f"{job.shown}.enroot").read_text().splitlines()
    registry = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
    assert line == f"machine {registry} login AWS password $(aws ecr get-login-password --region us-west-2)"
    assert json.loads((job.folder / "environment.json").read_text())["TOKEN"] == SECRET
