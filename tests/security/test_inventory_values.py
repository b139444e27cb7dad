"""Whoever may tag an instance does not choose what the controller runs: no value or key of a tag is a template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.utils.unsafe_proxy import AnsibleUnsafe
from ansible_collections.trainium.cluster.plugins.plugin_utils._guarded import guarded, trust_as_template

HEADER = "#jinja2: variable_start_string:'[[',variable_end_string:']]'"


def rendered(expression: str, **variables: Any) -> Any:
    """What a play makes of it, twice, as `set_fact` on ansible-core 2.17 does."""
    templar = Templar(loader=DataLoader(), variables=variables)
    once = templar.template(trust_as_template(expression))
    return Templar(loader=DataLoader(), variables={"fact": once}).template(trust_as_template("{{ fact }}"))


@pytest.fixture(params=["{{ %s }}", "{%% if %s %%}{%% endif %%}", HEADER + ",x:[[ %s ]]", HEADER + "\n[[ %s ]]"])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param % f"lookup('pipe', 'touch {tmp_path}/canary')")


@pytest.mark.parametrize("key", [False, True], ids=["value", "key"])
@pytest.mark.parametrize(
    "expression", ["{{ tags }}", "{{ tags | to_json }}", "{{ tags.keys() | first }}", "{{ team }}"]
)
def test_nothing_of_a_tag_runs(hostile: str, key: bool, expression: str, tmp_path: Path) -> None:
    tags = guarded({hostile: "x"} if key else {"Team": hostile})
    rendered(expression, tags=tags, team=next(iter(tags.values())))
    assert not (tmp_path / "canary").exists()


def test_nor_do_two_together() -> None:
    parts = guarded({"a": "#jin", "b": "ja2: variable_start_string:'[['\n[[ 6 * 7 }}"})
    assert "42" not in rendered("{{ a ~ b }}", **parts)


def marked(value: Any) -> bool:
    """Whether Ansible takes it for text whatever is in it."""
    try:
        from ansible.template import is_trusted_as_template
    except ImportError:
        return isinstance(value, AnsibleUnsafe)
    return not is_trusted_as_template(value)


def test_a_key_marks_what_is_beside_it() -> None:
    """ansible-core 2.17 and 2.18 know no marks on keys, and look for them in the values."""
    assert [marked(value) for value in guarded({"{{ 1 }}": "x", "a": "y"}).values()] == [True, True]
    assert [marked(value) for value in guarded({"b": "x", "a": "y"}).values()] == [False, False]


def test_what_cannot_be_one_stays_plain() -> None:
    given = {"instance_type": "trn1.32xlarge", "instance_tags": {"Team": "nlp"}, "count": 2}
    assert guarded(given) == given
    assert rendered("{{ instance_tags.Team }}", **guarded(given)) == "nlp"
