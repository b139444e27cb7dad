from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from docs.tools.role_readmes import END_OF_NOTES, NOTES, example, markdown, stale, tags, usage, variables

SPECS = """\
argument_specs:
  main:
    short_description: Makes tea
    description: [Boils O(tea_water)., "See P(trainium.cluster.cups#role)."]
    options:
      tea_water: {type: str, required: true, description: The water.}
      tea_kinds: {type: list, elements: str, default: [black], description: "Kinds, a|b."}
"""
META = "galaxy_info:\n  platforms:\n    - {name: Debian, versions: [bookworm]}\n"
SCENARIO = "---\n# Two cups\n# are filled.\nplatforms: []\n"
PLAYS = "- hosts: head\n  become: true\n  roles:\n    - role: trainium.cluster.tea\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        "roles/tea/meta/argument_specs.yml": SPECS,
        "roles/tea/meta/main.yml": META,
        "roles/tea/tasks/main.yml": "- name: Boil\n  tags: [install]\n",
        "roles/tea/defaults/main.yml": "tea_kinds: [black]\n",
        "molecule/tea/molecule.yml": SCENARIO,
        "playbooks/nodes.yml": PLAYS,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def write(root: Path) -> str:
    for path, text in stale(root).items():
        path.write_text(text)
    return (root / "roles/tea/README.md").read_text()


def test_everything_that_is_known_of_a_role_is_in_its_readme(checkout: Path) -> None:
    text = write(checkout)
    for part in (
        "# tea\n\nMakes tea.\n\nBoils `tea_water`.\n\nSee [cups](https://github.com/trainium/cluster/blob/main/roles/cups/README.md).",
        "Supported systems: those of [docs/support.md](https://github.com/trainium/cluster/blob/main/docs/support.md).",
        "| `tea_water` | str | **required** | The water. |",
        r'| `tea_kinds` | list of str | `["black"]` | Kinds, a\|b. |',
        "`install`",
        "`molecule/tea`: Two cups are filled.",
    ):
        assert part in text


def test_a_second_time_there_is_nothing_to_write(checkout: Path) -> None:
    write(checkout)
    assert stale(checkout) == {}


def test_an_example_of_the_role_s_own_stands_in_place_of_the_play(checkout: Path) -> None:
    (checkout / "roles/tea/meta/example.md").write_text("```\nbrew tea\n```\n")
    text = write(checkout)
    assert "## Example\n\n```\nbrew tea\n```\n\n## Variables" in text
    assert "hosts:" not in text
    assert stale(checkout) == {}


def test_no_example_deletes_or_launches_what_nobody_named() -> None:
    roles = Path(__file__).resolve().parents[3] / "roles"
    teardown, image = (
        (roles / name / "README.md").read_text(encoding="utf-8").partition("## Example")[2].partition("\n## ")[0]
        for name in ("teardown", "node_image")
    )
    (play,) = yaml.safe_load(teardown.partition("```yaml\n")[2].partition("```")[0])
    (role,) = play["roles"]
    assert role["role"] == "trainium.cluster.teardown"
    assert sorted(role["vars"]) == ["teardown_cluster_name", "teardown_region"]
    assert "ansible-playbook playbooks/image.yml" in image
    assert "roles:" not in image


def test_notes_are_kept_when_the_specs_change(checkout: Path) -> None:
    text = write(checkout)
    path = checkout / "roles/tea/README.md"
    notes = f"{NOTES}\nBring *milk*.\n{END_OF_NOTES}\n\n"
    path.write_text(text.replace("Supported", f"{notes}Supported"))
    specs = checkout / "roles/tea/meta/argument_specs.yml"
    specs.write_text(SPECS.replace("The water.", "Cold water."))
    assert list(stale(checkout)) == [path]
    text = write(checkout)
    assert f"{NOTES}\n\nBring *milk*.\n\n{END_OF_NOTES}" in text
    assert "Cold water." in text
    assert stale(checkout) == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("C(a|b) and V(auto), E(HOME)", "`a|b` and `auto`, `HOME`"),
        ("by C(lookup('file', ...)).", "by `lookup('file', ...)`."),
        ("M(amazon.aws.ec2_key), P(a.b.c#filter)", "`amazon.aws.ec2_key`, `a.b.c`"),
        (
            "U(https://example.com/) L(this, https://example.com/a)",
            "<https://example.com/> [this](https://example.com/a)",
        ),
        ("B(so) I(it) is AWS (plain)", "**so** *it* is AWS (plain)"),
    ],
)
def test_markup(text: str, wanted: str) -> None:
    assert markdown(text) == wanted


def test_tags_of_blocks_are_found() -> None:
    tasks = yaml.safe_load("[{block: [{tags: a}], rescue: [{tags: [b]}], tags: [c]}, {name: none}]")
    assert list(tags(tasks)) == ["c", "a", "b"]
    assert list(tags(None)) == []


def test_the_example_is_a_play_that_names_what_is_required() -> None:
    options = yaml.safe_load(SPECS)["argument_specs"]["main"]["options"]
    play = yaml.safe_load("\n".join(example("tea", options, PLAY, True)))
    roles = [{"role": "trainium.cluster.trainium"}, {"role": "trainium.cluster.tea", "vars": {"tea_water": "..."}}]
    assert play == [{"hosts": "localhost", "connection": "local", "roles": roles}]


PLAY = usage("tea", [{"hosts": "localhost", "connection": "local", "roles": [{"role": "trainium.cluster.tea"}]}])


def test_a_role_that_a_task_includes_is_shown_where_the_play_runs() -> None:
    include = {"ansible.builtin.include_role": {"name": "trainium.cluster.demo"}}
    part = {"ansible.builtin.include_role": {"name": "trainium.cluster.demo", "tasks_from": "delete"}}
    plays = [{"hosts": "head", "tasks": [part]}, {"hosts": "localhost", "connection": "local", "tasks": [include]}]
    assert usage("demo", plays) == {"hosts": "localhost", "connection": "local"}


def test_a_role_that_no_playbook_uses_is_shown_on_all_nodes() -> None:
    assert usage("tea", []) == {"hosts": "compute:head", "become": True}
    assert usage("tea", [], controller=True) == {"hosts": "localhost", "connection": "local"}


def test_a_role_of_the_controller_is_shown_on_the_controller() -> None:
    for path in (Path(__file__).resolve().parents[3] / "roles").glob("*/README.md"):
        text = path.read_text(encoding="utf-8")
        if "\n- hosts: " in text:
            assert ("any Linux: it runs on the controller" in text) == ("\n- hosts: localhost\n" in text), path


def test_equal_keys_are_described_once() -> None:
    keys = {"name": {"description": "A name."}}
    lines = variables({"a": {"type": "dict", "options": keys}, "b": {"type": "dict", "options": keys}})
    assert [line for line in lines if line.startswith("###")] == ["### Keys of `a`"]
    assert sum("`a`, below" in line for line in lines) == 2
