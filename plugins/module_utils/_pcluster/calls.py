# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One operation of AWS ParallelCluster's library each, in the interpreter that has it.

The library lives in a virtual environment of its own, so a worker process runs there (_pcluster/worker.py).
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common import commands
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import worker as pcluster_worker

# The library's codes. DRY_RUN says that a dry run would have succeeded.
NO_LIBRARY, BAD_REQUEST, NOT_FOUND, CONFLICT, DRY_RUN, BROKEN = 0, 400, 404, 409, 412, 500
# Seconds. An operation ends within 15 s; deleting with kept logs may first update the stack.
TIMEOUT = 900.0
_SHOWN_FINDINGS = 5


class PclusterError(TrainiumError):
    """An operation that failed, or a dry run that passed.

    ``code`` is the library's (as in HTTP, 0 where the library is missing), ``message`` a sentence without a full stop,
    ``content`` the library's answer, which may have ``configurationValidationErrors``, ``updateValidationErrors``,
    ``changeSet`` and ``validationMessages``.
    """

    def __init__(self, code: int, message: str, content: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.content = code, message, dict(content or {})


def call(
    python: str | None,
    operation: str,
    arguments: Mapping[str, Any],
    *,
    region: str | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Any:
    """Run an operation and return its answer. Raises PclusterError.

    ``python`` is the interpreter with aws-parallelcluster, by default the running one. ``operation`` is a function of
    ``pcluster.lib`` by its name, or one of the worker's own (``version``, ``schema``, ``update_policies``,
    ``cluster_state``, ``delete_cluster_keep_logs``); ``arguments`` are its keywords. ``environment`` is added to this
    process's, and what is None there is taken away: credentials and endpoints go this way and are never an
    argument of a program.
    """
    interpreter = python or sys.executable
    request = json.dumps({"operation": operation, "arguments": dict(arguments), "region": region}, default=str)
    with tempfile.TemporaryDirectory(prefix="pcluster-") as folder:
        variables = _environment(environment or {}, region, folder)
        # An environment of Python may bring its own node.
        variables["PATH"] = os.pathsep.join([os.path.dirname(interpreter), variables.get("PATH", os.defpath)])
        out, err = _run(interpreter, operation, request, variables)
    try:
        answer = json.loads(out)
    except ValueError as error:
        last = err.strip().splitlines()[-1:] or ["it said nothing"]
        raise PclusterError(BROKEN, f"{operation} broke in {interpreter}: {last[0]}") from error
    if "error" in answer:
        failure = answer["error"]
        raise PclusterError(failure["code"], _sentence(failure, operation, interpreter), failure["content"])
    return answer["result"]


def findings(content: Mapping[str, Any]) -> list[str]:
    """What the library has against a request, one text for each finding."""
    configuration = [
        # INFO and WARNING are listed beside the errors that made the request fail.
        f"{item.get('type', 'configuration')}: {_one_line(item.get('message', ''))}"
        for item in content.get("configurationValidationErrors") or ()
        if item.get("level") == "ERROR"
    ]
    update = [
        f"{item.get('parameter', 'update')}: {_one_line(item.get('message', ''))}"
        for item in content.get("updateValidationErrors") or ()
    ]
    return configuration + update


def _sentence(failure: Mapping[str, Any], operation: str, interpreter: str) -> str:
    if failure["code"] == NO_LIBRARY:
        return (
            f"{interpreter} has no aws-parallelcluster; name the interpreter of the environment that has it "
            "(pcluster_python)"
        )
    message = _one_line(failure["message"]) or f"{operation} failed"
    found = findings(failure["content"])
    if not found:
        return message
    more = f" (and {len(found) - _SHOWN_FINDINGS} more)" if len(found) > _SHOWN_FINDINGS else ""
    return f"{message}: {'; '.join(found[:_SHOWN_FINDINGS])}{more}"


def _one_line(text: Any) -> str:
    return " ".join(str(text).split()).rstrip(". ")


def _environment(extra: Mapping[str, str | None], region: str | None, folder: str) -> dict[str, str]:
    """The worker's variables. Where the home cannot be written to, ``folder`` is one: node keeps a cache there."""
    variables = {name: value for name, value in {**os.environ, **extra}.items() if value is not None}
    if region:
        variables.update(AWS_REGION=region, AWS_DEFAULT_REGION=region)
    home = variables.get("HOME", "")
    if not (home and os.access(home, os.W_OK)):
        variables["HOME"] = folder
        # The profiles stay where they are.
        for name, file in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")):
            path = os.path.join(home, ".aws", file)
            if home and os.path.exists(path):
                variables.setdefault(name, path)
    return variables


def _run(interpreter: str, operation: str, request: str, variables: Mapping[str, str]) -> tuple[str, str]:
    # -I: neither this module's PYTHONPATH nor the current folder belongs in there.
    argv = [interpreter, "-I", "-c", inspect.getsource(pcluster_worker)]
    try:
        reply = commands.execute(argv, TIMEOUT, variables, written=request)
    except OSError as error:
        reason = error.strerror or "cannot be run"
        raise PclusterError(NO_LIBRARY, f"the interpreter {interpreter} (pcluster_python): {reason}") from error
    if not reply.ended:
        raise PclusterError(BROKEN, f"{operation} did not end within {TIMEOUT:g} s and was stopped")
    return reply.out, reply.err
