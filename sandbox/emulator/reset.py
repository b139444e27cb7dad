"""A reset forgets every backend; stock moto makes each anew before, with its default VPC or policies, for nothing."""

from __future__ import annotations

from typing import Any

from moto.core.base_backend import AccountSpecificBackend, BaseBackend

_regions = AccountSpecificBackend._generate_regions


def _reset(self: Any) -> None:
    """BackendDict.reset, which calls this, forgets the backend right after; those with files close them themselves."""


def _regions_of(self: Any, service: str) -> list[str]:
    """Asked of botocore once; stock moto does so for every account again."""
    return list(_regions(None, service))


def install() -> None:
    BaseBackend.reset = _reset
    AccountSpecificBackend._generate_regions = _regions_of
