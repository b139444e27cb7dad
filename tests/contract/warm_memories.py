"""What processes forked by `warm_python` need not read, parse or compile again: it is the same for all."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pickle
import sys
import tempfile
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


def of_controller(folder: Path) -> None:
    """Code and documents that Ansible's commands load, in a folder of their owner."""
    _collections(folder)
    _templates(folder)
    _documents(folder)
    _settings()


def of_clients() -> None:
    """What boto3's sessions and clients are made of."""
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
    """Ansible compiles each template in the process of the task that has it, and keeps nothing."""
    environment = importlib.import_module("jinja2.environment").Environment
    compile_template, compile_expression = environment.compile, environment.compile_expression

    def kept(self: Any, kind: str, source: str, make: Callable[[], Any]) -> Any:
        # Nothing is computed beforehand where constants are not folded: the code depends on the text and these alone.
        bits: Any = sys.modules[type(self).__module__]
        context = bits._TemplateCompileContext.current(optional=True)
        settings: list[Any] = [getattr(self, name) for name in TEMPLATE_SETTINGS]
        settings += [sorted(self.extensions), bits._TemplateConfig.allow_embedded_templates]
        settings.append(context.escape_backslashes if context else None)
        return fork_server.compiled(folder, "<template>", f"{kind}{settings!r}{source!s}", make)

    def once(self: Any, source: Any, name: Any = None, filename: Any = None, *more: Any, **named: Any) -> Any:
        def make() -> Any:
            return compile_template(self, source, name, filename, *more, **named)

        if (
            type(self).__name__ != "AnsibleEnvironment"
            or not isinstance(source, str)
            or name
            or filename
            or more
            or named
        ):
            return make()
        return kept(self, "template", source, make)

    def expression_once(self: Any, source: str, undefined_to_none: bool = True) -> Any:
        if type(self).__name__ != "AnsibleEnvironment":
            return compile_expression(self, source, undefined_to_none)
        made: list[Any] = []

        def make() -> Any:
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
        return importlib.import_module("jinja2.environment").TemplateExpression(template, undefined_to_none)

    environment.compile, environment.compile_expression = once, expression_once


def _settings() -> None:
    """The list of Ansible's settings is read once: it is the same for all, what they are set to is the client's."""
    manager = importlib.import_module("ansible.config.manager")
    read = _asked_once(manager.ConfigManager._read_config_yaml_file)
    manager.ConfigManager._read_config_yaml_file = read
    read(None, str(Path(str(manager.__file__)).with_name("base.yml")))


def _documents(folder: Path) -> None:
    """Ansible reads the files of a role with YAML in every run that has it, where each text has its line and column."""
    library: Any = importlib.import_module("yaml")
    tags = importlib.import_module("ansible._internal._datatag._tags")
    load = library.load

    def once(data: Any, Loader: Any) -> Any:  # noqa: N803  # as PyYAML names it
        origin = tags.Origin.get_tag(data)
        if Loader.__name__ != "AnsibleLoader" or not isinstance(data, str) or not origin or not origin.path:
            return load(data, Loader)
        said = f"yaml {origin!r} {tags.TrustedAsTemplate.is_tagged_on(data)} {data!s}"
        return _kept(folder, said, lambda: load(data, Loader))

    library.load = once


def _kept(folder: Path, said: str, make: Callable[[], Any]) -> Any:
    """What was made of a text, a new object each time."""
    kept = folder / hashlib.sha256(said.encode()).hexdigest()
    if kept.exists():
        return pickle.loads(kept.read_bytes())  # noqa: S301  # the folder is its server's own
    made = make()
    with tempfile.NamedTemporaryFile(dir=folder, prefix="part-", delete=False) as part:
        part.write(pickle.dumps(made, protocol=5))
    os.replace(part.name, kept)
    return made


def _events() -> None:
    """The names of botocore's events and whether a function may be called by them; both take inspection each time."""
    hooks: Any = importlib.import_module("botocore.hooks")
    session = importlib.import_module("botocore.session")
    aliases: dict[str, str] = {}
    start, inspected = hooks.EventAliaser.__init__, hooks.accepts_kwargs
    takes: dict[Any, Any] = {}

    def with_names(self: Any, event_emitter: Any, event_aliases: Any = None) -> None:
        start(self, event_emitter, event_aliases)
        if event_aliases is None:
            self._alias_name_cache = aliases

    def asked_once(function: Any) -> Any:
        code = getattr(function, "__code__", None)
        if code is None:
            return inspected(function)
        if code not in takes:
            takes[code] = inspected(function)
        return takes[code]

    hooks.EventAliaser.__init__, hooks.accepts_kwargs = with_names, asked_once
    # Most names are those of the handlers that each session has.
    session.Session()
