"""Which mutants there are of a source, and that the same seed draws the same ones."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.mutants import draw
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[3]


def lines(path: str, text: str) -> set[tuple[str, str]]:
    """What is changed, and the line or lines that become of it."""
    text = textwrap.dedent(text)
    found = set()
    for mutant in draw.of_file(path, text):
        if draw.sound(mutant, text):
            before, after = text.splitlines(), mutant.apply(text).splitlines()
            found.add((mutant.what, "\n".join(line.strip() for line in after if line not in before)))
    return found


@pytest.mark.parametrize(
    ("source", "what", "became"),
    [
        ("if a:\n    b()\n", "condition negated", "if not (a):"),
        ("if a:\n    raise ValueError(b)\nc()\n", "guard dropped", "pass"),
        ("if a:\n    module.fail_json(msg=b)\n", "guard dropped", "pass"),
        ("if a:\n    return b\nc()\n", "guard dropped", "pass"),
        ("x = a < b\n", "< became <=", "x = a <= b"),
        ("x = a <= b\n", "<= became <", "x = a < b"),
        ("x = (a) == b\n", "== became !=", "x = (a) != b"),
        ("x = a not in b\n", "not in became in", "x = a in b"),
        ("x = a is not b\n", "is not became is", "x = a is b"),
        ("x = a and b and c\n", "and became or", "x = a or b and c"),
        ("x = a or b\n", "or became and", "x = a and b"),
        ("x = not a\n", "not dropped", "x = a"),
        ("x = 41\n", "41 became 42", "x = (41 + 1)"),
        ('x = "üb"; y = 7\n', "7 became 8", 'x = "üb"; y = (7 + 1)'),
        ('x = "running"\n', '"running" became empty', 'x = ""'),
        ("x = True\n", "True became False", "x = False"),
        ("f(a, name=b, c=d)\n", "argument name removed", "f(a, c=d)"),
        ("f(a, name=b)\n", "argument name removed", "f(a)"),
        ("try:\n    a()\nfinally:\n    b.close()\n", "clean-up dropped", "pass"),
        ("try:\n    a()\nexcept OSError:\n    b.unlink()\n    raise\n", "clean-up dropped", "pass"),
        ("def f():\n    return g(1)\n", "return value dropped", "return None"),
        ("x = [a for a in b if c]\n", "condition negated", "x = [a for a in b if not (c)]"),
        ("def f(a=True):\n    pass\n", "True became False", "def f(a=False):"),
    ],
)
def test_python(source: str, what: str, became: str) -> None:
    # `pass` is there already where a function has nothing else to do.
    assert (what, became) in lines("a.py", source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Not 1 and not 2."""\n',
        'def f():\n    """If a == b."""\n',
        'class A:\n    """True."""\n',
        'DOCUMENTATION = "x"\n',
        'RETURN = r"""x: 1"""\n',
        "# if a == 1\n",
        "def f(a: Literal[1, 2]) -> Literal[True]: ...\n",
        'raise ValueError("a is wrong", 1)\n',
        'module.warn("wait")\n',
        'module.fail_json(msg="bad")\n',
        'x = "this is a sentence to read"\n',
        "TIMEOUT = 30\n",
        "wait(seconds=5)\n",
        "from __future__ import annotations\nimport a\n",
        'open(a, encoding="utf-8")\n',
    ],
)
def test_what_people_read_and_limits_of_time_are_left_alone(source: str) -> None:
    assert lines("a.py", source) == set()


@pytest.mark.parametrize(
    ("path", "text", "what", "became"),
    [
        ("a.sh", "a\nexport B=c\n", "line dropped", ""),
        ("a.sh", 'if [ -n "$a" ]; then\n  b\nfi\n', "-n became -z", 'if [ -z "$a" ]; then'),
        ("a.sh", '[ "$a" -lt "$b" ] && c\n', "-lt became -le", '[ "$a" -le "$b" ] && c'),
        ("a.sh", '[ "$a" -lt "$b" ] && c\n', "&& became ||", '[ "$a" -lt "$b" ] || c'),
        ("a.sh", '[ "$a" = "$b" ]\n', "= became !=", '[ "$a" != "$b" ]'),
        ("a.sh", "rm --force a\n", "--force removed", "rm  a"),
        ("a.sh", 'a --b="c d" e\n', '--b="c d" removed', "a  e"),
        ("a.sh", "head -n 20 a\n", "20 became 21", "head -n 21 a"),
        ("a.sh.j2", "a={{ b | quote }}\n", "quote removed", "a={{ b }}"),
        ("a.sh.j2", "{% if a and b %}\nc\n{% endif %}\n", "condition negated", "{% if not (a and b) %}"),
        ("a.sh.j2", "{% if a and b %}\nc\n{% endif %}\n", "and became or", "{% if a or b %}"),
        ("a.service.j2", "[Service]\nEnvironment=A=b\n", "line dropped", ""),
        ("a/tasks/a.yml", "- name: A\n  b:\n    c: d\n  no_log: true\n", "line dropped", ""),
        ("a/tasks/a.yml", "- name: A\n  b:\n    c: d\n  no_log: true\n", "true became false", "no_log: false"),
        ("a/tasks/a.yml", "- name: A\n  b:\n  when: c\n", "condition negated", "when: not (c)"),
        ("a/tasks/a.yml", "- name: A\n  b:\n  when:\n    - c == d\n    - e\n", "== became !=", "- c != d"),
        ("a/tasks/a.yml", "- name: A\n  b:\n    mode: '0644'\n", "0644 became 0645", "mode: '0645'"),
    ],
)
def test_templates_scripts_and_tasks(path: str, text: str, what: str, became: str) -> None:
    assert (what, became) in lines(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", "# exit 1\n"),
        ("a.sh", 'echo "it has 3 nodes" >&2\n'),
        ("a.sh.j2", "{# 1 #}\n"),
        # An if without its end, which neither bash nor Jinja reads.
        ("a.sh", "if a; then\nfi\n"),
        ("a.j2", "{% for a in b %}\n{% endfor %}\n"),
        ("a/tasks/a.yml", "- name: A thing with 3 parts\n"),
        ("a/tasks/a.yml", "- fail:\n    fail_msg: >-\n      x == y and\n      z\n"),
        ("a/tasks/a.yml", "# a: 1\n"),
    ],
)
def test_comments_messages_and_what_could_not_be_read_are_no_mutants(path: str, text: str) -> None:
    assert lines(path, text) == set()


def some(seed: str, count: int = 40) -> list[Mutant]:
    paths = ["plugins/module_utils/_slurm/jobs.py", "roles/training_job/templates/job.sh.j2"]
    made = draw.drawn(ROOT, paths, seed)
    return [next(made) for _number in range(count)]


def test_the_same_seed_draws_the_same_and_another_others() -> None:
    assert some("1") == some("1")
    assert some("1") != some("2")
    assert len(set(some("1"))) == 40


def test_the_statement_of_a_mutant_is_known() -> None:
    """By which the tests are chosen that execute it."""
    text = "def f(a):\n    if (a\n            == 1):\n        return g(\n            2)\n    return 3\n"
    spans = {mutant.what: (mutant.line, mutant.first, mutant.last) for mutant in draw.of_file("a.py", text)}
    assert spans["== became !="] == (3, 2, 3)
    assert spans["2 became 3"] == (5, 4, 5)
