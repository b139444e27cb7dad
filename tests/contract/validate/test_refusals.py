"""Wrong values of every role are refused before anything is made, and the defaults are not.

The table is run in one process: a play includes the roles' tasks/validate.yml, as playbooks/validate.yml does. A few
cases go through playbooks/validate.yml itself, against the emulated API.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.action.internal.validate import ActionModule

from tests.contract.conftest import CREDENTIALS, REGION, REPOSITORY, Account
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python

Item = dict[str, Any]
CASES: list[Item] = yaml.safe_load(Path(__file__).with_name("refusals.yml").read_text(encoding="utf-8"))
ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())
PLAYBOOK = REPOSITORY / "playbooks/validate.yml"
DEFAULTS: dict[str, Item] = {"parallelcluster": {"trainium_backend": "pcluster"}}
DEFAULT_SYSTEM = {"distribution": "Ubuntu", "distribution_version": "24.04"}


LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": warm_python()}


def key_of(folder: Path) -> Item:
    return {"trainium_ssh_public_key_file": str(folder / "id.pub")}


def play(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ansible on a controller that knows no node, no key and no account but those that are given."""
    (folder / "id.pub").write_text("ssh-ed25519 AAAA test\n", encoding="utf-8")
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": {"localhost": {**LOCAL, **key_of(folder)}}}}))
    # The groups that the inventory plugin makes always.
    (folder / "groups.json").write_text(json.dumps({"all": {"children": {"compute": {}}}}))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_", "TRAINIUM_"))}
    command = [str(warm_ansible() / "ansible-playbook"), "--inventory", str(folder / "inventory.json")]
    command += [] if "--no-nodes" in arguments else ["--inventory", str(folder / "groups.json")]
    return subprocess.run(
        [*command, *(word for word in arguments if word != "--no-nodes")],
        cwd=folder,
        env={**clean, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "AWS_REGION": REGION, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def block(number: int, case: Item) -> Item:
    """One case as a block that keeps what the role says."""
    include = {"name": f"trainium.cluster.{case['role']}", "tasks_from": "validate"}
    refusal = "{{ ansible_failed_result.msg }}"
    return {
        "name": f"Case {number}",
        "vars": {"trainium_image_system": case.get("system", DEFAULT_SYSTEM), **case["set"]},
        "block": [{"name": "Role", "ansible.builtin.include_role": include}],
        "rescue": [{"name": "Keep", "ansible.builtin.set_fact": {f"case_{number}": refusal}}],
    }


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What was said to each case, and, last of all, to each role's defaults."""
    folder = tmp_path_factory.mktemp("validate")
    cases = [*CASES, *({"role": role, "set": DEFAULTS.get(role, {})} for role in ROLES)]
    names = ", ".join(f"case_{number} | default('')" for number in range(len(cases)))
    document = {
        "name": "Cases",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "roles": [{"role": "trainium.cluster.trainium"}],
        "tasks": [
            *(block(number, case) for number, case in enumerate(cases)),
            {
                "name": "Result",
                "ansible.builtin.copy": {"content": f"{{{{ [{names}] | to_json }}}}", "dest": str(folder / "result")},
            },
        ],
    }
    (folder / "play.yml").write_text(json.dumps([document]), encoding="utf-8")
    done = play(folder, str(folder / "play.yml"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    result: list[str] = json.loads((folder / "result").read_text(encoding="utf-8"))
    return result


def test_the_table_has_every_role() -> None:
    assert len(CASES) >= 60
    count = Counter(case["role"] for case in CASES)
    assert sorted(count) == ROLES
    assert min(count.values()) >= 2


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{CASES[number]['role']}-{number}")
def test_a_wrong_value_is_refused(said: list[str], number: int) -> None:
    sentence = said[number]
    if "sentence" not in CASES[number]:
        assert sentence == ""
        return
    assert CASES[number]["sentence"] in sentence
    # Ansible ends its own sentences otherwise.
    assert sentence.endswith(".") or sentence.startswith("Validation of arguments failed")
    assert "secret" not in sentence


@pytest.mark.parametrize("number", range(len(ROLES)), ids=lambda number: ROLES[number])
def test_the_defaults_are_not_refused(said: list[str], number: int) -> None:
    assert said[len(CASES) + number] == ""


@pytest.mark.parametrize("role", ROLES)
def test_no_name_that_the_collection_sets_itself_is_taken_for_a_misspelled_one(role: str) -> None:
    files = [path for part in ("roles/*/tasks", "playbooks") for path in REPOSITORY.glob(f"{part}/**/*.yml")]
    names = {one for path in files for one in re.findall(r"\b[a-z]+_\w+", path.read_text(encoding="utf-8"))}
    specs = yaml.safe_load((REPOSITORY / "roles" / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = {name for spec in specs["argument_specs"].values() for name in spec.get("options") or {}}
    assert ActionModule._unknown(REPOSITORY / "roles" / role, names, known, [], False) == []


def _roles(playbook: str) -> set[str]:
    plays = yaml.safe_load((REPOSITORY / "playbooks" / playbook).read_text(encoding="utf-8"))
    tasks = [task for one in plays for part in ("pre_tasks", "tasks") for task in one.get(part, [])]
    listed = [entry["role"] for one in plays for entry in one.get("roles", [])]
    for task in tasks:
        imported = task.get("ansible.builtin.import_role") or {}
        role = imported or task.get("ansible.builtin.include_role") or {}
        listed += [role["name"]] if role.get("tasks_from", "" if imported else "main") in ("", "work") else []
    return {role.rpartition(".")[2] for role in listed}


def test_the_playbook_checks_every_role_that_will_run() -> None:
    text = PLAYBOOK.read_text(encoding="utf-8")
    run = set().union(*(_roles(name) for name in ("network.yml", "compute.yml", "nodes.yml", "training.yml")))
    assert {"slurm", "efa_nodes", "parallelcluster", "dataset", "training_job"} <= run
    assert [role for role in sorted(run) if not re.search(rf"\b{role}\b", text)] == []


@pytest.mark.parametrize("role", ROLES)
def test_a_role_alone_checks_first(role: str) -> None:
    tasks = yaml.safe_load((REPOSITORY / "roles" / role / "tasks/main.yml").read_text(encoding="utf-8"))
    assert tasks[0]["ansible.builtin.import_tasks"] == "validate.yml"


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"shared_storage_mounts": [{"type": "nfs", "path": "/data"}]}, "The NFS mount at /data has no source"),
        (
            {"trainium_image_ssm_parameter": "/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id"},
            "The role slurm cannot install Slurm on Amazon 2023 (the image)",
        ),
        # The last of the roles that run on this backend.
        (
            {"trainium_backend": "pcluster", "trainium_training": {"preset": "llama3-8b-lora"}},
            "The preset llama3-8b-lora needs Neuron SDK 2.26.1 (not 2.28.1)",
        ),
        # Whose name only EC2 tells.
        (
            {"trainium_image_id": "ami-0b5e2023000000003"},
            "The role slurm cannot install Slurm on Amazon 2023 (the image)",
        ),
        (
            {"trainium_image_ssm_parameter": "/golden/image"},
            "The role slurm cannot install Slurm on Amazon 2023 (the image)",
        ),
    ],
)
def test_the_playbook_makes_no_call_that_writes(cloud: Account, tmp_path: Path, variables: Item, sentence: str) -> None:
    cloud.client("ssm").put_parameter(Name="/golden/image", Value="ami-0b5e2023000000003", Type="String")
    cloud.api.clear_calls()
    # Whoever must not ask for prices is told so, and goes on.
    denied = variables.get("trainium_image_ssm_parameter") == "/golden/image"
    cloud.api.fault("GetProducts", "AccessDeniedException", times=int(denied))
    environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": cloud.api.url, "AWS_EC2_METADATA_DISABLED": "true"}
    # Slurm alone keeps the other roles from an image that they take.
    others: Item = {"neuron_torch": "2.8", "neuron_sdk_version": "2.28.1", "trainium_training": {"packages": []}}
    others["trainium_private_access"] = True
    more = json.dumps({**others, **variables})
    done = play(tmp_path, "--extra-vars", more, str(PLAYBOOK), **environment)
    assert done.returncode == 2, done.stdout
    text = " ".join((done.stdout + done.stderr).split())
    assert sentence in text, text[-3000:]
    assert cloud.api.writes() == []
    if denied:
        assert "What the cluster costs an hour is not known: AWS would not list the prices: for the test" in text
    elif "trainium_image_id" in variables:
        assert text.count("2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand; a NAT gateway 0.045 USD") == 1


def test_a_cluster_of_gpus_is_taken_and_trains_nothing(cloud: Account, tmp_path: Path) -> None:
    cloud.api.clear_calls()
    environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": cloud.api.url, "AWS_EC2_METADATA_DISABLED": "true"}
    variables = {
        "trainium_backend": "pcluster",
        "parallelcluster_preset": "gpu",
        "parallelcluster_python": warm_python(*PCLUSTER),
        "trainium_private_access": True,
    }
    ours = {"head": {"hosts": {"node-1": LOCAL}}, "cluster_trainium": {"hosts": {"node-1": {}}}}
    (tmp_path / "node.json").write_text(json.dumps({"all": {"children": ours}}), encoding="utf-8")
    training = PLAYBOOK.with_name("training.yml")
    node = ("--inventory", str(tmp_path / "node.json"))
    done = play(tmp_path, *node, "--extra-vars", json.dumps(variables), str(PLAYBOOK), str(training), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are p4d.24xlarge without Neuron devices, and trainium_training names nothing" in done.stdout
    assert "training_job" not in done.stdout
    assert "AWS's price list does not say what 4 p4d.24xlarge in us-west-2 cost an hour" in done.stdout
    assert cloud.api.writes() == []


def test_an_inventory_without_a_source_of_ours_is_refused(tmp_path: Path) -> None:
    """As that of somebody who has the collection from Galaxy and no configuration."""
    done = play(tmp_path, "--no-nodes", str(PLAYBOOK))
    assert done.returncode == 2
    assert f"export ANSIBLE_CONFIG={REPOSITORY}/ansible.cfg" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("name", ["compute", "nodes", "replace", "training", "update_nodes", "validate"])
def test_what_works_on_nodes_looks_first_whose_they_are(name: str) -> None:
    first = yaml.safe_load((REPOSITORY / f"playbooks/{name}.yml").read_text(encoding="utf-8"))[0]
    assert first["hosts"] == "localhost"
    tasks = [*first.get("tasks", []), *first.get("post_tasks", [])]
    # The role as a whole is its variables and their check.
    looks = [task["ansible.builtin.include_role"] for task in tasks if "ansible.builtin.import_role" not in task]
    assert (looks[0]["name"], looks[0]["tasks_from"]) == ("trainium.cluster.trainium", "inventory")


def test_hosts_of_somebody_else_are_refused_before_they_are_worked_on(tmp_path: Path) -> None:
    """Other sources may have groups of these names as well."""
    web = {f"web{number}": {"ansible_connection": "local"} for number in range(1, 7)}
    ours = {"compute": {"hosts": {**web, "ip-10-0-0-4": LOCAL}}, "cluster_b_c": {"hosts": {"ip-10-0-0-4": {}}}}
    (tmp_path / "theirs.json").write_text(json.dumps({"all": {"children": ours}}), encoding="utf-8")
    source = ["--inventory", str(tmp_path / "theirs.json")]
    done = play(tmp_path, *source, "-e", "trainium_cluster_name=b-c", str(PLAYBOOK.with_name("training.yml")))
    assert done.returncode == 2
    text = " ".join((done.stdout + done.stderr).split())
    assert (
        "have web1, web2, web3, web4 and 2 more, not of the cluster b-c; take that source out of the inventory" in text
    )
    assert "into the group cluster_b_c." in text


@pytest.mark.parametrize("name", ["training", "report"])
def test_a_cluster_without_nodes_is_no_success(tmp_path: Path, name: str) -> None:
    done = play(tmp_path, "-e", "trainium_region=us-east-1", str(PLAYBOOK.with_name(f"{name}.yml")))
    assert done.returncode == 2
    text = " ".join((done.stdout + done.stderr).split())
    assert "The inventory shows no node of the cluster trainium in us-east-1; run site.yml" in text


def test_while_the_head_is_stopped_nothing_is_made_on_another_node(tmp_path: Path) -> None:
    """As the inventory shows it: Slurm's controller would be made anew there."""
    node = {"ansible_connection": "local", "head_state": "stopped"}
    group = {"hosts": {"ip-192-0-2-6": node}}
    groups = {"compute": group, "cluster_trainium": group, "head": {}}
    (tmp_path / "stopped.json").write_text(json.dumps({"all": {"children": groups}}), encoding="utf-8")
    options = ("-i", "stopped.json", "-e", "trainium_region=us-east-1", "-e", "trainium_lease=false")
    done = play(tmp_path, *options, str(PLAYBOOK.with_name("nodes.yml")))
    assert done.returncode == 2
    text = " ".join((done.stdout + done.stderr).split())
    assert "has Slurm's controller is stopped, and its queue is on it; run compute.yml or site.yml, which st" in text


def test_a_source_of_one_line_serves_in_an_empty_folder(cloud: Account, tmp_path: Path) -> None:
    """As README says it for whoever has the collection from Galaxy."""
    (tmp_path / "nodes.yml").write_text("plugin: trainium.cluster.nodes\n", encoding="utf-8")
    (tmp_path / "cluster.yml").write_text("trainium_cluster_name: bert\ntrainium_region: us-west-2\n", encoding="utf-8")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_", "TRAINIUM_"))}
    ansible = str(warm_ansible() / "ansible-playbook")
    said = {}
    for options in (["-i", "nodes.yml"], []):
        done = subprocess.run(
            [ansible, *options, "-e", "@cluster.yml", "trainium.cluster.status"],
            cwd=tmp_path,
            env={
                **clean,
                **CREDENTIALS,
                "ANSIBLE_INJECT_FACT_VARS": "false",
                "AWS_ENDPOINT_URL": cloud.api.url,
                "AWS_EC2_METADATA_DISABLED": "true",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said[bool(options)] = " ".join(done.stdout.split())
    assert "No head node runs that could be asked for its queue" in said[True]
    assert "no source of the inventory is of the plugin trainium.cluster.nodes; name one with -i" in said[False]


def test_scripts_and_reports_go_by_the_working_directory(tmp_path: Path) -> None:
    """Beside the playbook and the inventory is in the collection, for whoever calls trainium.cluster.site."""
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    role = {"name": "trainium.cluster.training_job", "tasks_from": "validate"}
    tell = {"content": "{{ trainium_report_dir }}", "dest": str(tmp_path / "result")}
    document = {
        "name": "Paths",
        "hosts": "localhost",
        "gather_facts": False,
        "roles": [{"role": "trainium.cluster.trainium"}],
        "tasks": [
            # It refuses a file that is in no folder.
            {"name": "Role", "ansible.builtin.include_role": role},
            {"name": "Tell", "ansible.builtin.copy": tell},
        ],
    }
    elsewhere = tmp_path / "collection/playbooks"
    elsewhere.mkdir(parents=True)
    (elsewhere / "play.yml").write_text(json.dumps([document]), encoding="utf-8")
    job = {
        "trainium_training": {"preset": "none", "script": "train.py", "files": ["train.py"]},
        "trainium_image_system": DEFAULT_SYSTEM,
    }
    done = play(tmp_path, "--extra-vars", json.dumps(job), str(elsewhere / "play.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "result").read_text() == str(tmp_path / "reports")
