"""A module's main in this process, where what it asks can be replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def ended(
    main: Callable[[], None], arguments: Mapping[str, Any], capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], Any]:
    """What the module printed, and what it ended with: None or 0 for success."""
    with patch_module_args(dict(arguments)), pytest.raises(SystemExit) as end:
        main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result, end.value.code


def told(answer: Any) -> Any:
    """An answer, or the error that it is."""
    if isinstance(answer, Exception):
        raise answer
    return answer
