"""The forks of the programs whose groupings were measured: their recordings replay only while these stand.

A digest covers every question, every option and the whole plan at the end of every path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from engine.grouping import grouping_space
from engine.ir import Graph
from engine.ir.json_form import grouping_to_json
from tests.codegen.bodies import matmul, rms_norm, softmax
from tests.grouping.test_space import all_paths
from tests.ir.graphs import linear_gelu

PROGRAMS: dict[str, Callable[[], Graph]] = {
    "matmul": lambda: matmul(4096, 4096, 4096, "bfloat16"),
    "linear_bias_gelu": lambda: linear_gelu(4096, 4096, 1024),
    "rms_norm": lambda: rms_norm(16384, 4096, "bfloat16"),
    "softmax": lambda: softmax((16384,), 4096, "bfloat16"),
}


def digest(graph: Graph) -> str:
    space = grouping_space(graph)
    found = []
    for path in sorted(all_paths(space), key=str):
        forks = [space.fork(path[:i]) for i in range(len(path))]
        asked = [f"{fork.name}: {' | '.join(map(str, fork.options))}" for fork in forks if fork is not None]
        found.append(f"{asked} {[str(option) for option in path]} {grouping_to_json(space.grouping(path))}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "paths", "expected"),
    [
        ("matmul", 1, "b85902dd4b4f7fd4"),
        ("linear_bias_gelu", 2, "fd9f8b92ff1f89f9"),
        ("rms_norm", 4, "04499168433371e2"),
        ("softmax", 13, "07a83e526ad93f6e"),
    ],
)
def test_forks_of_a_measured_program_stand(name: str, paths: int, expected: str) -> None:
    graph = PROGRAMS[name]()
    assert len(all_paths(grouping_space(graph))) == paths
    assert digest(graph) == expected


def test_first_questions_of_the_measured_programs() -> None:
    first = {name: grouping_space(graph()).fork(()) for name, graph in PROGRAMS.items()}
    assert {name: fork.name if fork else None for name, fork in first.items()} == {
        "matmul": None,
        "linear_bias_gelu": "FUSE_EPILOGUE_0",
        "rms_norm": "FUSE_ROWWISE_0",
        "softmax": "FUSE_ROWWISE_0",
    }
