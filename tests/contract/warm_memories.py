"""What processes forked by `warm_python` need not read, parse or compile again: it is the same for all."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A folder of the hosts' image, put there by `warm_python`.
fork_server = importlib.import_module("fork_server")

SERVICES = (
    *("ec2", "sts", "iam", "s3", "fsx", "efs", "eks", "cloudformation", "logs", "resource-groups"),
    *("dynamodb", "ssm"),
)
# What the code of a template depends on beside its text.
TEMPLATE_SETTINGS = (
    *("block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "optimized"),
    *("comment_start_string", "comment_end_string", "line_statement_prefix", "line_comment_prefix", "autoescape"),
    *("trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline", "is_async"),
)


def for_controller(folder: Path) -> None:
    """Let Ansible keep in the folder what it compiles and parses."""
    _collections(folder)
    _templates(folder)
    _documents(folder)
    _settings()


def for_clients() -> None:
    """Let botocore keep in memory what sessions and clients are made of."""
    _models()
    _events()


def _models() -> None:
    """botocore reads each model once, before the first fork, and each folder of models."""
    loaders = importlib.import_module("botocore.loaders")
    loaders.JSONFileLoader.load_file = _asked_once(loaders.JSONFileLoader.load_file)
    # Only those before the instance's own memory know what its folders are, and these are always the same.
    for name in ("list_available_services", "list_api_versions", "load_service_model"):
        setattr(loaders.Loader, name, _asked_once(getattr(loaders.Loader, name)))
    session = importlib.import_module("botocore.session").Session()
    for service in SERVICES:
        session.get_service_model(service)
        for kind in ("paginators-1", "waiters-2", "endpoint-rule-set-1"):
            try:
                session.get_component("data_loader").load_service_model(service, kind)
            except importlib.import_module("botocore.exceptions").UnknownServiceError:
                continue
    for name in ("endpoints", "partitions", "sdk-default-configuration", "_retry"):
        session.get_component("data_loader").load_data(name)


def _asked_once(method: Any) -> Any:
    """The method with a memory: the answer depends on the arguments alone, not on the loader that is asked."""
    answers: dict[Any, Any] = {}
    signature = inspect.signature(method)

    def remembered(self: Any, *arguments: Any, **named: Any) -> Any:
        asked = signature.bind(None, *arguments, **named)
        asked.apply_defaults()
        if asked.args not in answers:
            answers[asked.args] = method(self, *arguments, **named)
        return answers[asked.args]

    return remembered


def _collections(folder: Path) -> None:
    """Ansible compiles what it loads from a collection in each process, and keeps nothing."""
    finder = importlib.import_module("ansible.utils.collection_loader._collection_finder")

    def from_folder(source: bytes | str, filename: str, **more: Any) -> Any:
        return fork_server.compiled(folder, filename, source, lambda: compile(source, filename, **more))

    finder.__dict__["compile"] = from_folder


def _templates(folder: Path) -> None:
    """Ansible compiles each template in the process of the task that has it, and keeps nothing.

    The code depends on the text, on these settings and on what the filters and tests in it are; those of one name are
    taken to be the same in all runs.
    """
    jinja = importlib.import_module("jinja2.environment")
    environment = jinja.Environment
    compile_template, compile_expression = environment.compile, environment.compile_expression

    def kept(self: Any, kind: str, source: str, make: Callable[[], Any]) -> Any:
        # Not imported here: that reads configuration, which is the client's.
        jinja_bits: Any = sys.modules[type(self).__module__]
        context = jinja_bits._TemplateCompileContext.current(optional=True)
        settings: list[Any] = [getattr(self, name) for name in TEMPLATE_SETTINGS]
        settings += [sorted(self.extensions), jinja_bits._TemplateConfig.allow_embedded_templates]
        settings.append(context.escape_backslashes if context else None)
        return fork_server.compiled(folder, "<template>", f"\0{kind}{settings!r}{source!s}", make)

    def once(self: Any, source: Any, name: Any = None, filename: Any = None, *more: Any, **named: Any) -> Any:
        def make() -> Any:
            return compile_template(self, source, name, filename, *more, **named)

        plain = isinstance(source, str) and not (name or filename or more or named)
        return kept(self, "template", source, make) if plain and _of_ansible(self) else make()

    def expression_once(self: Any, source: str, undefined_to_none: bool = True) -> Any:
        if not _of_ansible(self):
            return compile_expression(self, source, undefined_to_none)
        made: list[Any] = []

        def make() -> Any:
            # compile_expression parses, and has the tree compiled by this.
            def remember(node: Any, *_rest: Any) -> Any:
                made.append(compile_template(self, node))
                return made[0]

            self.compile = remember
            try:
                compile_expression(self, source, undefined_to_none)
            finally:
                del self.compile
            return made[0]

        code = kept(self, "expression", source, make)
        template = self.template_class.from_code(self, code, self.make_globals(None), None)
        return jinja.TemplateExpression(template, undefined_to_none)

    environment.compile, environment.compile_expression = once, expression_once


def _of_ansible(environment: Any) -> bool:
    """Whether Ansible's own templates are compiled by it, where no constant is computed beforehand."""
    return type(environment).__name__ == "AnsibleEnvironment" and not environment.optimized


def _settings() -> None:
    """The list of Ansible's settings is read once: it is the same for all, what they are set to is the client's."""
    manager = importlib.import_module("ansible.config.manager")
    read = _asked_once(manager.ConfigManager._read_config_yaml_file)
    manager.ConfigManager._read_config_yaml_file = read
    read(None, str(Path(str(manager.__file__)).with_name("base.yml")))


def _documents(folder: Path) -> None:
    """Ansible parses a role's files in every run; each text knows its file, line and column, by which it is kept."""
    library: Any = importlib.import_module("yaml")
    tags = importlib.import_module("ansible._internal._datatag._tags")
    load = library.load

    def once(data: Any, Loader: Any) -> Any:  # noqa: N803  # as PyYAML names it
        origin = tags.Origin.get_tag(data)
        if Loader.__name__ != "AnsibleLoader" or not isinstance(data, str) or not origin or not origin.path:
            return load(data, Loader)
        # What was decrypted stays in memory.
        if tags.SourceWasEncrypted.is_tagged_on(data):
            return load(data, Loader)
        # No text of Python begins like this, so that code has no entry in common.
        kept = fork_server.entry(folder, f"\0yaml {origin!r} {tags.TrustedAsTemplate.is_tagged_on(data)} {data!s}")
        try:
            return pickle.loads(kept.read_bytes())  # noqa: S301  # the folder is its server's own
        except FileNotFoundError:
            made, warned = _with_warnings(lambda: load(data, Loader))
        # Each run warns of a key that stands twice.
        if not warned:
            with contextlib.suppress(RecursionError, TypeError, pickle.PicklingError):
                fork_server.keep(kept, pickle.dumps(made, protocol=5))
        return made

    library.load = once


def _with_warnings(load: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What was loaded, and what Ansible warned of meanwhile."""
    display = importlib.import_module("ansible.utils.display").Display()
    warned: list[str] = []

    def noting(show: Callable[..., None]) -> Callable[..., None]:
        def note(msg: str, *more: Any, **named: Any) -> None:
            warned.append(msg)
            show(msg, *more, **named)

        return note

    for kind in ("warning", "deprecated"):
        setattr(display, kind, noting(getattr(display, kind)))
    try:
        return load(), warned
    finally:
        del display.warning, display.deprecated


def _events() -> None:
    """Names of botocore's events and whether a handler takes any keyword, which botocore finds anew each time."""
    hooks: Any = importlib.import_module("botocore.hooks")
    session = importlib.import_module("botocore.session")
    aliases: dict[str, str] = {}
    start, inspected = hooks.EventAliaser.__init__, hooks.accepts_kwargs
    takes: dict[Any, Any] = {}

    def with_names(self: Any, event_emitter: Any, event_aliases: Any = None) -> None:
        start(self, event_emitter, event_aliases)
        if event_aliases is None:
            self._alias_name_cache = aliases

    def takes_keywords(function: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is None:
            return inspected(function)
        if code not in takes:
            takes[code] = inspected(function)
        return takes[code]

    hooks.EventAliaser.__init__, hooks.accepts_kwargs = with_names, takes_keywords
    # Most names are those of the handlers that each session has.
    session.Session()
