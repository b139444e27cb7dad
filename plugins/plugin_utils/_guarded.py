# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values of others as variables of hosts, none of which ever runs as a template."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ansible.utils.unsafe_proxy import wrap_var

try:  # ansible-core 2.19 and newer ask which values may be templates
    from ansible.template import trust_as_template
except ImportError:

    def trust_as_template(value: str) -> str:
        return value


# Of these are the marks of a template made, and the header "#jinja2:", which chooses other ones.
_OF_TEMPLATES = frozenset("{#")


def guarded(value: Any) -> Any:
    """Mark text that comes from AWS, where whoever may tag an instance chooses it, so that it never runs as a template.

    Text that has nothing of one stays plain: ansible-inventory --list then shows it as the string that it is. A key of
    that kind marks all that is beside it: ansible-core 2.17 and 2.18 look for marks in values alone.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        if any(isinstance(key, str) and not _OF_TEMPLATES.isdisjoint(key) for key in value):
            return wrap_var(value)
        return {key: guarded(item) for key, item in value.items()}
    return value


@lru_cache(maxsize=1024)  # Most of what a node has is as with the one before, and is kept once.
def _text(value: str) -> Any:
    return trust_as_template(value) if _OF_TEMPLATES.isdisjoint(value) else wrap_var(value)
