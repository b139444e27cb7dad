"""The subjects of a run: whose sources they are, and which tests belong to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

UNIT, CONTRACT, SECURITY = "tests/unit", "tests/contract", "tests/security"
# What every module takes.
TAKEN = f"{UNIT}/modules"
# Templates and scripts have tests. Most tasks run on hosts, where molecule tries them and nothing here does,
# so that they have a score apart.
ROLE_PARTS = ("templates/*", "files/*.sh", "files/*.py")
TASK_PARTS = ("tasks/*.yml", "handlers/*.yml", "vars/*.yml")
# Plugins that have no folder of a subject go by what they import from module_utils.
PLUGINS = ("modules/*.py", "modules/internal/*.py", "action/*.py", "action/internal/*.py", "filter/*.py")
IMPORTED = re.compile(r"module_utils\.(_[a-z0-9]+)")


# What roles refuse has its tests in one place.
REFUSALS = f"{CONTRACT}/validate"
NODES = (
    *("acceptance", "cluster_hosts", "efa", "monitoring", "neuron", "neuron_venv", "node_image", "shared_storage"),
)
PACKAGES = (
    *(
        "lock_files",
        "efa_version",
        "neuron_index",
        "index_passwords",
        "environments",
        "repository_keys",
        "host_entries",
    ),
)
JOBS = ("job_environment", "job_folders", "pod_security")
OF_ACTIONS = (
    *("docs/test_refusals", "ec2/inventory/test_what_is_read_of_an_answer", "node/test_module_text_files"),
    *("node/look/test_module_node_look", "node/software/test_role_neuron", "training/jobs/test_module_job_files"),
)
PLAYS = ("dataset/test_dataset_play", "ec2/test_inventory_nodes", "ec2/test_efa_instance_play", "network/test_lease")


@dataclass(frozen=True)
class Subject:
    """``tests`` run first, in seconds; what they let pass is tried by ``slow``, which run modules and plays."""

    name: str
    folders: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    parts: tuple[str, ...] = ROLE_PARTS


def _one(name: str, *roles: str, slow: tuple[str, ...] = (), tests: tuple[str, ...] = ()) -> Subject:
    more = (REFUSALS,) if roles else ()
    return Subject(name, (f"_{name}",), roles, tests=(f"{UNIT}/{name}", *tests), slow=(*slow, *more))


_EACH = (
    Subject(
        "common",
        ("_common",),
        tests=(
            *(f"{UNIT}/{name}" for name in ("common", "fsx", "efs", "node", "dataset", "lint")),
            *(f"{SECURITY}/test_{name}.py" for name in ("job_folders", "dataset_links")),
        ),
        slow=(f"{CONTRACT}/fsx", f"{CONTRACT}/efs", f"{CONTRACT}/dataset"),
    ),
    # The page of what is supported is made of its tables.
    _one("hardware", tests=(f"{UNIT}/docs/test_support.py",)),
    Subject(
        "ec2",
        ("_ec2", "_iam"),
        ("efa_nodes",),
        ("plugins/inventory/nodes.py",),
        (
            f"{UNIT}/ec2",
            *(
                f"{SECURITY}/test_{name}.py"
                for name in ("inventory_names", "inventory_values", "host_keys", "ssh_networks")
            ),
        ),
        (
            f"{CONTRACT}/ec2",
            *(f"{CONTRACT}/network/test_{name}.py" for name in ("replacing", "leaving", "session_manager")),
            REFUSALS,
        ),
    ),
    _one("capacity", slow=(f"{CONTRACT}/capacity",)),
    _one("fsx", slow=(f"{CONTRACT}/fsx", f"{CONTRACT}/network/test_shared_storage.py")),
    _one("efs", slow=(f"{CONTRACT}/efs", f"{CONTRACT}/network/test_shared_storage.py")),
    _one("ecr", "eks_image", slow=(f"{CONTRACT}/ecr",)),
    _one("eks", "eks_cluster", slow=(f"{CONTRACT}/eks",)),
    _one("slurm", "slurm", slow=(f"{CONTRACT}/slurm",), tests=(f"{UNIT}/controller/test_actions.py",)),
    Subject(
        "node",
        ("_node",),
        tests=(f"{UNIT}/node", f"{SECURITY}/test_host_entries.py", f"{SECURITY}/test_repository_keys.py"),
        slow=(f"{CONTRACT}/node",),
    ),
    Subject(
        "roles of nodes",
        roles=NODES,
        tests=(f"{UNIT}/node", f"{SECURITY}/test_templates.py", *(f"{SECURITY}/test_{name}.py" for name in PACKAGES)),
        slow=(f"{CONTRACT}/network/test_node_image.py", f"{CONTRACT}/network/test_shared_storage.py", REFUSALS),
    ),
    _one(
        *("pcluster", "parallelcluster"),
        tests=(
            *(f"{SECURITY}/test_{name}.py" for name in ("cluster_buckets", "templates")),
            f"{UNIT}/ec2/inventory/test_hosts_parallelcluster.py",
        ),
        slow=(f"{CONTRACT}/pcluster",),
    ),
    _one(
        "training",
        slow=(f"{CONTRACT}/training",),
        tests=(f"{SECURITY}/test_report_paths.py", f"{UNIT}/controller/test_asking_again.py"),
    ),
    Subject(
        "job scripts",
        roles=("training_job",),
        files=("roles/training_job/files/upstream/*.py",),
        tests=(f"{UNIT}/training", f"{SECURITY}/test_templates.py", *(f"{SECURITY}/test_{name}.py" for name in JOBS)),
        slow=(f"{CONTRACT}/training", f"{CONTRACT}/kubernetes/test_training_play.py", REFUSALS),
    ),
    Subject("training script", files=("roles/training_job/files/bert/*.py",), slow=("tests/training",)),
    _one(
        *("dataset", "dataset"),
        tests=(f"{SECURITY}/test_dataset_archives.py", f"{SECURITY}/test_dataset_links.py"),
        slow=(f"{CONTRACT}/dataset",),
    ),
    _one("diagnose", "diagnose"),
    _one(
        *("kubernetes", "eks_addons", "eks_storage"),
        tests=(f"{UNIT}/controller/test_actions.py",),
        slow=(f"{CONTRACT}/kubernetes",),
    ),
    Subject(
        "network",
        ("_network", "_teardown", "_lease"),
        ("network", "teardown", "trainium"),
        tests=(f"{UNIT}/network", f"{UNIT}/teardown", f"{SECURITY}/test_ssh_networks.py"),
        slow=(f"{CONTRACT}/network", REFUSALS),
    ),
    _one("prove", "prove", slow=(f"{CONTRACT}/network/test_prove.py",)),
    Subject(
        "controller",
        files=("plugins/plugin_utils/*.py", "plugins/callback/*.py"),
        tests=(
            *(f"{UNIT}/{folder}" for folder in ("callback", "controller", "diagnose")),
            *(f"{UNIT}/{name}.py" for name in OF_ACTIONS),
            *(f"{SECURITY}/test_{name}.py" for name in ("job_folders", "inventory_values", "node_answers")),
        ),
        slow=(f"{CONTRACT}/node", REFUSALS, f"{CONTRACT}/slurm", *(f"{CONTRACT}/{name}.py" for name in PLAYS)),
    ),
)

SUBJECTS = tuple(replace(subject, tests=(*subject.tests, TAKEN)) for subject in _EACH)

OF_TASKS = "tasks of "
TASKS = tuple(
    Subject(
        f"{OF_TASKS}{one.name.removeprefix('roles of ')}",
        roles=one.roles,
        tests=one.tests,
        slow=one.slow,
        parts=TASK_PARTS,
    )
    for one in SUBJECTS
    if one.roles
)


def subject_of(text: str) -> str:
    """The subject of a plugin: the one of which it imports most, the later of two; else the controller's."""
    found = IMPORTED.findall(text)
    count = {subject.name: sum(map(found.count, subject.folders)) for subject in SUBJECTS if subject.name != "common"}
    count.pop("hardware")
    most = max(count.values())
    return [name for name, number in count.items() if number == most][-1] if most else "controller"


def sources(root: Path, subject: Subject) -> list[str]:
    """The files of a subject, as paths from the root."""
    patterns = [f"plugins/module_utils/{folder}/**/*.py" for folder in subject.folders]
    patterns += [f"roles/{role}/{part}" for role in subject.roles for part in subject.parts]
    found = {path for pattern in (*patterns, *subject.files) for path in root.glob(pattern) if path.is_file()}
    for pattern in PLUGINS:
        for path in (root / "plugins").glob(pattern):
            if subject_of(path.read_text(encoding="utf-8")) == subject.name:
                found.add(path)
    return sorted(str(path.relative_to(root)) for path in found)
