"""Passwords in addresses of package indexes: in no command line, no output, and no object in S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).parents[2] / "roles"
LONG_COMMAND = "trainium.cluster.internal.long_command"
SECRET = "planted-secret-4711"
URL = f"https://user:{SECRET}@index.example.com/simple"


def trusted(value: Any) -> Any:
    """Variables as Ansible reads them from a file: their templates are evaluated."""
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [trusted(one) for one in value]
    return trust_as_template(value) if isinstance(value, str) else value


def evaluated(role: str, text: str, **variables: Any) -> Any:
    known = {}
    for folder in ("defaults", "vars"):
        known.update(yaml.safe_load((ROLES / role / folder / "main.yml").read_text(encoding="utf-8")))
    return Templar(loader=DataLoader(), variables={**trusted(known), **variables}).template(trust_as_template(text))


@pytest.mark.parametrize(
    "variables", [{"neuron_venv_index_url": URL}, {"neuron_venv_extra_index_urls": ["https://a.example.com", URL]}]
)
def test_indexes_reach_pip_and_uv_by_a_file(variables: dict[str, Any]) -> None:
    for command in ("__neuron_venv_pip", "__neuron_venv_uv"):
        argv = evaluated("neuron_venv", "{{ " + command + " }}", **variables)
        assert SECRET not in str(argv)
        assert [word for word in argv if word.startswith("--requirement=/run/trainium-neuron-venv-")]
    lines = evaluated("neuron_venv", "{{ __neuron_venv_index }}", **variables)
    assert lines[-1].endswith(f"index-url {URL}")
    assert not evaluated("neuron_venv", "{{ __neuron_venv_index_odd | bool }}", **variables)


@pytest.mark.parametrize("sign", ["\n", " ", "'", '"', "\\", "#", "$"])
def test_an_index_that_would_be_more_than_one_line_is_refused(sign: str) -> None:
    url = f"https://example.com/{sign}--find-links=/x"
    assert evaluated("neuron_venv", "{{ __neuron_venv_index_odd | bool }}", neuron_venv_index_url=url)


INSTALLS = {
    "neuron_venv/tasks/install.yml": ("{{ __neuron_venv_index_file }}", "{{ neuron_venv_owner }}"),
    "monitoring/tasks/environment.yml": ("{{ __monitoring_requirements }}", "root"),
    "parallelcluster/tasks/environment.yml": ("{{ __parallelcluster_requirements }}", None),
}


@pytest.mark.parametrize("name", INSTALLS)
def test_the_file_of_the_indexes_is_for_one_user_and_removed(name: str) -> None:
    path, owner = INSTALLS[name]
    tasks = yaml.safe_load((ROLES / name).read_text(encoding="utf-8"))
    (block,) = [task for task in tasks if path in str(task)]
    (written,) = [task for task in block["block"] if task.get("ansible.builtin.copy", {}).get("dest") == path]
    copy = written["ansible.builtin.copy"]
    assert (copy["mode"], copy.get("owner")) == ("0600", owner)
    assert (written["no_log"], written["diff"]) == (True, False)
    (removed,) = block["always"]
    assert removed["ansible.builtin.file"]["state"] == "absent"
    assert path in (removed["ansible.builtin.file"]["path"], *removed.get("loop", []))


TOKENS = [URL, f"https://index.example.com/{SECRET}/simple/", f"https://index.example.com/simple?token={SECRET}"]


@pytest.mark.parametrize("url", TOKENS)
@pytest.mark.parametrize(
    ("name", "task", "variable"),
    [
        ("neuron_venv/tasks/install.yml", "Install the packages", "neuron_venv_index_url"),
        ("monitoring/tasks/environment.yml", "Run pip", "monitoring_pip_index_url"),
        ("parallelcluster/tasks/environment.yml", "Install ParallelCluster and Node.js", "parallelcluster_index_url"),
    ],
)
def test_a_token_in_an_address_is_in_no_command_line_and_no_output(
    name: str, task: str, variable: str, url: str
) -> None:
    tasks = yaml.safe_load((ROLES / name).read_text(encoding="utf-8"))
    (run,) = [one for block in tasks for one in block.get("block", []) if one["name"] == task]
    module = next(value for key, value in run.items() if key in ("ansible.builtin.command", LONG_COMMAND))
    known = {
        variable: url,
        "__neuron_venv_node": {"python": "3.11", "environment": {"owner": ""}},
        "__neuron_venv_requirements": ["a"],
        "__parallelcluster_lock": "",
        "__monitoring_lock": "",
        "__parallelcluster_interpreter": "python3",
        "parallelcluster_venv": "/v",
        "__monitoring_environment": "/v",
    }
    role = name.partition("/")[0]
    assert SECRET not in str(evaluated(role, module["argv"], **known))
    assert str(evaluated(role, str(run["no_log"]), **known)) == "True"
    known[variable] = "https://pypi.example.com/simple/"
    assert str(evaluated(role, str(run["no_log"]), **known)) == "False"


@pytest.mark.parametrize("url", TOKENS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("monitoring/tasks/environment.yml", "__monitoring_pip_reason"),
        ("parallelcluster/tasks/environment.yml", "__parallelcluster_pip_reason"),
        ("neuron_venv/tasks/install.yml", "__neuron_venv_reason"),
    ],
)
def test_the_reason_of_a_failure_has_no_token(name: str, reason: str, url: str) -> None:
    tasks = yaml.safe_load((ROLES / name).read_text(encoding="utf-8"))
    texts = next(task["vars"] for block in tasks for task in block.get("rescue", []) if "vars" in task)
    said = f"ERROR: HTTPSConnectionPool: Max retries exceeded with url: /{SECRET}/simple/a (of {url})"
    found = {"stderr": said, "stderr_lines": [said], "stdout_lines": [], "msg": "failed"}
    text = evaluated(name.partition("/")[0], "{{ " + reason + " }}", **trusted(texts), ansible_failed_result=found)
    assert "Max retries exceeded" in text
    assert SECRET not in text


def test_an_environment_is_run_as_its_owner() -> None:
    """Root would run what the owner put in the place of the interpreter."""
    tasks = yaml.safe_load((ROLES / "neuron_venv/tasks/install.yml").read_text(encoding="utf-8"))
    (block,) = [task["block"] for task in tasks if "block" in task]
    known = {
        "neuron_venv_owner": "ubuntu",
        "__neuron_venv_node": {"python": "3.11", "environment": {"owner": "ubuntu", "digest": "d"}},
        "__neuron_venv_requirements": ["a"],
    }
    commands = [
        evaluated("neuron_venv", module["argv"], **known)
        for task in block
        for key, module in task.items()
        if key in ("ansible.builtin.command", LONG_COMMAND)
    ]
    assert len(commands) == 4
    for argv in commands:
        assert argv[:4] == ["runuser", "-u", "ubuntu", "--"]
    # Root writes nothing into it, and does not follow its links when it gives it away.
    for task in block:
        for key, module in task.items():
            if isinstance(module, dict) and "neuron_venv_path" in str(module) and key not in commands:
                assert key in ("ansible.builtin.command", LONG_COMMAND, "ansible.builtin.file"), task["name"]
                assert key != "ansible.builtin.file" or module["follow"] is False


@pytest.mark.parametrize(
    ("owner", "found", "refused"),
    [
        *(("root", "root", False), ("root", "", False), ("root", "ubuntu", True)),
        *(("ubuntu", "root", False), ("ubuntu", "ubuntu", False), ("ubuntu", "games", True)),
    ],
)
def test_an_environment_of_somebody_else_is_refused(owner: str, found: str, refused: bool) -> None:
    node = {"python": "3.11", "environment": {"owner": found}}
    said = evaluated(
        "neuron_venv",
        "{{ __neuron_venv_refused }}",
        neuron_venv_owner=owner,
        neuron_venv_torch="",
        inventory_hostname="n1",
        __neuron_venv_node=node,
    )
    assert ("belongs to" in said) is refused


@pytest.mark.parametrize("said", [f"ERROR: 401 for {URL}", f"ERROR: no {URL} and {URL}"])
def test_a_reason_holds_no_password(said: str) -> None:
    block = yaml.safe_load((ROLES / "neuron_venv/tasks/install.yml").read_text(encoding="utf-8"))[-1]
    texts = next(task["vars"] for task in block["rescue"] if "vars" in task)
    found = {"stderr": said, "stderr_lines": [said], "stdout_lines": [], "msg": said}
    variables = {**trusted(texts), "ansible_failed_result": found}
    reason = evaluated("neuron_venv", "{{ __neuron_venv_reason }}", **variables)
    assert SECRET not in reason
    assert "index.example.com" in reason


# Of a token nothing is known but that nobody would name a folder so.
TOKEN_PATHS = [
    "aB3dE5gH7jK9mN1p/owner/python/simple",
    "Zx4kP0aQ8vT2nR6wY1cL",
    "simple/0b9f3c1e-5d2a-4b7e-8f60-1a2b3c4d5e6f/",
    "simple?x-token=a",
    "simple?a=b&api_key=c",
]
PLAIN_PATHS = [
    "",
    "simple",
    "repository/pypi-remote-virtual-2024/simple/",
    "artifactory/api/pypi/python3_12/simple",
    f"packages/3a/6b/{30 * '0a'}/a-1.0-py3-none-any.whl",
    f"own/{20 * 'a1'}/get_dataset.py",
    "a.tar.gz?versionId=3",
]


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("parallelcluster_node_index_url", URL, True),
        ("parallelcluster_node_index_url", "https://token@index.example.com/simple", True),
        ("parallelcluster_node_index_url", "https://index.example.com/@scope/simple", False),
        *[("parallelcluster_node_index_url", f"https://index.example.com/{path}", True) for path in TOKEN_PATHS],
        *[("parallelcluster_node_index_url", f"https://index.example.com/{path}", False) for path in PLAIN_PATHS],
        *[
            ("__parallelcluster_variables_text", '{"a": ["https://index.example.com/' + path + '"], "b": 1}', True)
            for path in TOKEN_PATHS
        ],
        *[
            ("__parallelcluster_variables_text", '{"a": "https://index.example.com/' + path + '", "b": "x1"}', False)
            for path in PLAIN_PATHS
        ],
        ("__parallelcluster_variables_text", '{"neuron_venv_index_url": "' + URL + '"}', True),
        ("__parallelcluster_variables_text", '{"a": "https://b", "mail": "c@d"}', False),
    ],
)
def test_no_password_goes_to_s3(name: str, value: str, refused: bool) -> None:
    variables = {"__parallelcluster_variables_text": "{}", "parallelcluster_node_index_url": "", name: value}
    assert evaluated("parallelcluster", "{{ __parallelcluster_holds_password | bool }}", **variables) is refused


@pytest.mark.parametrize("name", ["bucket.yml", "image.yml"])
def test_nothing_is_put_into_s3_before_that_is_checked(name: str) -> None:
    tasks = ROLES / "parallelcluster/tasks"
    imported = [task.get("ansible.builtin.import_tasks") for task in yaml.safe_load((tasks / name).read_text())]
    # Before it are the other checks at most.
    assert imported[: imported.index("pack.yml")] in ([], ["validate.yml"])
    first = yaml.safe_load((tasks / "pack.yml").read_text(encoding="utf-8"))[0]
    assert first["ansible.builtin.assert"]["that"] == "not __parallelcluster_holds_password | bool"
    assert SECRET not in str(first)
