"""Every script that bash reads, with values that would like to be run: none is, and each script stays a script."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
from ansible.plugins.filter import core, mathstuff
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve

ROOT = Path(__file__).parents[2]
HOSTILE = {
    "newline": "x\ncanary\n",
    "newline in double quotes": 'x"\ncanary\n"',
    "newline in single quotes": "x'\ncanary\n'",
    "substitution": "`canary` $(canary) ${x:-$(canary)}",
    "single quotes": "x'; canary; '",
    "double quotes": 'x"; canary; "',
    "semicolon and the like": "x; canary | canary && canary & #",
    "one single quote": "it's",
    "one double quote and one backtick": 'a"b`c',
    "one brace and one backslash": "${x\\",
    "here document": "x\nEND_OF_VARIABLES\ncanary\nEND_OF_COLLECTION\ncanary\n",
    "unicode and DOS line ends": "Grüße 🚂 \u2028canary \x85canary\r\ncanary\r\n",
    "array": "x]=$(canary) [y) ; canary ; y=(",
}
Place = tuple[Any, ...]
SIGNS = "`$\"'\\;&|\n() "
# Nobody writes these: a file of the collection is read, or base64 made of one.
MADE = {("__parallelcluster_archive", "content"), ("__acceptance_efa",)}
# What the roles put into scripts for EFA.
EFA = (ROOT / "roles/efa/files/environment.sh").read_text(encoding="utf-8")


class Script(NamedTuple):
    """One way to run a template: its variables, and arguments of the script."""

    variables: dict[str, Any]
    arguments: tuple[str, ...] = ()


NODE = {
    "parallelcluster_node_python": "/usr/bin/python3",
    "__parallelcluster_node_requirements": ["--", "ansible-core>=2.17"],
    "__parallelcluster_neuron": True,
    "neuron_venv_path": "/opt/venv",
    "__parallelcluster_node_lock": "a==1 \\\n    --hash=sha256:0",
    "__parallelcluster_node_pip": ["--index-url=https://example.com/simple", "--trusted-host=example.com"],
    "__parallelcluster_packed": {"sha256": "0" * 64},
    "__parallelcluster_variables_text": '{"a": 1}',
}
PLAN = {"digest": "0" * 64, "nodes": ["n1", "n2"], "addresses": ["192.0.2.1", "192.0.2.2"]}
ACCEPTANCE = {
    "acceptance_venv_path": "/nonexistent/venv",
    "acceptance_directory": "/nonexistent",
    "acceptance_collective_processes": "1",
    "acceptance_collective_port": "29510",
    "acceptance_collective_bytes": "33554432",
    "acceptance_nccom_arguments": ["--check"],
    "private_address": "192.0.2.1",
    "__acceptance_rank": "0",
    "ansible_host": "192.0.2.1",
    "__acceptance_first": "192.0.2.1",
    "__acceptance_count": "2",
    "__acceptance_ranks": "64",
    "__acceptance_plan": PLAN,
    "__acceptance_gate": {"slurm": False},
    "__acceptance_efa": EFA,
}
# Template -> the ways to run it. Those of training_job have tests of their own below.
SCRIPTS: dict[str, list[Script]] = {
    "parallelcluster/templates/node.sh.j2": [
        Script(
            {
                **NODE,
                "parallelcluster_name": "demo",
                "parallelcluster_bucket": "bucket",
                "parallelcluster_region": "us-west-2",
                "parallelcluster_shared_dir": "/shared",
                "__parallelcluster_archive_key": "node/collection.tar.gz",
                "__parallelcluster_variables_key": "node/variables.json",
            }
        )
    ],
    "parallelcluster/templates/image.sh.j2": [Script({**NODE, "__parallelcluster_archive": {"content": "AAAA"}})],
    "acceptance/templates/gloo.sh.j2": [Script(ACCEPTANCE)],
    "acceptance/templates/nccom.sh.j2": [
        Script(ACCEPTANCE),
        Script({**ACCEPTANCE, "__acceptance_gate": {"slurm": True}}),
        Script({**ACCEPTANCE, "__acceptance_count": 1}),
    ],
    "efa/templates/trainium-efa.sh.j2": [Script({"__efa_library_folder": "/opt/amazon/efa/lib"})],
    "efa/files/environment.sh": [],
    "parallelcluster/templates/python.sh.j2": [],
    "parallelcluster/files/containers.sh": [],
    "neuron/templates/trainium-neuron.sh.j2": [],
    "diagnose/files/gather.sh": [],
    "node_image/files/clean.sh": [],
    "prove/files/look.sh": [],
    "slurm/files/build.sh": [],
    "slurm/files/install.sh": [],
    "training_job/files/bounded.sh": [],
    "training_job/templates/batch.j2": [],
    "training_job/templates/job.sh.j2": [],
    "training_job/templates/pod.sh.j2": [],
    "training_job/templates/restart.sh.j2": [],
}


def is_script(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return path.name.removesuffix(".j2").endswith(".sh") or any(
        line.startswith("#!") and "sh" in line.split("/")[-1] for line in text.splitlines()[:20]
    )


def test_no_script_is_missing_here() -> None:
    found = {
        str(path.relative_to(ROOT / "roles"))
        for folder in ("templates", "files")
        for path in (ROOT / "roles").glob(f"*/{folder}/**/*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".py" and is_script(path)
    }
    assert found == set(SCRIPTS)


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Where in nested variables there is text."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*path, number))
    elif isinstance(value, str):
        yield path


def replaced(value: Any, path: Place, text: Any) -> Any:
    """A copy with another text in one place."""
    made = copy.deepcopy(value)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    return made


@cache
def compiled(template: str) -> jinja2.Template:
    """As Ansible reads it, with its filters; Ansible itself would read it anew for each value."""
    environment = jinja2.Environment(  # noqa: S701 - no page is made of it
        loader=jinja2.FileSystemLoader((ROOT / "roles" / template).parent),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update({**core.FilterModule().filters(), **mathstuff.FilterModule().filters()})
    text = (ROOT / "roles" / template).read_text(encoding="utf-8")
    # Whatever it makes of the names is quoted all the same.
    return environment.from_string(text.replace("| trainium.cluster.hostlist_compress", "| join(',')"))


def render(template: str, variables: dict[str, Any]) -> str:
    return compiled(template).render(variables)


class Bash:
    """Runs scripts with nothing on PATH but a canary."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bin, self._sang = folder, folder / "bin", folder / "sang"
        self._bin.mkdir()
        self._seen: set[str] = set()
        (self._bin / "canary").write_text(f"#!/bin/bash\n: > '{self._sang}'\n")
        (self._bin / "canary").chmod(0o755)

    def check(self, text: str, what: str, *arguments: str) -> None:
        """A script is refused where bash can not read it, or where it runs a value."""
        if text in self._seen:
            return
        self._seen.add(text)
        script = self._folder / "script"
        script.write_text(text, encoding="utf-8")
        read = self._run("-n", str(script))
        assert read.returncode == 0, f"{what}: bash can not read it: {read.stderr}"
        self._run(str(script), *arguments)
        assert not self._sang.exists(), f"{what} was run"

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", *arguments],
            cwd=self._folder,
            env={"PATH": str(self._bin), "TRAINIUM_NODE_RANK": "0", "SLURM_JOB_ID": "", "SLURM_JOB_NUM_NODES": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)


def test_the_canary_sings(bash: Bash) -> None:
    with pytest.raises(AssertionError, match="x was run"):
        bash.check("echo `canary`", "x")
    with pytest.raises(AssertionError, match="can not read it"):
        bash.check("echo `canary", "x")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize(
    ("template", "script"), [(template, script) for template, scripts in SCRIPTS.items() for script in scripts]
)
def test_no_value_is_run(bash: Bash, template: str, script: Script, text: str) -> None:
    for path in leaves(script.variables):
        if path not in MADE:
            bash.check(render(template, replaced(script.variables, path, text)), f"{path} of {template}")


@pytest.mark.parametrize("template", [template for template, scripts in SCRIPTS.items() if not scripts][:4])
def test_scripts_without_variables_are_scripts(template: str) -> None:
    assert "{{" not in (ROOT / "roles" / template).read_text(encoding="utf-8")
    done = subprocess.run(["/bin/bash", "-n", ROOT / "roles" / template], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_patterns_of_logs_are_not_run(bash: Bash, text: str) -> None:
    script = (ROOT / "roles/diagnose/files/gather.sh").read_text(encoding="utf-8")
    bash.check(script, "a pattern", "1", "100", "1", "no", text, "--", text)


# --- the training job: a definition is refused, or its scripts are as they should be ---

CONTEXT: dict[str, Any] = {
    "directory": "/nonexistent/trainium",
    "venv_path": "/nonexistent/venv",
    "launcher": "slurm",
    "usable": ["n1", "n2"],
    "known": 2,
    "checksums": {},
    "partition": "trn1",
}
DEFINITION: dict[str, Any] = {
    "preset": "none",
    "tensorboard": "/nonexistent/tensorboard",
    "name": "training",
    "files": ["a.py", "b.py"],
    "fetch": [{"url": "https://example.com/c", "checksum": "sha256:" + "0" * 64, "dest": "data/c"}],
    "packages": ["git"],
    "requirements": ["h5py==3.11.0"],
    "prepare": {"script": "b.py", "args": {"text": "x", "several": ["x", "y"]}},
    "script": "a.py",
    "args": {"text": "x", "several": ["x", "y"]},
    "steps": "10",
    "nodes": "2",
    "min_nodes": "1",
    "processes_per_node": "2",
    "time_limit": "1:00:00",
    "env": {"TEXT": "x"},
    "compile": {
        "enabled": True,
        "steps": "10",
        "command": ["neuron_parallel_compile", "x"],
        "args": {"text": "x"},
        "steps_argument": "steps_this_run",
        "success": "failed: 0",
        "time_limit": "1:00:00",
    },
    "checkpoint": {"steps": "5", "keep": "3", "resume": True},
    "stop_before": "60",
    "stopped_by": "job",
    "ends_at": "2096-10-02T07:06:40Z",
    "cache": {"directory": "/nonexistent/cache", "clear_locks": True, "keep_days": "3"},
    "reserved_port": "48620",
}
# What does not go through the definition.
PLACES: dict[str, Any] = {
    "training_job_slurm_path": "/nonexistent/slurm",
    "training_job_venv_path": "/nonexistent/venv",
    "training_job_rendezvous_port": "29500",
    "__training_job_addresses": {"n1": "192.0.2.1", "n2": "192.0.2.2"},
}
# A training in an image has no packages, and more lines.
IN_IMAGE: dict[str, Any] = {
    **DEFINITION,
    "packages": [],
    "requirements": [],
    "image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/a:1",
    "mounts": ["/nonexistent/data"],
}
EVERYTHING = {"definition": DEFINITION, "context": CONTEXT, "places": PLACES}
# What would be refused at once for another beginning.
ROOTED = ("directory", "venv_path", "training_job_slurm_path", "training_job_venv_path")
WAYS = [
    ("training_job/templates/job.sh.j2", "train", ("train",)),
    ("training_job/templates/job.sh.j2", "train", ("prepare",)),
    ("training_job/templates/job.sh.j2", "train", ("host",)),
    ("training_job/templates/restart.sh.j2", "train", ("unit",)),
    ("training_job/templates/restart.sh.j2", "train", ("lost",)),
    ("training_job/templates/batch.j2", "train", ()),
    ("training_job/templates/batch.j2", "compile", ()),
    ("training_job/templates/pod.sh.j2", "train", ("stage",)),
]


def accepted(definition: dict[str, Any], context: dict[str, Any]) -> dict[str, Any] | None:
    """The whole definition; None where it is refused, by a sentence on one line."""
    try:
        return resolve(definition, {}, context)
    except ValueError as error:
        assert "\n" not in str(error)
        return None


def scripts_of(job: dict[str, Any], places: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for template, mode, arguments in WAYS:
        variables = {
            "__training_job": job,
            "__training_job_mode": mode,
            "training_job_shared": False,
            "training_job_directory": job["directory"],
            "__training_job_in_pods": "pod.sh" in template,
            "__training_job_pod_root": "/etc/trainium",
            "__training_job_requirements": "print()",
            "training_job_pods_timeout": "3600",
            "training_job_retries": 6,
            "training_job_tensorboard": True,
            "__training_job_efa": EFA,
            "__training_job_partition": job["partition"],
            **places,
        }
        text = render(template, variables)
        # The others source it, from a folder that is not there.
        lines = text.splitlines(keepends=True)
        sourced = [line for line in lines if line.startswith(". ") and line.endswith("/restart.sh\n")]
        assert len(sourced) == (0 if "restart" in template or "pod.sh" in template else 1)
        if sourced:
            assert sourced == [f". {shlex.quote(job['folder'])}/restart.sh\n"]
            text = text.replace(sourced[0], render("training_job/templates/restart.sh.j2", variables))
        if "batch" in template:
            assert sum(line.startswith("#SBATCH") for line in text.splitlines()) == 9
        # Every definition has a folder of its own, and else most scripts would be those that were tried already.
        yield text.replace(job["digest"], "0" * 12), arguments


def check_job(bash: Bash, path: Place, value: Any, everything: dict[str, Any] | None = None) -> bool:
    """Whether another value in one place of all that goes into a job is accepted; then its scripts are tried."""
    everything = everything or EVERYTHING
    made = replaced(everything, path, value) if path else everything
    job = accepted(made["definition"], made["context"])
    if job is None:
        return False
    job.update({name: made["context"][name] for name in ("partition", "directory")})
    for text, arguments in scripts_of(job, made["places"]):
        bash.check(text, f"{path}", *arguments)
    return True


def test_the_definition_of_these_tests_is_accepted(bash: Bash) -> None:
    assert check_job(bash, (), None)


# Names, digests and numbers, whose form the definition has checked, texts of the template's own, and a file of the
# collection. The options of sbatch are tried with the others.
UNQUOTED = {
    *("__training_job.name", "__training_job.digest", "__training_job.compile_log | basename", "__training_job_mode"),
    *("__training_job_efa", "name", "value"),
    "'$((started + ' ~ __training_job.limit_seconds ~ '))' if __training_job.limit_seconds else 0",
    "training_job_retries | default(6) | int if __training_job.requeue else 0",
    "'' if __training_job.requeue else 'no-'",
    "'' if of_image else '$venv/bin:'",
    "'[ \"$ready\" -ne 0 ] || ' if __training_job.container",
    "' && [ \"$rank\" = 0 ]' if training_job_shared | bool",
    "' -p \"$folder\"' if __training_job.container",
}


def test_every_other_value_of_a_training_job_is_quoted() -> None:
    """Also where a script that is tried here does not come to."""
    found = set()
    for name in ("job.sh", "restart.sh", "batch", "pod.sh"):
        text = (ROOT / f"roles/training_job/templates/{name}.j2").read_text(encoding="utf-8")
        found |= set(re.findall(r"{{-? *(.*?) *-?}}", text))
    plain = {one for one in found if not re.search(r"\| (quote|int)$|^words\(|^'\"?\$\{.*\}\"?'$", one)}
    assert plain == UNQUOTED


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_value_of_a_training_job_is_run(bash: Bash, text: str) -> None:
    for path in leaves(EVERYTHING):
        check_job(bash, path, f"/nonexistent/{text}" if path[-1] in ROOTED else text)
    for path in (("env",), ("args",), ("compile", "args"), ("prepare", "args")):
        assert not check_job(bash, ("definition", *path), {text: "x"}), "a name like this is refused"
    check_job(bash, ("places", "__training_job_addresses"), {text: "192.0.2.1", "n2": "192.0.2.2"})


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("image", [IN_IMAGE["image"], "/nonexistent/a.sqsh"])
def test_no_value_of_a_training_in_an_image_is_run(bash: Bash, image: str, text: str) -> None:
    everything = {**EVERYTHING, "definition": {**IN_IMAGE, "image": image}}
    assert check_job(bash, (), None, everything)
    for path in (("definition", "image"), ("definition", "mounts", 0), ("definition", "cache", "directory")):
        for value in (text, f"/nonexistent/{text}", f"{IN_IMAGE['image']}{text}", f"{text}@example.com#a:1"):
            check_job(bash, path, value, everything)
    check_job(bash, ("context", "directory"), f"/nonexistent/{text}", everything)


@pytest.mark.parametrize("key", ["ends_at", "time_limit", "name", "steps"])
def test_no_sign_of_a_value_with_a_form_is_run(bash: Bash, key: str) -> None:
    """Each sign of a good value is replaced: what reads a time may take anything in one place."""
    base = DEFINITION[key]
    for number in range(len(base)):
        for sign in SIGNS:
            check_job(bash, ("definition", key), base[:number] + sign + base[number + 1 :])


def test_a_partition_is_a_name() -> None:
    for good in ("", "trn1", "trn1,trn1n-b", "a.b_c"):
        assert resolve(DEFINITION, {}, {**CONTEXT, "partition": good})
    for text in HOSTILE.values():
        with pytest.raises(ValueError, match=r"training_job_partition of the training job is '.*a partition's name"):
            resolve(DEFINITION, {}, {**CONTEXT, "partition": text})
