"""A kernel's body and a schedule in, Triton source out, as text: no torch, no triton, no database.

Every family is one object with its knobs, the forks it asks, the rules its schedules obey, and its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from engine.codegen import legality
from engine.codegen.attention import Attention
from engine.codegen.contraction import Contraction
from engine.codegen.dependent_launch import with_dependent_launch
from engine.codegen.extern import Extern
from engine.codegen.family import Family
from engine.codegen.machine_code import machine_code
from engine.codegen.pointwise import Pointwise
from engine.codegen.rowwise import Rowwise
from engine.codegen.source import CONTROLS_FOLDER, GLUON, Argument, KernelSource
from engine.codegen.space import ScheduleSpace
from engine.ir.kernel import Kernel
from engine.vocabulary import KnobValue, Schedule, Target

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (Contraction(), Attention(), Rowwise(), Pointwise(), Extern())}
)
"""Every family by the name that a kernel carries."""

_H200 = Target()


def schedule_space(kernel: Kernel, target: Target) -> ScheduleSpace:
    """The kernel's forks on `target`, as a tree that a search walks. Raises KeyError for an unknown family.

    Remembered, because who searches a kernel also lists its schedules, which is most of the work.
    """
    return _remembered_space(kernel, target)


@lru_cache(maxsize=64)
def _remembered_space(kernel: Kernel, target: Target) -> ScheduleSpace:
    return ScheduleSpace(FAMILIES[kernel.family], kernel, target)


def offered_schedules(kernel: Kernel, target: Target) -> Iterator[Schedule]:
    """Every schedule that the forks offer, in canonical order."""
    return schedule_space(kernel, target).offered()


def offered_assignments(kernel: Kernel, target: Target) -> Sequence[Mapping[str, KnobValue]]:
    """The knobs of every schedule that the forks offer, in canonical order."""
    return schedule_space(kernel, target).assignments()


def illegal_because(kernel: Kernel, schedule: Schedule, target: Target) -> str | None:
    """A full sentence why the schedule can't be built for the kernel, or None when it can. Takes any schedule."""
    family = FAMILIES.get(kernel.family)
    if family is None:
        return f"{kernel.family} is no kernel family; the families are {', '.join(FAMILIES)}."
    return legality.illegal_because(family, kernel, schedule, target)


def acf_of(schedule: Schedule) -> str:
    """The sha256 of the controls file that the schedule is assembled with; "" for none."""
    return str(schedule.as_dict().get(legality.ACF, ""))


def declined_because(kernel: Kernel) -> str | None:
    """A sentence why no schedule at all can be generated for the kernel's body, or None."""
    family = FAMILIES.get(kernel.family)
    if family is None:
        return f"{kernel.family} is no kernel family; the families are {', '.join(FAMILIES)}."
    return family.declined_because(kernel.body)


def unbuildable_because(kernel: Kernel, target: Target) -> str | None:
    """A sentence why nothing can be built for the kernel on `target`, or None: its body is declined, or none of its
    schedules fits the chip."""
    declined = declined_because(kernel)
    if declined is None and next(offered_schedules(kernel, target), None) is None:
        return "No schedule of it is legal on this chip."
    return declined


def is_generated(kernel: Kernel) -> bool:
    """Whether the kernel has a text of its own; one that hasn't is a library's call, and runs as that."""
    return kernel.family != Extern.name


def render(kernel: Kernel, schedule: Schedule, target: Target = _H200, *, pdl: bool = False) -> KernelSource:
    """The source of a legal schedule. `target` gives a persistent kernel its number of programs.

    With `pdl` it is fit for programmatic dependent launch (capability 90 and above). The controls that the schedule
    names change no text: they travel with the source to the assembler.
    """
    source = FAMILIES[kernel.family].render(kernel, schedule, target)
    if acf := acf_of(schedule):
        source = replace(source, acf=acf)
    return with_dependent_launch(source) if pdl else source


__all__ = [
    "CONTROLS_FOLDER",
    "FAMILIES",
    "GLUON",
    "Argument",
    "KernelSource",
    "acf_of",
    "declined_because",
    "illegal_because",
    "is_generated",
    "machine_code",
    "offered_assignments",
    "offered_schedules",
    "render",
    "schedule_space",
    "unbuildable_because",
    "with_dependent_launch",
]
