# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kinds of values that variables have, and the one sentence that refuses another value. Pure.

A rule is a line of the table in a role's ``tasks/validate.yml``: ``variable``, ``kind`` and what the kind takes. The
same lines make docs/refusals.md.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import is_unlimited, seconds_of

Rule = Mapping[str, Any]
SHOWN = 200  # characters of a value that a sentence quotes
# Keys that every rule may have, beside those of its kind.
COMMON = frozenset({"variable", "kind", "when", "value", "empty", "each", "sentence", "wanted", "condition"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Greedy, since a password may hold what ends it elsewhere.
_USER_OF_URL = re.compile(r"(?<=://)\S*@")


class Kind(NamedTuple):
    """``fits`` takes a value and the rule; ``wanted`` what to use instead; ``keys`` what the rule may say beside."""

    fits: Callable[[Any, Rule], bool]
    wanted: Callable[[Rule], str]
    keys: frozenset[str] = frozenset()


def shown(value: Any) -> str:
    """A value as a sentence quotes it: on one line, not long, and without the password of a URL."""
    text = _USER_OF_URL.sub("...@", str(value))
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def is_empty(value: Any) -> bool:
    """Whether a variable that may be left empty is."""
    return value is None or (isinstance(value, (str, list, tuple, dict)) and len(value) == 0)


def is_line(value: Any) -> bool:
    """Whether a value is text on one line."""
    return isinstance(value, str) and bool(value) and not _CONTROL.search(value)


def _matches(pattern: str) -> Callable[[Any, Rule], bool]:
    return lambda value, _rule: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _always(text: str) -> Callable[[Rule], str]:
    return lambda _rule: text


def number_of(value: Any) -> float | None:
    """A number, also one that is written as text; None for anything else, true and false among it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _in_range(value: float | None, rule: Rule) -> bool:
    # NaN is in no range.
    return value is not None and rule.get("minimum", float("-inf")) <= value <= rule.get("maximum", float("inf"))


def _whole(value: Any, rule: Rule) -> bool:
    number = number_of(value)
    return _in_range(number, rule) and re.fullmatch(r"-?[0-9]+", str(value).strip()) is not None


def _range(rule: Rule) -> str:
    if "maximum" in rule:
        return f" from {rule.get('minimum', 0)} to {rule['maximum']}"
    return f" of {rule['minimum']} or more" if "minimum" in rule else ""


def _cidr(value: Any, rule: Rule) -> bool:
    """An IPv4 network whose address is its first one: EC2 and our own subnets start from there."""
    if not isinstance(value, str) or "/" not in value:
        return False
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        return False
    least, most = rule.get("prefix", (1, 32))
    return bool(least <= network.prefixlen <= most)


def _path(value: Any, _rule: Rule) -> bool:
    return (
        is_line(value) and value.startswith("/") and not re.search(r"[\"'\\%$]", value) and ".." not in value.split("/")
    )


def is_url(value: Any, credentials: bool = False) -> bool:
    """Whether a value is a URL that names a host, and no user but with ``credentials``."""
    if not is_line(value) or " " in value:
        return False
    try:
        parts = urlsplit(value)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (credentials or "@" not in parts.netloc)
            and parts.port != 0
        )
    except ValueError:
        return False


def _url(value: Any, rule: Rule) -> bool:
    """With ``files`` also the address of a file, for a site that carries its mirror in."""
    return is_url(value, credentials=bool(rule.get("credentials"))) or bool(
        rule.get("files") and is_line(value) and value.startswith("file:///")
    )


def _tags(value: Any, _rule: Rule) -> bool:
    """At most 40, as EC2 allows 50 and ours are among them; names of AWS's and of ours are taken.

    Source: the EC2 user guide, "Tag restrictions": 128 and 256 characters, ``aws:`` is reserved.
    """
    return (
        isinstance(value, Mapping)
        and len(value) <= 40
        and all(
            isinstance(key, str)
            and 0 < len(key) <= 128
            and not key.lower().startswith(("aws:", "trainium:"))
            and isinstance(text, (str, int, float))
            and len(str(text)) <= 256
            for key, text in value.items()
        )
    )


def _reservation(value: Any, _rule: Rule) -> bool:
    """A target or a preference, as RunInstances takes them (CapacityReservationSpecification)."""
    if not isinstance(value, Mapping):
        return False
    given = {key: text for key, text in value.items() if text not in ("", None)}
    patterns = {"id": r"cr-[0-9a-f]{8,}", "resource_group_arn": r"arn:[a-z-]+:resource-groups:.+"}
    targets = set(given) & set(patterns)
    if not targets:
        return given.get("preference") in ("open", "none", "capacity-reservations-only")
    return len(targets) == 1 and all(
        re.fullmatch(patterns[key], str(text)) for key, text in given.items() if key in patterns
    )


def _numbers_by(pattern: str) -> Callable[[Any, Rule], bool]:
    def fits(value: Any, _rule: Rule) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and re.fullmatch(pattern, key) and _in_range(number_of(number), {"minimum": 0})
            for key, number in value.items()
        )

    return fits


def _time_limit(value: Any, _rule: Rule) -> bool:
    return is_unlimited(str(value)) or (isinstance(value, (str, int)) and bool(seconds_of(str(value))))


def _pattern(value: Any, rule: Rule) -> bool:
    return isinstance(value, (str, int, float)) and re.fullmatch(rule["pattern"], str(value)) is not None


def _settings(value: Any, _rule: Rule) -> bool:
    """Lines ``Name=value`` of a configuration file, of which a name or value must not make two."""
    return isinstance(value, Mapping) and all(
        isinstance(key, str)
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key)
        and isinstance(text, (str, int, float))
        and is_line(str(text))
        for key, text in value.items()
    )


_NAME = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
KINDS: dict[str, Kind] = {
    "text": Kind(lambda value, _rule: is_line(value), _always("text on one line")),
    "pattern": Kind(_pattern, lambda rule: str(rule.get("wanted", "")), frozenset({"pattern"})),
    "one_of": Kind(
        lambda value, rule: value in rule["values"],
        lambda rule: f"one of {', '.join(map(str, rule['values']))}",
        frozenset({"values"}),
    ),
    "whole": Kind(_whole, lambda rule: f"a whole number{_range(rule)}", frozenset({"minimum", "maximum"})),
    "number": Kind(
        lambda value, rule: _in_range(number_of(value), rule),
        lambda rule: f"a number{_range(rule)}",
        frozenset({"minimum", "maximum"}),
    ),
    "port": Kind(
        lambda value, _rule: _whole(value, {"minimum": 1, "maximum": 65535}), _always("a TCP port from 1 to 65535")
    ),
    "path": Kind(_path, _always("an absolute path without '..', line breaks and the signs \" ' \\ % $")),
    "cidr": Kind(
        _cidr,
        lambda rule: "a network with a prefix of {} to {} bits, such as 10.77.0.0/16".format(
            *rule.get("prefix", (1, 32))
        ),
        frozenset({"prefix"}),
    ),
    "url": Kind(
        _url,
        lambda rule: f"an http or https URL{'' if rule.get('credentials') else ' without user and password'}",
        frozenset({"credentials", "files"}),
    ),
    "host": Kind(_matches(rf"{_NAME}(\.{_NAME})*"), _always("a host name of letters, digits, hyphens, dots and _")),
    # ParallelCluster allows no more, and the name is part of others.
    "cluster_name": Kind(
        _matches(r"[A-Za-z][A-Za-z0-9-]{0,59}"), _always("a letter and then up to 59 letters, digits and hyphens")
    ),
    # The value of a tag, by which EC2 finds: there * and ? stand for anything.
    "cluster_tag": Kind(_matches(r"[^*?\s]{1,256}"), _always("the value of the tag trainium:cluster, without * and ?")),
    "region": Kind(_matches(r"[a-z]{2,}(-[a-z]+)+-[0-9]+"), _always("a region of AWS such as us-west-2")),
    "instance_type": Kind(_matches(r"[a-z][a-z0-9-]*\.[a-z0-9-]+"), _always("an instance type such as trn1.32xlarge")),
    # Ids of EC2 have 8 or 17 hexadecimal digits.
    "id": Kind(
        lambda value, rule: _matches(rf"{rule['prefix']}-[0-9a-f]{{8,17}}")(value, rule),
        lambda rule: f"an id such as {rule['prefix']}-0123456789abcdef0",
        frozenset({"prefix"}),
    ),
    # AWS: up to 255 ASCII characters (CreateKeyPair).
    "key_name": Kind(_matches(r"[!-~]([ -~]{0,253}[!-~])?"), _always("at most 255 ASCII characters")),
    # A name as useradd makes it, of a directory service, or a number.
    "user": Kind(_matches(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}"), _always("a user name without spaces")),
    "fingerprint": Kind(_matches(r" *([0-9A-Fa-f] *){40}"), _always("the fingerprint of a key, 40 hexadecimal digits")),
    "sha256": Kind(
        lambda value, rule: _matches(f"{'(sha256:)?' if rule.get('prefixed') else ''}[0-9A-Fa-f]{{64}}")(value, rule),
        _always("a SHA-256, 64 hexadecimal digits"),
        frozenset({"prefixed"}),
    ),
    "size": Kind(
        lambda value, _rule: re.fullmatch(r"[1-9][0-9]*([.][0-9]+)? ?[KMGT]?(iB|B)?", str(value)) is not None,
        _always("a size such as 64M or 60G"),
    ),
    "duration": Kind(
        _matches(r"[0-9]*[1-9][0-9]*(ms|s|m|h|d|w|y)"), _always("a whole number with a unit, such as 5s, 1m or 15d")
    ),
    "time_limit": Kind(
        _time_limit, _always("minutes, hours:minutes:seconds, days-hours or INFINITE, as Slurm takes times")
    ),
    # Names of PEP 508, and what may come behind them.
    "requirement": Kind(
        _matches(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])? *((@|[<>=!~]=?|===).*|;.*)?"),
        _always("a requirement as pip takes it, for example h5py==3.11.0"),
    ),
    "version": Kind(_matches(r"[0-9]+(\.[0-9]+){1,3}"), _always("a version such as 2.31.1")),
    "tags": Kind(
        _tags,
        _always(
            "at most 40 tags, names of 128 and values of 256 characters, no name that begins with aws: or trainium:"
        ),
    ),
    "reservation": Kind(
        _reservation,
        _always("either the id (cr-...) or the resource_group_arn of a capacity reservation, or a preference"),
    ),
    "prices": Kind(
        _numbers_by(r"[a-z][a-z0-9-]*\.[a-z0-9-]+"),
        _always("instance types with US dollars an hour, {trn1.32xlarge: 21.5}"),
    ),
    "space": Kind(_numbers_by(r"/.*"), _always("absolute paths with GiB, {/var: 2}")),
    "keys": Kind(
        lambda value, rule: isinstance(value, Mapping) and set(value) <= set(rule["known"]),
        lambda rule: f"no keys but {', '.join(rule['known'])}",
        frozenset({"known"}),
    ),
    "settings": Kind(_settings, _always("names of letters and digits with values on one line")),
    # Already decided by an expression of the table: the value is whether it may be so.
    "condition": Kind(lambda value, _rule: value is True or str(value).lower() == "true", _always("")),
}


def sentence_of(rule: Rule, wanted: str, value: str, host: str = "") -> str:
    """The rule's own sentence, or the usual one."""
    usual = f"{{variable}} {'has' if rule.get('each') else 'is'} '{{value}}'; use {{wanted}}."
    given = value or ("nothing" if "sentence" in rule else "")
    parts = {"variable": str(rule["variable"]), "value": given, "wanted": wanted, "host": host}
    text = str(rule.get("sentence") or usual)
    return re.sub(r"\{(variable|value|wanted|host)\}", lambda match: parts[match.group(1)], " ".join(text.split()))


def wanted_of(rule: Rule) -> str:
    """What a value of the rule has to be, as its sentence says it."""
    return str(rule.get("wanted") or KINDS[rule["kind"]].wanted(rule))


def refusal(rule: Rule, value: Any, host: str = "") -> str:
    """The sentence that refuses a value; '' where it may be so."""
    if rule.get("empty") and is_empty(value):
        return ""
    fits = KINDS[rule["kind"]].fits
    if not rule.get("each"):
        return "" if fits(value, rule) else sentence_of(rule, wanted_of(rule), shown(value), host)
    if not isinstance(value, (list, tuple)):
        return f"{rule['variable']} is '{shown(value)}'; use a list."
    wrong = next((one for one in value if not fits(one, rule)), None)
    return "" if wrong is None and None not in value else sentence_of(rule, wanted_of(rule), shown(wrong), host)
