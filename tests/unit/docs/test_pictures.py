"""The pictures of the README are drawn from what a run left, and told from older ones."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from docs.tools import pictures

RED = "\x1b[0;31m"
PLAIN = "\x1b[0m"


def test_a_wait_of_many_lines_is_shown_by_its_ends() -> None:
    waits = [f"slurm_job_info: step {number} of 100" for number in range(1, 31)]
    lines = ["5/5 training", *waits, "efa_instance: 1 of 2 running", "    20 s: 1 host, 1 changed"]
    assert pictures.shortened(lines) == [
        "5/5 training",
        *waits[:3],
        "    ...",
        *waits[-3:],
        "efa_instance: 1 of 2 running",
        "    20 s: 1 host, 1 changed",
    ]
    assert pictures.shortened(waits[:6]) == waits[:6]
    table = ["    request:", *(f"      - number: {number}" for number in range(9))]
    assert pictures.shortened(table) == [*table[:4], "    ...", *table[-3:]]


def test_a_terminal_is_an_image_with_its_colours_and_nothing_of_what_is_said_is_markup() -> None:
    drawn = ElementTree.fromstring(pictures.terminal(f"$ make demo\n{RED}<fatal>{PLAIN} & more\n\n{'x' * 200}\n"))  # noqa: S314
    rows = [row for row in drawn.iter() if row.tag.endswith("text")]
    assert ["".join(row.itertext()) for row in rows][:2] == ["$ make demo", "<fatal> & more"]
    assert [part.get("fill") for part in rows[1]] == [pictures.COLOURS["0;31"], None]
    long = "".join(rows[2].itertext())
    assert (len(long), long[-1]) == (pictures.COLUMNS, "…")


def test_comments_and_documentation_make_no_picture_older(tmp_path: Path) -> None:
    file = tmp_path / "callback.py"
    texts = (
        "DOCUMENTATION = 'a'\ndef say():\n    '''One.'''\n    return 'done'\n",
        "DOCUMENTATION = 'b'\ndef say():\n    '''Two.'''\n    # Why.\n    return 'done'\n",
        "DOCUMENTATION = 'b'\ndef say():\n    return 'ended'\n",
    )
    told = []
    for text in texts:
        file.write_text(text, encoding="utf-8")
        told.append(pictures.code(file))
    assert told[0] == told[1] != told[2]
