"""Passwords in addresses of package indexes: in no command line, no output, and no object in S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).parents[2] / "roles"
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


def test_the_file_of_the_indexes_is_for_root_and_removed() -> None:
    (block,) = [
        task
        for task in yaml.safe_load((ROLES / "neuron_venv/tasks/install.yml").read_text(encoding="utf-8"))
        if "block" in task
    ]
    (written,) = [task for task in block["block"] if "__neuron_venv_index |" in str(task)]
    copy = written["ansible.builtin.copy"]
    assert (copy["dest"], copy["mode"], copy["owner"]) == ("{{ __neuron_venv_index_file }}", "0600", "root")
    assert (written["no_log"], written["diff"]) == (True, False)
    assert {"path": copy["dest"], "state": "absent"} in [task.get("ansible.builtin.file") for task in block["always"]]


@pytest.mark.parametrize("said", [f"ERROR: 401 for {URL}", f"ERROR: no {URL} and {URL}"])
def test_a_reason_holds_no_password(said: str) -> None:
    block = yaml.safe_load((ROLES / "neuron_venv/tasks/install.yml").read_text(encoding="utf-8"))[-1]
    texts = next(task["vars"] for task in block["rescue"] if "vars" in task)
    found = {"stderr": said, "stderr_lines": [said], "stdout_lines": [], "msg": said}
    variables = {**trusted(texts), "ansible_failed_result": found}
    reason = evaluated("neuron_venv", "{{ __neuron_venv_reason }}", **variables)
    assert SECRET not in reason
    assert "index.example.com" in reason


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("parallelcluster_node_index_url", URL, True),
        ("parallelcluster_node_index_url", "https://token@index.example.com/simple", True),
        ("parallelcluster_node_index_url", "https://index.example.com/@scope/simple", False),
        ("__parallelcluster_variables_text", '{"neuron_venv_index_url": "' + URL + '"}', True),
        ("__parallelcluster_variables_text", '{"a": "https://b", "mail": "c@d"}', False),
    ],
)
def test_no_password_goes_to_s3(name: str, value: str, refused: bool) -> None:
    variables = {"__parallelcluster_variables_text": "{}", "parallelcluster_node_index_url": "", name: value}
    assert evaluated("parallelcluster", "{{ __parallelcluster_holds_password | bool }}", **variables) is refused


@pytest.mark.parametrize("name", ["bucket.yml", "image.yml"])
def test_nothing_is_put_into_s3_before_that_is_checked(name: str) -> None:
    first = yaml.safe_load((ROLES / "parallelcluster/tasks" / name).read_text(encoding="utf-8"))[0]
    assert first["ansible.builtin.assert"]["that"] == "not __parallelcluster_holds_password | bool"
    assert SECRET not in str(first)
