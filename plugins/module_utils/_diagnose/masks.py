# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Takes out of logs what must not be passed on: keys, tokens, passwords. Pure, and linear in the length of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "****"

_NAMED = re.compile(
    r"(secret[_-]?access[_-]?key|session[_-]?token|security[_-]token|x-amz-signature|x-amz-credential|api[_-]?key"
    r"|access[_-]?token|hf[_-]token|password|passwd|authorization)"
    r"([\"']?\s{0,3}[=:]\s{0,3}[\"']?)(?:bearer |basic )?[^\s\"'&,;]+",
    re.IGNORECASE,
)
# Other names only as programs write them, with = or in quotes: prose has "the token: ..." as well.
_WRITTEN = re.compile(
    r"(\b[a-z0-9_-]{0,40}(?:token|secret|auth)(?:[\"']\s{0,3}[=:]|\s{0,3}=)\s{0,3}[\"']?)[^\s\"'&,;]+", re.IGNORECASE
)
# The shapes of AWS's access keys, and of tokens of Hugging Face, GitHub, GitLab, Slack and of model services.
_SHAPED = re.compile(
    r"\b(?:A[KS]IA[A-Z0-9]{16}|hf_[A-Za-z0-9]{20,100}|gh[pousr]_[A-Za-z0-9]{20,100}|github_pat_[A-Za-z0-9_]{20,100}"
    r"|glpat-[A-Za-z0-9_-]{20,100}|xox[abeoprs]-[A-Za-z0-9-]{10,100}|sk-[A-Za-z0-9_-]{20,200}"
    r"|npm_[A-Za-z0-9]{20,100}|pypi-[A-Za-z0-9_-]{20,300}|hvs\.[A-Za-z0-9_-]{20,200}|eyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]{5,})"
)
# Who and with what in an address, such as that of an index: what stands between :// and the @ of its host.
# A password may have any sign that is none of a blank or a quote.
_ADDRESS = re.compile(r"(://)(?:[^\s/:@\"']{1,100}:[^\s\"']{1,500}|[^\s/@\"'?#]{1,500})@")
# The whole of the header, whatever kind of authorization it has.
_HEADER = re.compile(
    r"((?:proxy-)?authorization[\"']?\s{0,3}[=:]\s{0,3}|[a-z0-9-]{1,40}-token\s{0,3}:\s{0,3}).+", re.IGNORECASE
)
# A line of a private key, after what a log writes before each line; the last one may be shorter.
_OF_A_KEY = re.compile(r"(?:.*\s)?[A-Za-z0-9+/]{60,100}={0,2}\s*")
_LAST_OF_A_KEY = re.compile(r"(?:.*\s)?[A-Za-z0-9+/]{1,100}={0,2}\s*")


def masked(line: str) -> str:
    """A line with ``****`` for every secret that is known by its name or shape.

    >>> masked("export AWS_SECRET_ACCESS_KEY=abc HOME=/root")
    'export AWS_SECRET_ACCESS_KEY=**** HOME=/root'
    """
    line = _HEADER.sub(rf"\1{MASK}", line)
    named = _WRITTEN.sub(rf"\1{MASK}", _NAMED.sub(rf"\1\2{MASK}", line))
    return _ADDRESS.sub(rf"\1{MASK}@", _SHAPED.sub(MASK, named))


def masked_lines(lines: Iterable[str]) -> list[str]:
    """The lines, masked; of a private key only its first and last line are left."""
    result: list[str] = []
    inside = False
    for line in lines:
        ends = "-----END " in line
        if ends and not inside and "PRIVATE KEY" in line:
            # The end of a log may begin in the middle of a key.
            result = _without_end_of_key(result)
        inside = inside and not ends
        result.append(MASK if inside else masked(line))
        inside = inside or ("-----BEGIN " in line and "PRIVATE KEY" in line and not ends)
    return result


def _without_end_of_key(lines: list[str]) -> list[str]:
    """Lines before the last one of a private key, of which the first line is not there."""
    kept, known = len(lines), _LAST_OF_A_KEY
    while kept and known.fullmatch(lines[kept - 1]):
        kept, known = kept - 1, _OF_A_KEY
    return lines[:kept] + [MASK] * (len(lines) - kept)
