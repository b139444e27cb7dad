"""Quotas of EC2 in vCPUs and of Elastic IPs, shown by Service Quotas and enforced by RunInstances and AllocateAddress;
stock moto knows those of VPC."""

from __future__ import annotations

import json
import re
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.servicequotas.models import ServiceQuotasBackend
from moto.servicequotas.responses import ServiceQuotasResponse

from sandbox.emulator.errors import refuse
from sandbox.emulator.state import QUOTAS

# Families of types -> (name, code of the on-demand quota, code of the spot quota).
FAMILIES = {
    "trn": ("Trn", "L-2C3B7624", "L-6B0D517C"),
    "inf": ("Inf", "L-1945791B", "L-B5D1601B"),
    "p": ("P", "L-417A185B", "L-7212CCBC"),
    "": ("Standard (A, C, D, H, I, M, R, T, Z)", "L-1216C47A", "L-34B43A08"),
}
ADDRESSES = "L-0263D0A3"
PAGE = 4
DEFAULT = 1_000_000.0  # an account that AWS has been asked to raise

_stock_list = ServiceQuotasBackend.list_aws_default_service_quotas
_stock_get = ServiceQuotasBackend.get_service_quota


def _family(kind: str) -> tuple[str, str, str]:
    """trn1n.32xlarge belongs to trn, p5en.48xlarge to p."""
    letters = re.match(r"[a-z]*", kind)
    return FAMILIES.get(letters.group() if letters else "", FAMILIES[""])


def check(backend: Any, kind: str, count: int, market: str | None) -> None:
    """Refuse a launch beyond the quota. Capacity blocks have none."""
    if market == "capacity-block":
        return
    family = _family(kind)
    limit = QUOTAS.get(family[2 if market == "spot" else 1], DEFAULT)
    used = sum(
        getattr(instance, "vcpus", 0)
        for reservation in backend.reservations.values()
        for instance in reservation.instances
        if instance._state.name in ("pending", "running")
        and (instance.lifecycle == "spot") == (market == "spot")
        and _family(instance.instance_type) == family
    )
    wanted = count * INSTANCE_TYPES.get(kind, {}).get("VCpuInfo", {}).get("DefaultVCpus", 0)
    if used + wanted > limit:
        code = "MaxSpotInstanceCountExceeded" if market == "spot" else "VcpuLimitExceeded"
        refuse(
            code,
            f"You have requested more vCPU capacity than your current vCPU limit of {int(limit)} allows for the "
            "instance bucket that the specified instance type belongs to.",
        )


def check_addresses(count: int) -> None:
    """Refuse one more Elastic IP than the quota has."""
    if count >= QUOTAS.get(ADDRESSES, DEFAULT):
        refuse("AddressLimitExceeded", "The maximum number of addresses has been reached.")


def _quotas() -> list[dict[str, Any]]:
    titles = {}
    for name, on_demand, spot in FAMILIES.values():
        titles[on_demand] = f"Running On-Demand {name} instances"
        titles[spot] = f"All {name} Spot Instance Requests"
    titles[ADDRESSES] = "EC2-VPC Elastic IPs"
    return [
        {
            "ServiceCode": "ec2",
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaCode": code,
            "QuotaName": title,
            "Value": QUOTAS.get(code, DEFAULT),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }
        for code, title in sorted(titles.items(), key=lambda item: item[1])
    ]


def _list(self: Any, service_code: str) -> list[dict[str, Any]]:
    if service_code == "ec2":
        return _quotas()
    stock: list[dict[str, Any]] = _stock_list(self, service_code)
    return stock


def _get(self: Any, service_code: str, quota_code: str) -> dict[str, Any]:
    for quota in _quotas() if service_code == "ec2" else ():
        if quota["QuotaCode"] == quota_code:
            return quota
    stock: dict[str, Any] = _stock_get(self, service_code, quota_code)
    return stock


def _page(quotas: list[dict[str, Any]], response: ServiceQuotasResponse) -> str:
    start = int(json.loads(response.body).get("NextToken") or 0)
    more = {"NextToken": str(start + PAGE)} if start + PAGE < len(quotas) else {}
    return json.dumps({"Quotas": quotas[start : start + PAGE], **more})


def _list_defaults(self: ServiceQuotasResponse) -> str:
    code = str(json.loads(self.body).get("ServiceCode"))
    return _page(self.backend.list_aws_default_service_quotas(code), self)


def _list_applied(self: ServiceQuotasResponse) -> str:
    """Only those with a value of the account's own: "If the applied quota value is not available for a quota, the quota
    is not retrieved" (API reference, ListServiceQuotas)."""
    code = str(json.loads(self.body).get("ServiceCode"))
    quotas = self.backend.list_aws_default_service_quotas(code)
    return _page([quota for quota in quotas if code != "ec2" or quota["QuotaCode"] in QUOTAS], self)


def install() -> None:
    ServiceQuotasBackend.list_aws_default_service_quotas = _list
    ServiceQuotasBackend.get_service_quota = _get
    ServiceQuotasResponse.list_service_quotas = _list_applied
    ServiceQuotasResponse.list_aws_default_service_quotas = _list_defaults
    ServiceQuotasResponse.get_aws_default_service_quota = ServiceQuotasResponse.get_service_quota
