"""Everything that touches torch or triton to make a kernel run: compile, launch, capture, check against a reference.

Names are resolved on first use, so that a compile process never loads torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.runtime.assemble import AssembledPlan, assemble_plan, empty_buffer
    from engine.runtime.assembling import assembling_with
    from engine.runtime.cases import (
        Case,
        elsewhere,
        is_intact,
        overwrite_inputs,
        prepare_case,
        prepare_plan_case,
        references_for,
        repair,
    )
    from engine.runtime.ceilings import measure_ceilings, stream_launch
    from engine.runtime.comparison import compare, poison
    from engine.runtime.compile import BuildError, CompiledSource, compile_source
    from engine.runtime.cuda_graph import (
        TimingPlan,
        expected_ms,
        probe_us,
        quantiles,
        replayed,
        time_in_turns,
        time_launches,
    )
    from engine.runtime.driver import pci_bus_id
    from engine.runtime.failures import DiskFull, failure_of, no_space, one_line
    from engine.runtime.flush import Flush
    from engine.runtime.inputs import make_inputs
    from engine.runtime.interpret import interpret_plan, interprets
    from engine.runtime.launch import (
        Launch,
        allow_scratch_memory,
        bind_extern,
        bind_launch,
        load_launcher,
        registers_and_spills,
    )
    from engine.runtime.memory import free_memory, whole_storage
    from engine.runtime.profiled import launch_profiled
    from engine.runtime.reference import evaluate
    from engine.runtime.toolchain import load_ahead, read_context, read_target
    from engine.runtime.usable import context_is_sound, describe_unusable

__all__ = [
    "AssembledPlan",
    "BuildError",
    "Case",
    "CompiledSource",
    "DiskFull",
    "Flush",
    "Launch",
    "TimingPlan",
    "allow_scratch_memory",
    "assemble_plan",
    "assembling_with",
    "bind_extern",
    "bind_launch",
    "compare",
    "compile_source",
    "context_is_sound",
    "describe_unusable",
    "elsewhere",
    "empty_buffer",
    "evaluate",
    "expected_ms",
    "failure_of",
    "free_memory",
    "interpret_plan",
    "interprets",
    "is_intact",
    "launch_profiled",
    "load_ahead",
    "load_launcher",
    "make_inputs",
    "measure_ceilings",
    "no_space",
    "one_line",
    "overwrite_inputs",
    "pci_bus_id",
    "poison",
    "prepare_case",
    "prepare_plan_case",
    "probe_us",
    "quantiles",
    "read_context",
    "read_target",
    "references_for",
    "registers_and_spills",
    "repair",
    "replayed",
    "stream_launch",
    "time_in_turns",
    "time_launches",
    "whole_storage",
]

_FILES = {
    "AssembledPlan": "assemble",
    "BuildError": "compile",
    "Case": "cases",
    "CompiledSource": "compile",
    "DiskFull": "failures",
    "Flush": "flush",
    "Launch": "launch",
    "TimingPlan": "cuda_graph",
    "allow_scratch_memory": "launch",
    "assemble_plan": "assemble",
    "assembling_with": "assembling",
    "bind_extern": "launch",
    "bind_launch": "launch",
    "compare": "comparison",
    "compile_source": "compile",
    "context_is_sound": "usable",
    "describe_unusable": "usable",
    "elsewhere": "cases",
    "evaluate": "reference",
    "expected_ms": "cuda_graph",
    "empty_buffer": "assemble",
    "failure_of": "failures",
    "free_memory": "memory",
    "interpret_plan": "interpret",
    "interprets": "interpret",
    "is_intact": "cases",
    "launch_profiled": "profiled",
    "load_ahead": "toolchain",
    "load_launcher": "launch",
    "make_inputs": "inputs",
    "measure_ceilings": "ceilings",
    "no_space": "failures",
    "one_line": "failures",
    "overwrite_inputs": "cases",
    "pci_bus_id": "driver",
    "poison": "comparison",
    "prepare_case": "cases",
    "prepare_plan_case": "cases",
    "probe_us": "cuda_graph",
    "quantiles": "cuda_graph",
    "read_context": "toolchain",
    "read_target": "toolchain",
    "references_for": "cases",
    "repair": "cases",
    "replayed": "cuda_graph",
    "registers_and_spills": "launch",
    "stream_launch": "ceilings",
    "time_in_turns": "cuda_graph",
    "time_launches": "cuda_graph",
    "whole_storage": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'engine.runtime' has no attribute {name!r}")
    return getattr(importlib.import_module(f"engine.runtime.{_FILES[name]}"), name)
