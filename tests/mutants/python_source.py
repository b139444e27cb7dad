"""The mutants of a Python source, by its syntax tree.

Documentation, comments, type hints and messages are left alone, and so are limits of time and sizes of buffers: nobody
could notice one more second.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from tests.mutants.mutant import Mutant

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN", "__all__", "__metaclass__"}
# Calls whose arguments are for people to read.
SAYS = {
    *("fail", "fail_json", "warn", "warning", "deprecate", "debug", "log", "say", "print", "display", "v", "vv", "vvv"),
    *("note", "info", "error", "cast", "TypeVar", "NewType", "getLogger", "add_argument", "ArgumentParser"),
}
MESSAGE = {"msg", "help", "description", "reason", "why", "remedy", "cause"}
# What +1 or another value changes in nothing that can be seen, or only on another machine.
UNSEEN = re.compile(
    r"timeout|seconds|delay|interval|pause|patience|within|retries|attempts|deadline|wait|chunk|block|buffer|maxsize"
    r"|stacklevel|encoding|errors|indent|flush|bufsize|daemon|width|height|margin",
    re.IGNORECASE,
)
LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
ENDS = {"fail", "fail_json", "exit_json", "exit", "refuse"}
# A message that is wrong has its tests elsewhere, and imports fail at once.
LEFT_ALONE = (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)
COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef, ast.Match)


class _Source:
    """Positions of the tree as offsets in the text; ast counts columns in bytes of UTF-8."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0, *itertools.accumulate(map(len, self.lines))]

    def offset(self, line: int, column: int) -> int:
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)

    def span(self, node: ast.AST) -> tuple[int, int]:
        place: ast.expr = node  # type: ignore[assignment]
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return self.offset(place.lineno, place.col_offset), self.offset(place.end_lineno, place.end_col_offset)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]


def name_of(call: ast.Call) -> str:
    """The last word of what is called."""
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _prose(text: str) -> bool:
    return len(text.split()) > 3


class _Walk:
    """Goes through a tree and collects what can be changed."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.found: list[Mutant] = []
        self.lines = (1, 1)

    def add(self, start: int, end: int, new: str, what: str) -> None:
        line = self.source.text.count("\n", 0, start) + 1
        self.found.append(Mutant(self.source.path, start, end, new, what, line, *self.lines))

    def replace(self, node: ast.AST, new: str, what: str) -> None:
        self.add(*self.source.span(node), new, what)

    # --- statements ---

    def body(self, statements: list[ast.stmt]) -> None:
        first = statements[0].value if statements and isinstance(statements[0], ast.Expr) else None
        documented = isinstance(first, ast.Constant) and isinstance(first.value, str)
        for statement in statements[1:] if documented else statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        last = node.end_lineno or node.lineno
        inner = getattr(node, "body", None)
        if isinstance(node, COMPOUND) and inner:
            last = max(node.lineno, inner[0].lineno - 1)
        self.lines = (node.lineno, last)
        if isinstance(node, LEFT_ALONE):
            return
        if isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.Try):
            self._try(node)
        elif isinstance(node, ast.Return):
            self._return(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node)
        elif isinstance(node, ast.FunctionDef):
            self.children([*node.args.defaults, *(one for one in node.args.kw_defaults if one)])
            self.body(node.body)
        elif isinstance(node, ast.ClassDef):
            self.body(node.body)
        else:
            if isinstance(node, ast.While):
                self.negated(node.test)
            for field, value in ast.iter_fields(node):
                if field in ("body", "orelse"):
                    self.body(value)
                else:
                    self.children(value)

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        names = [self.source.of(one) for one in (node.targets if isinstance(node, ast.Assign) else [node.target])]
        if node.value and not any(name in DOCUMENTATION or UNSEEN.search(name) for name in names):
            self.expression(node.value)

    def _if(self, node: ast.If) -> None:
        said = self.source.of(node.test)
        if "TYPE_CHECKING" in said or "__name__" in said:
            return
        self.negated(node.test)
        last = node.body[-1]
        call = last.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
        ends = isinstance(last, LEAVES) or (call is not None and name_of(call) in ENDS)
        # "elif" begins with the same node two letters later, and is no statement that pass could stand for.
        if ends and not node.orelse and self.source.of(node).startswith("if"):
            self.replace(node, "pass", "guard dropped")
        self.expression(node.test)
        self.body(node.body)
        self.body(node.orelse)

    def _try(self, node: ast.Try) -> None:
        self.body(node.body)
        for part in (*[handler.body for handler in node.handlers], node.finalbody):
            for statement in part:
                call = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(call, ast.Call) and name_of(call) not in SAYS | ENDS:
                    self.lines = (statement.lineno, statement.end_lineno or statement.lineno)
                    self.replace(statement, "pass", "clean-up dropped")
            self.body(part)
        self.body(node.orelse)

    def _return(self, node: ast.Return) -> None:
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and value.value in (None, False, "", 0)):
            # These are as good as None, or are changed below.
            self.children(value)
            return
        if not isinstance(value, ast.Constant) or value.value is not True:
            self.replace(value, "None", "return value dropped")
        self.expression(value)

    # --- expressions ---

    def negated(self, test: ast.expr) -> None:
        text = self.source.of(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in COMPARISONS:
            plain = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
            if isinstance(test.ops[0], plain):
                # The other operator is the same change.
                return
        self.replace(test, f"not ({text})", "condition negated")

    def children(self, value: object) -> None:
        if isinstance(value, ast.expr):
            self.expression(value)
        elif isinstance(value, list):
            for one in value:
                self.children(one)
        elif isinstance(value, ast.AST):
            for _field, inner in ast.iter_fields(value):
                self.children(inner)

    def expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            self._constant(node)
            return
        if isinstance(node, ast.JoinedStr):
            # Most of them are messages, and Python 3.11 does not know where their parts are.
            return
        if isinstance(node, ast.Call):
            self._call(node)
            return
        if isinstance(node, ast.Compare):
            self._compare(node)
        elif isinstance(node, ast.BoolOp):
            self._between(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.replace(node, self.source.of(node.operand), "not dropped")
        elif isinstance(node, ast.IfExp):
            self.negated(node.test)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in node.generators:
                for test in generator.ifs:
                    self.negated(test)
        elif isinstance(node, ast.Dict):
            self._dictionary(node)
            return
        for _field, value in ast.iter_fields(node):
            self.children(value)

    def _dictionary(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values):
            said = key.value if isinstance(key, ast.Constant) else ""
            if key is not None:
                self.expression(key)
            if not (isinstance(said, str) and (said in MESSAGE or UNSEEN.search(said))):
                self.expression(value)

    def _constant(self, node: ast.Constant) -> None:
        value, text = node.value, self.source.of(node)
        if isinstance(value, bool):
            self.replace(node, str(not value), f"{value} became {not value}")
        elif isinstance(value, int):
            self.replace(node, f"({value} + 1)" if value >= 0 else "0", f"{text} became {value + 1}")
        elif isinstance(value, str) and value and not _prose(value):
            self.replace(node, '""', f"{text} became empty" if len(text) < 60 else "a text became empty")

    def _compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators):
            pattern, new = COMPARISONS[type(operator)]
            start, end = self.source.span(left)[1], self.source.span(right)[0]
            match = re.search(rf"(?<![<>=!\w]){pattern}(?![=\w])", self.source.text[start:end])
            if match:
                self.add(start + match.start(), start + match.end(), new, f"{match.group()} became {new}")
            left = right

    def _between(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in itertools.pairwise(node.values):
            start, end = self.source.span(left)[1], self.source.span(right)[0]
            match = re.search(rf"\b{old}\b", self.source.text[start:end])
            if match:
                self.add(start + match.start(), start + match.end(), new, f"{old} became {new}")

    def _call(self, node: ast.Call) -> None:
        name = name_of(node)
        self.children(node.func)
        if name in SAYS:
            return
        for argument in node.args:
            self.expression(argument)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.expression(keyword.value)
            elif keyword.arg not in MESSAGE and not UNSEEN.search(keyword.arg):
                self._argument(node, keyword)
                self.expression(keyword.value)

    def _argument(self, node: ast.Call, keyword: ast.keyword) -> None:
        start, end = self.source.span(keyword)
        rest = re.match(r"\s*,\s*", self.source.text[end:])
        before = re.search(r",\s*$", self.source.text[:start])
        if rest:
            self.add(start, end + rest.end(), "", f"argument {keyword.arg} removed")
        elif before:
            self.add(before.start(), end, "", f"argument {keyword.arg} removed")
        elif len(node.args) + len(node.keywords) == 1:
            self.add(start, end, "", f"argument {keyword.arg} removed")


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """All mutants of a source, in its order; whether one compiles is not asked here."""
    walk = _Walk(_Source(path, text))
    walk.body(ast.parse(text).body)
    yield from sorted(walk.found, key=lambda one: (one.start, one.end, one.what))


def sound(text: str) -> bool:
    """Whether a mutant compiles."""
    try:
        ast.parse(text)
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
