"""Small files of other tuners, as data that a test changes and writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

POINTS: list[tuple[dict[str, Any], Any]] = [
    ({"block": 16, "unroll": True, "ratio": 0.5, "layout": "NHWC"}, 2.0),
    ({"block": 32, "unroll": True, "ratio": 0.5, "layout": "NHWC"}, 1.5),
    ({"block": 32, "unroll": False, "ratio": 0.25, "layout": "NCHW"}, "RuntimeFailedConfig"),
    ({"block": 64, "unroll": False, "ratio": 0.25, "layout": "NCHW"}, "CompilationFailedConfig"),
    ({"block": 64, "unroll": True, "ratio": 0.25, "layout": "NCHW"}, "InvalidConfig"),
]
STAMP = "2023-12-22 09:53:48.691683+00:00"
VALIDITY = {
    "RuntimeFailedConfig": "runtime",
    "CompilationFailedConfig": "compile",
    "InvalidConfig": "constraints",
}


def cache(points: list[tuple[dict[str, Any], Any]] | None = None) -> dict[str, Any]:
    """A Kernel Tuner cache."""
    points = POINTS if points is None else points
    entries = {
        ",".join(map(str, knobs.values())): {
            **knobs,
            "time": time,
            "times": [time, time * 1.1] if isinstance(time, float) else [],
            "compile_time": 892.0,
            "benchmark_time": 190.0,
            "timestamp": STAMP,
        }
        for knobs, time in points
    }
    return {
        "device_name": "NVIDIA RTX A4000",
        "kernel_name": "stencil",
        "problem_size": [128, 64],
        "tune_params_keys": list(POINTS[0][0]),
        "objective": "time",
        "cache": entries,
    }


def t4(unit: str = "miliseconds") -> dict[str, Any]:
    """The same points as a T4 file."""
    results = [
        {
            "timestamp": STAMP,
            "configuration": knobs,
            "times": {"compilation": 892.0, "runtimes": [time, time * 1.1]} if isinstance(time, float) else {},
            "invalidity": VALIDITY.get(str(time), "correct"),
            "correctness": int(isinstance(time, float)),
            "measurements": [{"name": "time", "value": time, "unit": ""}],
            "objectives": ["time"],
        }
        for knobs, time in POINTS
    ]
    return {"metadata": {"timeunit": unit}, "results": results, "schema_version": "1.0.0"}


def written(path: Path, document: object) -> Path:
    """The document as JSON, packed if the name says so."""
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
