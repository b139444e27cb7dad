"""Stand-in for neuron-monitor: a report a period on the simulated devices of the host, one JSON document a line.

The shape is that of the real one; the load in it is made up, and the tag of the one process says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, "/usr/local/lib/sandbox")
from devices import neuron_devices

TAG = "simulated"
RUNTIME_METRICS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
SYSTEM_METRICS = ("vcpu_usage", "memory_info", "neuron_hw_counters")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
MEMORY_KINDS = ("constants", "model_code", "model_shared_scratchpad", "runtime_memory", "tensors")


def seconds(period: str) -> float:
    """``5s`` or ``1m`` in seconds."""
    number = period.rstrip("hms")
    return float(number) * UNITS[period[len(number) :]]


def wave(core: int) -> float:
    """A load between 5 and 95 percent that goes up and down in a minute, each core a little later."""
    return round(50 + 45 * math.sin(time.time() / 60 * 2 * math.pi + core), 3)


def runtime(devices: list[dict[str, Any]], groups: set[str], period: float) -> dict[str, Any]:
    cores = sum(device["nc_count"] for device in devices)
    share = devices[0]["memory_size"] // devices[0]["nc_count"] // 8
    usage = {str(core): dict.fromkeys(MEMORY_KINDS, 0) | {"tensors": share} for core in range(cores)}
    outcomes = ("completed_with_err", "completed_with_num_err", "timed_out", "incorrect_input", "failed_to_queue")
    errors = ("generic", "numerical", "transient", "model", "runtime", "hardware")
    latency = {f"p{percent}": 0.02 + percent / 10000 for percent in (0, 1, 25, 50, 75, 99, 100)}
    report: dict[str, dict[str, Any]] = {
        "execution_stats": {
            "error_summary": dict.fromkeys(errors, 0),
            "execution_summary": {"completed": int(period * 40), **dict.fromkeys(outcomes, 0)},
            "latency_stats": {"total_latency": latency, "device_latency": latency},
        },
        "memory_used": {
            "neuron_runtime_used_bytes": {
                "host": 2**28,
                "neuron_device": share * cores,
                "usage_breakdown": {
                    "host": {"application_memory": 2**27, "constants": 0, "dma_buffers": 2**27, "tensors": 0},
                    "neuroncore_memory_usage": usage,
                },
            },
            "loaded_models": [],
        },
        "neuron_runtime_vcpu_usage": {"vcpu_usage": {"user": 3.0, "system": 1.0}},
        "neuroncore_counters": {
            "neuroncores_in_use": {str(core): {"neuroncore_utilization": wave(core)} for core in range(cores)}
        },
    }
    chosen = {name: {"period": period, **group, "error": ""} for name, group in report.items() if name in groups}
    return {"pid": os.getpid(), "neuron_runtime_tag": TAG, "error": "", "report": chosen}


def system(devices: list[dict[str, Any]], groups: set[str], period: float) -> dict[str, Any]:
    lines = (line.split() for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    memory = {words[0]: int(words[1]) * 1024 for words in lines}
    counters = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_uncorrected", "sram_ecc_corrected")
    busy = min(100.0, os.getloadavg()[0] / (os.cpu_count() or 1) * 100)
    usage = {"user": busy, "nice": 0, "system": 0, "idle": 100 - busy, "io_wait": 0, "irq": 0, "soft_irq": 0}
    data: dict[str, dict[str, Any]] = {
        "memory_info": {
            "memory_total_bytes": memory["MemTotal:"],
            "memory_used_bytes": memory["MemTotal:"] - memory["MemAvailable:"],
            "swap_total_bytes": memory["SwapTotal:"],
            "swap_used_bytes": memory["SwapTotal:"] - memory["SwapFree:"],
        },
        "neuron_hw_counters": {
            "neuron_devices": [
                {"neuron_device_index": device["neuron_device"], **dict.fromkeys(counters, 0)} for device in devices
            ]
        },
        "vcpu_usage": {
            "average_usage": usage,
            "usage_data": {str(cpu): usage for cpu in range(os.cpu_count() or 1)},
            "context_switch_count": 0,
        },
    }
    return {name: {"period": period, **group, "error": ""} for name, group in data.items() if name in groups}


def report(configuration: dict[str, Any], period: float) -> dict[str, Any]:
    devices = neuron_devices()
    wanted = configuration.get("neuron_runtimes", [{"metrics": [{"type": name} for name in RUNTIME_METRICS]}])
    runtimes = [
        runtime(devices, {metric["type"] for metric in entry["metrics"]}, period) for entry in wanted if devices
    ]
    metrics = configuration.get("system_metrics", [{"type": name} for name in SYSTEM_METRICS])
    file = Path("/seed/instance-type")
    place = ("instance_id", "instance_availability_zone", "instance_region", "ami_id", "subnet_id", "error")
    return {
        "simulated": True,
        "neuron_runtime_data": runtimes,
        "system_data": system(devices, {metric["type"] for metric in metrics}, period),
        "instance_info": {
            "instance_name": TAG,
            "instance_type": file.read_text(encoding="utf-8").strip() if file.exists() else "",
            **dict.fromkeys(place, ""),
        },
        "neuron_hardware_info": {
            "neuron_device_type": TAG,
            "neuron_device_count": len(devices),
            "neuroncore_per_device_count": devices[0]["nc_count"] if devices else 0,
            "neuron_device_memory_size": devices[0]["memory_size"] if devices else 0,
            "error": "" if devices else "no neuron device found",
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="neuron-monitor")
    parser.add_argument("--verbose", type=int, default=0)
    parser.add_argument("-c", "--config-file", type=Path)
    file = parser.parse_args().config_file
    configuration = json.loads(file.read_text(encoding="utf-8")) if file else {}
    period = seconds(configuration.get("period", "5s"))
    while True:
        print(json.dumps(report(configuration, period)), flush=True)
        time.sleep(period)


if __name__ == "__main__":
    sys.exit(main())
