"""Elastic IPs from a documentation range (RFC 5737), which the sandbox routes to its hosts; stock moto gives 127.x."""

from __future__ import annotations

import itertools

import moto.ec2.models.elastic_ip_addresses as eip_models

_numbers = itertools.count()


def _next_address() -> str:
    return f"198.51.100.{1 + next(_numbers) % 254}"


def install() -> None:
    eip_models.random_ip = _next_address
