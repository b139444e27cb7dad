"""The mutants of templates, shell scripts, and the YAML of roles, line by line."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePath

import jinja2
import yaml

from tests.mutants.mutant import Mutant

# What opens or closes a block, and without which the rest would not be read.
STRUCTURE = re.compile(
    r"\s*(?:if\b.*|elif\b.*|else|fi|for\b.*|while\b.*|do|done\b.*|case\b.*|esac|then|;;|[{}()]+|\S+\)|.*\{|.*\)\s*;;|\{%.*%\}"
    r"|[A-Za-z_]+\(\) \{.*|.*<<.*|\[[\w .-]+\]|<[^>]*>|[\[\]{},]+)\s*"
)
COMMENT = re.compile(r"\s*(?:#|Description=|\{#|//|;|---$|<!--)")
# For people to read.
SAYS = re.compile(r'\s*(?:echo|printf|say|note|log)\s+(?:-e\s+)?["\'](?!JOB (?!note))|.*(?:>&2\s*$|>&2;)')
SHELL_OPTION = re.compile(
    r"(?<=\s)(?!-(?:[lg][te]|eq|ne|[aozn]) )--?[A-Za-z][\w-]*(?:=(?:\"[^\"]*\"|'[^']*'|[^\s\"'|;&)]+))?(?=[\s;)]|$)"
)
NUMBER = re.compile(r"(?<![\w.$:/{}-])\d+(?![\w.:/>%-])(?!\s*>&)")
SWAPS = (
    (re.compile(r"(?<=[\[ ])-n(?= )"), "-z"),
    (re.compile(r"(?<=[\[ ])-z(?= )"), "-n"),
    (re.compile(r"(?<= )-lt(?= )"), "-le"),
    (re.compile(r"(?<= )-le(?= )"), "-lt"),
    (re.compile(r"(?<= )-gt(?= )"), "-ge"),
    (re.compile(r"(?<= )-ge(?= )"), "-gt"),
    (re.compile(r"(?<= )-eq(?= )"), "-ne"),
    (re.compile(r"(?<= )-ne(?= )"), "-eq"),
    (re.compile(r"(?<= )!?==?(?= )(?=.*\])"), "="),
    (re.compile(r"(?<= )&&(?= )"), "||"),
    (re.compile(r"(?<= )\|\|(?= )"), "&&"),
    (re.compile(r"(?<=[ (])! (?=[\[{a-z])"), ""),
)
WORDS = (
    (re.compile(r"(?<= )and(?= )"), "or"),
    (re.compile(r"(?<= )or(?= )"), "and"),
    (re.compile(r"(?<= )==(?= )"), "!="),
    (re.compile(r"(?<= )!=(?= )"), "=="),
    (re.compile(r"(?<= )not (?=[\w(])"), ""),
    (re.compile(r"(?<= )>(?= \w)"), ">="),
)
QUOTE = re.compile(r" \| quote(?=[\s})])")
CONDITION = re.compile(r"\{%-? (?:el)?if (.*?) -?%\}")
# What people read of a task, or only order it.
SHOWN = re.compile(
    r"\s*(?:- )?(?:name|msg|fail_msg|success_msg|label|description|tags|quiet|delay|retries|timeout|prompt|reason|why"
    r"|help|until):(?: |$)"
)
KEY = re.compile(r"\s*(?:- )?[\w.\"'-]+:(?: |$)")


class _Lines:
    """A text by its lines, and the mutants found in it."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.found: list[Mutant] = []
        self.starts: list[int] = []
        offset = 0
        self.lines = text.splitlines(keepends=True)
        for line in self.lines:
            self.starts.append(offset)
            offset += len(line)

    def add(self, number: int, start: int, end: int, new: str, what: str) -> None:
        base = self.starts[number]
        line = number + 1
        self.found.append(Mutant(self.path, base + start, base + end, new, what, line, line, line))

    def drop(self, number: int) -> None:
        self.add(number, 0, len(self.lines[number]), "", "line dropped")

    def swap(self, number: int, swaps: tuple[tuple[re.Pattern[str], str], ...]) -> None:
        for pattern, new in swaps:
            for match in pattern.finditer(self.lines[number]):
                old = match.group()
                put = {"=": "!=", "==": "!=", "!=": "="}[old] if new == "=" else new
                what = f"{old.strip()} became {put}" if put else f"{old.strip()} dropped"
                self.add(number, match.start(), match.end(), put, what)

    def numbers(self, number: int) -> None:
        for match in NUMBER.finditer(self.lines[number]):
            said = self.lines[number][: match.start()].rstrip().rsplit(" ", 1)[-1]
            value = int(match.group())
            # That it failed is what counts, not by which number.
            if said in ("exit", "return") and value:
                continue
            if re.search(
                r"sleep|timeout|wait|retries|delay|width|height|[xyw]\"?:$", self.lines[number][: match.start()]
            ):
                continue
            put = str(value + 1).zfill(len(match.group()))
            self.add(number, match.start(), match.end(), put, f"{match.group()} became {put}")

    def quotes(self, number: int) -> None:
        for match in QUOTE.finditer(self.lines[number]):
            self.add(number, match.start(), match.end(), "", "quote removed")

    def conditions(self, number: int) -> None:
        for match in CONDITION.finditer(self.lines[number]):
            self.add(number, match.start(1), match.end(1), f"not ({match.group(1)})", "condition negated")
            inner = match.group(1)
            for pattern, new in WORDS[:4]:
                for word in pattern.finditer(inner):
                    start = match.start(1) + word.start()
                    self.add(number, start, start + len(word.group()), new, f"{word.group()} became {new}")


def _template(lines: _Lines) -> None:
    inside = False
    for number, line in enumerate(lines.lines):
        # A line that the one before goes on in is no statement of its own.
        goes_on, inside = inside, line.rstrip().endswith("\\")
        if not line.strip() or COMMENT.match(line):
            continue
        lines.conditions(number)
        if CONDITION.search(line) and STRUCTURE.fullmatch(line.rstrip("\n")):
            continue
        if SAYS.match(line):
            continue
        lines.quotes(number)
        lines.numbers(number)
        if PurePath(lines.path.removesuffix(".j2")).suffix not in (".json", ".yml", ".yaml", ".html"):
            lines.swap(number, SWAPS)
            for match in SHELL_OPTION.finditer(line):
                if not line[: match.start()].rstrip().endswith(("[", "[[", "test", "!", "&&", "||")):
                    lines.add(number, match.start(), match.end(), "", f"{match.group()} removed")
        if not goes_on and not inside and not STRUCTURE.fullmatch(line.rstrip("\n")):
            lines.drop(number)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _yaml(lines: _Lines) -> None:
    below: int | None = None  # the indentation of what is for people
    for number, line in enumerate(lines.lines):
        if not line.strip() or COMMENT.match(line):
            continue
        if below is not None and _indent(line) > below:
            continue
        below = None
        if SHOWN.match(line):
            if line.rstrip().endswith((":", ">", "|", ">-", "|-")):
                below = _indent(line)
            continue
        lines.quotes(number)
        lines.numbers(number)
        if re.match(r"\s*(?:- )?(?:when|until|failed_when|changed_when): \S", line):
            start = line.index(": ") + 2
            said = line[start:].rstrip("\n")
            if not said.startswith((">", "|", '"', "'", "[")) and said not in ("true", "false"):
                lines.add(number, start, start + len(said), f"not ({said})", "condition negated")
        if not KEY.match(line) or "{{" in line or re.match(r"\s*(?:when|until|failed_when|changed_when):", line):
            lines.swap(number, WORDS)
        for match in re.finditer(r"(?<=: )(?:true|false)$", line.rstrip("\n")):
            new = "false" if match.group() == "true" else "true"
            lines.add(number, match.start(), match.end(), new, f"{match.group()} became {new}")
        following = next((other for other in lines.lines[number + 1 :] if other.strip()), "")
        leaf = _indent(following) <= _indent(line) and not line.rstrip().endswith((":", ">", "|", ">-", "|-"))
        if leaf and (KEY.match(line) or line.lstrip().startswith("- ")):
            lines.drop(number)


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """All mutants of a text, in its order; whether one can be read is not asked here."""
    lines = _Lines(path, text)
    (_yaml if path.endswith(".yml") else _template)(lines)
    yield from sorted(lines.found, key=lambda one: (one.start, one.end, one.what))


@functools.cache
def _bash_reads(text: str) -> bool:
    return subprocess.run(["/bin/bash", "-n"], input=text, capture_output=True, text=True, check=False).returncode == 0


def _plain(text: str) -> str:
    """A template without what Jinja does: every line that it could have, and a word for each value."""
    text = re.sub(r"^\{%.*%\}\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\{\{.*?\}\}", "x", re.sub(r"\{%.*?%\}", "", text))


def sound(path: str, text: str, original: str) -> bool:
    """Whether a mutant can be read as what it is: YAML, Jinja or, where the original can be, as bash."""
    try:
        if path.endswith(".yml"):
            yaml.safe_load(text)
            return True
        if path.endswith(".j2"):
            jinja2.Environment(autoescape=True).parse(text)
    except (yaml.YAMLError, jinja2.TemplateError):
        return False
    return _bash_reads(_plain(text)) or not _bash_reads(_plain(original))
