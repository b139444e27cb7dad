#!/bin/sh
"""'exec python3 "$0" "$@" #"""
# Stand-in for neuron-monitor-prometheus.py: reads neuron-monitor's reports and shows them to Prometheus under the
# real names. As the real one it listens on every address, and it does not notice when neuron-monitor has ended.

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from prometheus_client import Counter, Gauge, Info, start_http_server  # type: ignore[import-not-found]

Sample = tuple[str, dict[str, Any], float]
INSTANCE = {
    "instance_name": "instance_name",
    "instance_id": "instance_id",
    "instance_type": "instance_type",
    "availability_zone": "instance_availability_zone",
    "region": "instance_region",
    "subnet_id": "subnet_id",
}


def of_runtime(report: dict[str, Any]) -> Iterator[Sample]:
    for core, counters in report.get("neuroncore_counters", {}).get("neuroncores_in_use", {}).items():
        yield "neuroncore_utilization_ratio", {"neuroncore": core}, counters["neuroncore_utilization"] / 100
    used = report.get("memory_used", {}).get("neuron_runtime_used_bytes", {})
    for place in ("host", "neuron_device"):
        if place in used:
            yield "neuron_runtime_memory_used_bytes", {"memory_location": place}, used[place]
    for core, kinds in used.get("usage_breakdown", {}).get("neuroncore_memory_usage", {}).items():
        for kind, size in kinds.items():
            yield f"neuroncore_memory_usage_{kind}", {"neuroncore": core, "memory_location": None}, size
    for kind, percent in report.get("neuron_runtime_vcpu_usage", {}).get("vcpu_usage", {}).items():
        yield "neuron_runtime_vcpu_usage_ratio", {"usage_type": kind}, percent / 100
    stats = report.get("execution_stats", {})
    for kind, count in stats.get("error_summary", {}).items():
        yield "execution_errors_total", {"error_type": kind}, count
    for kind, count in stats.get("execution_summary", {}).items():
        yield "execution_status_total", {"status_type": kind}, count
    for percentile, latency in stats.get("latency_stats", {}).get("total_latency", {}).items():
        yield "execution_latency_seconds", {"percentile": percentile}, latency


def of_system(data: dict[str, Any]) -> Iterator[Sample]:
    for name, size in data.get("memory_info", {}).items():
        if name.endswith("_bytes"):
            yield f"system_{name}", {}, size
    for device in data.get("neuron_hw_counters", {}).get("neuron_devices", []):
        for name in ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected"):
            labels = {"event_type": name, "neuron_device_index": device["neuron_device_index"]}
            yield "hardware_ecc_events_total", labels, device[name]
    usage = data.get("vcpu_usage", {})
    if usage:
        yield "system_vcpu_count", {}, len(usage["usage_data"])
        yield "system_vcpu_usage_ratio", {"usage_type": "user"}, usage["average_usage"]["user"] / 100


class Board:
    """All metrics by name, made when they are first seen."""

    def __init__(self) -> None:
        self.metrics: dict[str, Any] = {}

    def show(self, sample: Sample, common: dict[str, str]) -> None:
        name, own, value = sample
        labels = {**common, **own}
        counts = name.startswith(("execution_errors", "execution_status", "hardware_ecc"))
        if name not in self.metrics:
            self.metrics[name] = (Counter if counts else Gauge)(name, "simulated", labels.keys())
        metric = self.metrics[name].labels(**labels)
        (metric.inc if counts else metric.set)(value)

    def info(self, name: str, fields: dict[str, Any]) -> None:
        if name not in self.metrics:
            self.metrics[name] = Info(name, "simulated")
        self.metrics[name].info({key: str(value) for key, value in fields.items()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="neuron-monitor-prometheus.py")
    parser.add_argument("-p", "--port", type=int, default=8000)
    start_http_server(parser.parse_args().port)
    board = Board()
    while True:
        line = sys.stdin.readline()
        if not line:
            continue
        report = json.loads(line)
        common = {label: report["instance_info"][field] for label, field in INSTANCE.items()}
        hardware = {key: value for key, value in report["neuron_hardware_info"].items() if key != "error"}
        board.info("instance", common)
        board.info("neuron_hardware", {**common, **hardware})
        for runtime in report["neuron_runtime_data"]:
            for sample in of_runtime(runtime["report"]):
                board.show(sample, {**common, "runtime_tag": runtime["neuron_runtime_tag"]})
        for sample in of_system(report["system_data"]):
            board.show(sample, common)


if __name__ == "__main__":
    main()
