"""The pictures of the README: the terminal of a run (docs/pictures/terminal.svg) and a training's report (report.png).

Both show what real runs left: docs/pictures/run has a command with the lines of its screen, the log of a training, and
its report.json.

    python docs/tools/pictures.py            draw both from docs/pictures/run; wants the package chromium
    python docs/tools/pictures.py record     run the playbooks in the sandbox, which is up, and keep what they left
    python docs/tools/pictures.py --check    fail if a picture is older than what it shows

The digests that the check compares are in docs/pictures/digests.json: of the report as the code writes it today, and of
the callback's code without its documentation, since a new recording costs a whole run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import html
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import parse
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import page
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import record_of

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
RUN, DIGESTS = PICTURES / "run", PICTURES / "digests.json"
TERMINAL, REPORT = PICTURES / "terminal.svg", PICTURES / "report.png"
SHOWN = ("plugins/callback/phases.py", "plugins/plugin_utils/_phases.py")
LARGEST = 300_000
# Of a wait, a training that tells its steps, or a table this many lines are drawn, half of them from its end.
KEPT = 6
COLUMNS, WIDTH, HEIGHT, MARGIN = 112, 7.8, 18, 16
COLOURS = {
    "0;31": "#ff7b72",
    "0;32": "#7ee787",
    "0;33": "#e3b341",
    "0;34": "#79c0ff",
    "0;35": "#d2a8ff",
    "0;36": "#76e3ea",
    "1;35": "#d2a8ff",
    "1;31": "#ff7b72",
    "1;37": "#ffffff",
}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def record() -> None:
    """Run site.yml on an empty account of the sandbox, and keep what it left without this machine's paths."""
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [sys.executable, "-m", "sandbox", "run", str(program), "playbooks/site.yml", "-e", "trainium_backend=ec2"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_FORCE_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout)
    if done.returncode:
        sys.exit(f"site.yml ended with {done.returncode}; nothing was kept.")
    reports = Path(os.environ.get("TRAINIUM_SANDBOX_DIR") or ROOT / ".sandbox") / "demo"
    known = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    shutil.copyfile(known.pop("log"), RUN / "training.log")
    (RUN / "report.json").write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    screen = done.stdout.replace(str(ROOT), "~/cluster")
    (RUN / "screen.txt").write_text(f"$ make demo\n{screen}", encoding="utf-8")


def shortened(lines: list[str]) -> list[str]:
    """Lines of which those that tell how far the same thing is are few."""
    found: list[str] = []
    for wait, group in itertools.groupby(lines, wait_of):
        told = list(group)
        found += told if not wait or len(told) <= KEPT else [*told[: KEPT // 2], "    ...", *told[-KEPT // 2 :]]
    return found


def wait_of(line: str) -> str:
    """The module whose progress a line tells, or that it lies deep in a table; '' for another line."""
    match = re.match(r"([a-z_]+): |(?=( ) {5})", ESCAPE.sub("", line))
    return match[1] or match[2] if match else ""


def spans(line: str) -> str:
    """A line with the colours that a terminal would show."""
    parts, colour, room = [], "", COLUMNS
    for number, piece in enumerate(ESCAPE.split(line)):
        if number % 2:
            colour = COLOURS.get(piece, "")
            continue
        piece = piece[:room] if len(piece) <= room else piece[: max(0, room - 1)] + "…"
        room -= len(piece)
        if piece:
            fill = f' fill="{colour}"' if colour else ""
            parts.append(f"<tspan{fill}>{html.escape(piece)}</tspan>")
    return "".join(parts)


def terminal(screen: str) -> str:
    """An SVG image of a terminal."""
    lines = shortened(screen.rstrip().splitlines())
    width, height = round(COLUMNS * WIDTH + 2 * MARGIN), len(lines) * HEIGHT + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + (number + 1) * HEIGHT - 5}" xml:space="preserve">{spans(line)}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    fonts = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img"'
    back = f'<rect {size} rx="8" fill="#0d1117"/>'
    group = f'<g font-family="{fonts}" font-size="13" fill="#c9d1d9">'
    return "\n".join([f'{head} aria-label="The screen of a run">', back, group, *rows, "</g>", "</svg>", ""])


def report() -> bytes:
    """The page of the recorded training, as the code writes it today."""
    known = json.loads((RUN / "report.json").read_text(encoding="utf-8"))
    log = (RUN / "training.log").read_text(encoding="utf-8")
    return page(record_of(parse([log], False), known, {}, False))


def photograph(content: bytes) -> None:
    """The page in Chromium, as a PNG image."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not installed; run make browser, or apt-get install chromium.")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "report.html").write_bytes(content)
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}/profile", "--window-size=1000,990", "--force-device-scale-factor=1"]
        command += [f"--screenshot={folder}/report.png", f"file://{folder}/report.html"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not (Path(folder) / "report.png").exists():
            sys.exit(f"chromium made no picture: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        shutil.copyfile(Path(folder) / "report.png", REPORT)


def code(path: Path) -> str:
    """The lines of a file that do something, without comments and documentation; the same with every Python."""
    text = path.read_text(encoding="utf-8")
    told = {
        number
        for node in ast.walk(ast.parse(text))
        if _is_documentation(node)
        for number in range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return "\n".join(line for number, line in lines if number not in told and not re.match(r"\s*(#|$)", line))


def _is_documentation(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    names = [one.id for one in node.targets if isinstance(one, ast.Name)] if isinstance(node, ast.Assign) else []
    return names == ["DOCUMENTATION"]


def digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


def digests() -> dict[str, str]:
    """What each picture shows: what it is drawn from, and what drew that."""
    told = [code(ROOT / name).encode() for name in SHOWN]
    return {
        "terminal.svg of the callback": digest(*told),
        "terminal.svg": digest((RUN / "screen.txt").read_bytes()),
        "report.png": digest(report()),
    }


def check() -> list[str]:
    """A sentence for each picture that shows something older, or is too large for a page."""
    known = json.loads(DIGESTS.read_text(encoding="utf-8"))
    wrong = [
        f"docs/pictures/{name} is older than what it shows; run make pictures."
        for name, value in digests().items()
        if known.get(name) != value and not name.endswith("callback")
    ]
    if known["terminal.svg of the callback"] != digests()["terminal.svg of the callback"]:
        wrong.append(
            "docs/pictures/terminal.svg shows an older plugins/callback/phases.py; run make pictures-anew, or make "
            "pictures where the lines on the screen are the same."
        )
    if terminal((RUN / "screen.txt").read_text(encoding="utf-8")) != TERMINAL.read_text(encoding="utf-8"):
        wrong.append("docs/pictures/terminal.svg is not what the script draws; run make pictures.")
    wrong += [
        f"{path.relative_to(ROOT)} has more than {LARGEST} bytes."
        for path in (TERMINAL, REPORT)
        if path.stat().st_size > LARGEST
    ]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["record"], help="run the playbooks and keep what they left")
    parser.add_argument("--check", action="store_true", help="fail if a picture is older than what it shows")
    options = parser.parse_args()
    if options.check:
        wrong = check()
        print("\n".join(wrong), end="\n" if wrong else "")
        return bool(wrong)
    if options.what:
        record()
    TERMINAL.write_text(terminal((RUN / "screen.txt").read_text(encoding="utf-8")), encoding="utf-8")
    photograph(report())
    DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
