# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Apt's sources as text: which entries name a repository, and what is left of a file without them.

Apt reads no source at all where two entries of one repository differ in ``Signed-By``. The formats are those of
sources.list(5): one entry a line, or paragraphs of fields (deb822) in files that end in ``.sources``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# deb [options] URI suite components; an option's value holds no bracket.
LINE = re.compile(r"^\s*deb(-src)?\s+(\[[^\]]*\]\s+)?(?P<uri>\S+)\s")
# A field goes on in lines that begin with a space, between which there may be comments.
FIELD = re.compile(r"^uris[ \t]*:(?P<words>.*(?:\n(?:#.*\n)*[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


def without(text: str, uris: Iterable[str], paragraphs: bool) -> str:
    """``text`` without the entries of these repositories; '' if no other entry is left in it."""
    unwanted = {_plain(uri) for uri in uris}
    left = _paragraphs_without(text, unwanted) if paragraphs else _lines_without(text, unwanted)
    if left == text:
        return text
    entries = FIELD.pattern if paragraphs else LINE.pattern
    return left if re.search(entries, left, re.MULTILINE | re.IGNORECASE) else ""


def _plain(uri: str) -> str:
    """Apt takes no notice of a slash at the end."""
    return uri.rstrip("/")


def _lines_without(text: str, unwanted: set[str]) -> str:
    kept = []
    for line in text.splitlines(keepends=True):
        entry = LINE.match(line)
        if not (entry and _plain(entry["uri"]) in unwanted):
            kept.append(line)
    return "".join(kept)


def _paragraphs_without(text: str, unwanted: set[str]) -> str:
    """A paragraph of several repositories keeps the others."""
    kept = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", text):
        fields = "\n".join(field["words"] for field in FIELD.finditer(paragraph))
        uris = [uri for line in fields.split("\n") if not line.startswith("#") for uri in line.split()]
        others = [uri for uri in uris if _plain(uri) not in unwanted]
        if len(others) == len(uris):
            kept.append(paragraph)
        elif others:
            line = f"URIs: {' '.join(others)}"
            kept.append(FIELD.sub(lambda _field, line=line: line, paragraph))
    return "\n\n".join(kept)
