"""What the benchmark process is asked of whole graphs: a plan, the program that it computes, and sources by kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from engine.codegen import KernelSource, is_generated, with_dependent_launch
from engine.ir.graph import Graph
from engine.ir.json_form import graph_to_json, grouping_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.channel import Message
from engine.measure.device import Schedules
from engine.measure.regimes import RegimeSettings
from engine.vocabulary import Failure, FailureKind, Schedule, Target

Render = Callable[[Kernel, Schedule, Target], KernelSource]
IllegalBecause = Callable[[Kernel, Schedule, Target], str | None]
Sources = Mapping[str, KernelSource]
"""By structural key; a library's call has none."""


def graph_sources(
    grouping: Grouping,
    schedules: Sequence[Schedules],
    target: Target,
    render: Render,
    illegal_because: IllegalBecause,
    *,
    pdl: bool,
) -> list[Sources] | Failure:
    """For each of `schedules` the texts of the plan's kernels, with `pdl` for programmatic dependent launch; or what is
    illegal. Raises KeyError for a kernel without schedule.
    """
    graphs: list[Sources] = []
    for one in schedules:
        sources: dict[str, KernelSource] = {}
        for key, (kernel, _) in grouping.kernel_counts().items():
            if reason := illegal_because(kernel, one[key], target):
                return Failure(FailureKind.ILLEGAL, reason)
            if is_generated(kernel):
                source = render(kernel, one[key], target)
                sources[key] = with_dependent_launch(source) if pdl else source
        graphs.append(sources)
    return graphs


def graph_request(
    grouping: Grouping, program: Graph | None, graphs: Sequence[Sources], settings: RegimeSettings
) -> Message:
    """The message but for its operation: one plan, to be built with each of `graphs`."""
    return {
        "id": 0,
        "grouping": grouping_to_json(grouping),
        "program": graph_to_json(program) if program is not None else "",
        "sources": [{key: source.to_json() for key, source in sources.items()} for sources in graphs],
        "regime": asdict(settings),
    }
