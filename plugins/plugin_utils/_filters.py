# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a filter refuses: a value of another type, and what a subject finds wrong, as one sentence. Private."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, Union, cast

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

Function = TypeVar("Function", bound=Callable[..., Any])


def is_listed(value: Any) -> bool:
    """Whether a value is a list, a tuple or what Jinja makes of one."""
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes, Mapping))


def takes(
    kind: Union[type, tuple[type, ...], Callable[[Any], bool]],  # noqa: UP007 - Python 3.9
    what: str,
) -> Callable[[Function], Function]:
    """A filter of values of one ``kind``: types, or what tells; ``what`` is what to give instead."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def wrapper(value: Any, *args: Any, **kwargs: Any) -> Any:
            if not (isinstance(value, kind) if isinstance(kind, (type, tuple)) else kind(value)):
                raise AnsibleFilterError(f"{function.__name__} needs {what}, not {type(value).__name__}.")
            try:
                return function(value, *args, **kwargs)
            except (TrainiumError, ValueError) as error:
                raise AnsibleFilterError(f"{function.__name__}: {str(error).rstrip('.')}.") from None

        return cast(Function, wrapper)

    return decorate


def filter_module(*functions: Callable[..., Any]) -> type:
    """What Ansible loads from a file with these filters, which are called as the functions are."""
    found = {function.__name__: function for function in functions}
    return type("FilterModule", (), {"filters": lambda _self: found})
