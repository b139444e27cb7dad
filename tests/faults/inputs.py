"""Wrong values of roles' variables, drawn from their argument specs, and what is said to each.

A value is *wrong* where the spec itself says so: another type, none of the choices, a key that is not known, a required
one that is missing. It is *hostile* where the type is right and the value is what a shell, a path, a file or a number
range could fall over; such a one may be taken.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._common import rules
from hypothesis import strategies as st

from tests.contract.conftest import REGION, REPOSITORY, controller_environment
from tests.contract.warm_python import warm_ansible, warm_python
from tests.faults.judge import CODE

Item = dict[str, Any]
# With these a role's own checks come into play that say nothing with the defaults.
BESIDE: dict[str, Item] = {
    "parallelcluster": {"trainium_backend": "pcluster"},
    **{name: {"trainium_backend": "eks"} for name in ("eks_addons", "eks_cluster", "eks_image", "eks_storage")},
}
SYSTEM = {"distribution": "Ubuntu", "distribution_version": "24.04"}
# In how many tasks of one play; Ansible keeps each task of it.
AT_ONCE = 100
HOSTILE_TEXTS = (
    *(
        "",
        " ",
        "a b",
        "x\ny",
        "-rf",
        "..",
        "../../etc",
        "/",
        "//",
        "/etc",
        "~",
        "$(id)",
        "`id`",
        "'; id #",
        '"',
        "\\",
        "%s",
    ),
    *(
        "é",
        "\u202eb",
        "a" * 300,
        "0",
        "-1",
        "1e9",
        "no",
        "null",
        "[]",
        "{}",
        "a\tb",
        "*",
        "#",
        "a:b",
        "a=b",
        "a,b",
        "\x7f",
    ),
)
WHOLE = (-1, 0, 1, 65536, 2**31, 10**15)


class Case(NamedTuple):
    """One variable of a role with one value."""

    role: str
    name: str
    value: Any
    wrong: bool


@functools.cache
def specs(role: str) -> Item:
    """The variables of a role's main entry point."""
    text = (REPOSITORY / "roles" / role / "meta/argument_specs.yml").read_text(encoding="utf-8")
    found: Item = yaml.safe_load(text)["argument_specs"]["main"].get("options") or {}
    return found


@functools.cache
def names() -> tuple[str, ...]:
    """The variables of all roles."""
    return tuple({name for path in (REPOSITORY / "roles").iterdir() for name in specs(path.name)})


def wrong(option: Item) -> st.SearchStrategy[Any]:
    """Values that the option's own spec refuses; none where it takes everything, as text does."""
    kind, choices = option.get("type", "str"), option.get("choices")
    others: list[st.SearchStrategy[Any]] = []
    if kind == "int":
        others = [st.sampled_from(["soon", "1.5", [], {}, [1], 2.5, "0x10", "1 2"])]
    elif kind == "float":
        others = [st.sampled_from(["soon", [], {}, [1.0], "1,5"])]
    elif kind == "bool":
        others = [st.sampled_from(["perhaps", [], {}, 2, "ja", [True]])]
    elif kind == "dict":
        others = [st.sampled_from(["text", 5, ["a"], True, [{}]])]
    elif kind == "list":
        others = [st.sampled_from([{"a": 1}, {}])]
        inner = {**option, "type": option.get("elements", "str")}
        inner.pop("elements", None)
        # What is wrong for one of its elements.
        if inner["type"] != "str" or choices or option.get("options"):
            others.append(wrong(inner).map(lambda value: [value]))
    if choices and kind != "list":
        others.append(st.sampled_from(["none-of-these", "", str(choices[0]).upper() + "x"]))
    if kind in ("dict", "list") and option.get("options") and (kind == "dict" or option.get("elements") == "dict"):
        whole = _suboptions(option["options"])
        others.append(whole if kind == "dict" else whole.map(lambda value: [value]))
    return st.one_of(others) if others else st.nothing()


def _suboptions(options: Item) -> st.SearchStrategy[Any]:
    """A dictionary with one key that is wrong."""
    unknown = st.just({"no_such_key": 1})
    inside = {name: wrong(option) for name, option in options.items()}
    each = [st.fixed_dictionaries({name: one}) for name, one in inside.items() if not one.is_empty]
    return st.one_of(unknown, *each)


def hostile(option: Item) -> st.SearchStrategy[Any]:
    """Values of the right type that something behind the check could fall over."""
    kind = option.get("type", "str")
    texts = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
    # A text with these would be the user's own template.
    plain = texts.filter(lambda text: not re.search(r"\{[{%#]", text))
    if kind in ("str", "path"):
        return st.one_of(plain, st.sampled_from([5, True, [], ["a"], {"a": 1}, 1.5]))
    if kind == "int":
        return st.sampled_from(WHOLE)
    if kind == "float":
        return st.sampled_from([-1.0, 0.0, 1e300, 0.1, float("inf"), float("nan")])
    if kind == "bool":
        return st.sampled_from(["yes", "no", 1, 0, "on"])
    if kind == "dict":
        return st.dictionaries(plain, st.one_of(plain, st.sampled_from([None, [], {}, 1])), max_size=3)
    elements = option.get("elements", "str")
    if elements == "dict":
        return st.lists(st.dictionaries(plain, plain, max_size=2), max_size=2)
    return st.lists(st.one_of(plain, st.sampled_from([None, 5, [], {}, True])), max_size=3)


def drawn(seed: int, count: int) -> list[Case]:
    """That many cases, each other than all before; the roles in turn, so that each has its share."""
    roles = sorted(path.name for path in (REPOSITORY / "roles").iterdir() if specs(path.name))
    share = -(-count // len(roles))
    return [case for role in roles for case in _of_role(role, seed, share)][:count]


def _of_role(role: str, seed: int, share: int) -> list[Case]:
    each: list[st.SearchStrategy[Case]] = []
    for name, option in specs(role).items():
        bad = wrong(option)
        if not bad.is_empty:
            each.append(st.builds(Case, st.just(role), st.just(name), bad, st.just(True)))
        each.append(st.builds(Case, st.just(role), st.just(name), hostile(option), st.just(False)))
    found: dict[str, Case] = {}

    @hypothesis.seed(f"{seed} {role}")
    # Of what is drawn some is drawn twice.
    @hypothesis.settings(
        max_examples=4 * share,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.one_of(each))
    def collect(case: Case) -> None:
        found.setdefault(repr(case), case)

    collect()
    return list(found.values())[:share]


def said(cases: Sequence[Case], folder: Path, url: str) -> list[str]:
    """What each role's check says; '' where it takes the value."""
    answers: list[str] = []
    for first in range(0, len(cases), AT_ONCE):
        answers += _said(cases[first : first + AT_ONCE], folder, url)
    return answers


def _said(cases: Sequence[Case], folder: Path, url: str) -> list[str]:
    tasks = []
    for number, case in enumerate(cases):
        include = {"name": f"trainium.cluster.{case.role}", "tasks_from": "validate"}
        variables: Item = {"trainium_image_system": SYSTEM, **BESIDE.get(case.role, {}), case.name: case.value}
        tasks.append(
            {
                "name": f"Case {number}",
                "vars": variables,
                "block": [{"name": "Role", "ansible.builtin.include_role": include}],
                "rescue": [
                    {"name": "Keep", "ansible.builtin.set_fact": {f"case_{number}": "{{ ansible_failed_result.msg }}"}}
                ],
            }
        )
    names = ", ".join(f"case_{number} | default('')" for number in range(len(cases)))
    answer = folder / "said.json"
    answer.unlink(missing_ok=True)
    write = {"content": f"{{{{ [{names}] | to_json }}}}", "dest": str(answer), "mode": "0600"}
    play = {
        "name": "Cases",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "roles": [{"role": "trainium.cluster.trainium"}],
        "tasks": [*tasks, {"name": "Tell", "ansible.builtin.copy": write}],
    }
    # Numbers that are none, and more, are YAML and no JSON.
    (folder / "cases.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    done = ansible(folder, url, str(folder / "cases.yml"))
    if not answer.exists():
        raise AssertionError(f"the play with the cases did not end: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    found: list[str] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def ansible(folder: Path, url: str, playbook: str, *options: str) -> subprocess.CompletedProcess[str]:
    """ansible-playbook on a controller that knows no node."""
    (folder / "id.pub").write_text("ssh-ed25519 AAAA test\n", encoding="utf-8")
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": warm_python(),
        "trainium_ssh_public_key_file": str(folder / "id.pub"),
    }
    inventory = {"all": {"hosts": {"localhost": host}, "children": {"compute": {}}}}
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    return subprocess.run(
        [str(warm_ansible() / "ansible-playbook"), "--inventory", str(folder / "inventory.yml"), *options, playbook],
        cwd=folder,
        env=controller_environment(url, AWS_REGION=REGION),
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )


def fault_of(case: Case, sentence: str) -> str:
    """What is wrong with an answer; '' where nothing is."""
    if not sentence:
        return "a value that its argument spec refuses was taken" if case.wrong else ""
    # Ansible's own, before a role begins.
    if sentence.startswith("Validation of arguments failed"):
        return ""
    quoted = str(case.value)
    if CODE.search(sentence.replace(quoted, "") if len(quoted) > 3 else sentence):
        return "the sentence speaks of the code"
    if "\n" in sentence:
        return "the sentence has several lines"
    if not sentence.endswith("."):
        return "the sentence has no end"
    if len(sentence) > 1000:
        return "the sentence has more than 1,000 characters"
    # Or another, by which it is meant to be set, or the value.
    values = [value for value in (rules.shown(case.value), str(case.value), repr(case.value)) if value]
    named = any(re.search(rf"\b{name}\b", sentence) for name in names())
    if not named and not any(value in sentence for value in values):
        return "the sentence does not name the variable"
    return ""
