# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All checks of a ParallelCluster configuration that need no AWS account, in one list of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint import cluster, placement, queues, storage
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import ERROR, Finding, View

RULES = (*cluster.RULES, *queues.RULES, *placement.RULES, *storage.RULES)

_UNKNOWN = "Unknown field."
_MISSING = "Missing data for required field."


def lint(view: View, schema: Iterable[Mapping[str, str]] = ()) -> list[Finding]:
    """What is wrong with a configuration, errors first.

    ``schema``: what ParallelCluster's own schema found, as [{"key", "message"}]. A key that one of our rules speaks
    of is not named a second time in the schema's words.
    """
    own = [finding for rule in RULES for finding in rule(view)]
    named = {finding.key for finding in own}
    # A missing section makes the schema speak of the section, and a rule of the key in it.
    above = {"/".join(key.split("/")[:end]) for key in named for end in range(1, key.count("/") + 1)}
    found = [
        Finding(item["key"], schema_problem(item["message"]))
        for item in schema
        if item["key"] not in named and not (item["message"] == _MISSING and item["key"] in above)
    ]
    return sorted(dict.fromkeys(found + own), key=lambda finding: finding.severity != ERROR)


def schema_problem(message: str) -> str:
    """A finding of the schema in our words, with a remedy."""
    if message == _UNKNOWN:
        return "there is no such key; correct its spelling or remove it"
    if message == _MISSING:
        return "is missing; add it"
    text = " ".join(message.split()).rstrip(".")
    text = re.sub(r"^String does not match expected pattern", "the value does not have the form that is wanted", text)
    return f"{text[:1].lower() + text[1:]}; correct it"


def errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == ERROR]
