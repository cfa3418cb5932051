"""Whether a schedule can be built, and the sentence that says why not: one answer for offers, pins and imports."""

from __future__ import annotations

import re

from engine.codegen.family import Family, Rule, Values
from engine.ir.kernel import Kernel
from engine.knobs import KNOBS, WITHOUT_EFFECT
from engine.vocabulary import KnobValue, Schedule, Target

THREADS_OF_A_BLOCK = 1024
ACF = "ACF"
"""The knob that every generated kernel may have besides those of its family: which controls ptxas assembles with."""


def illegal_because(family: Family, kernel: Kernel, schedule: Schedule, target: Target) -> str | None:
    """A full sentence why `schedule` can't be built for `kernel` on `target`, or None when it can.

    Any schedule may be asked: one with missing, unknown or repeated knobs, values of a wrong type or outside the
    offered ones. A value outside the offered ones is legal when it breaks no law.
    """
    values = schedule.as_dict()
    if len(values) != len(schedule.knobs):
        return "The schedule names a knob twice."
    missing = [name for name in family.knobs if name not in values and not KNOBS[name].optional]
    if missing:
        return f"The schedule lacks {', '.join(missing)}, which every {family.name} kernel needs."
    assembled = family.name != "extern"
    unknown = [name for name in values if name not in family.knobs and not (assembled and name == ACF)]
    unknown = [name for name in unknown if WITHOUT_EFFECT.get(name) != values[name]]
    if unknown:
        return f"{unknown[0]} is no knob of a {family.name} kernel; its knobs are {', '.join(family.knobs)}."
    for name in family.knobs:
        reason = wrong_value(name, values.get(name, KNOBS[name].off))
        if reason:
            return reason
    if reason := wrong_controls(values.get(ACF, "")):
        return reason
    declined = family.declined_because(kernel.body)
    if declined:
        return declined
    return first_broken(tuple(rule for rule in family.rules(kernel, target) if rule.law), values)


def first_broken(rules: tuple[Rule, ...], values: Values) -> str | None:
    for rule in rules:
        reason = rule.broken(values)
        if reason:
            return reason
    return None


def wrong_value(name: str, value: KnobValue) -> str | None:
    """Whether a knob can hold the value at all: its type, its range, and a power of two where tiles need one."""
    knob = KNOBS[name]
    kind = type(knob.values[0])
    if type(value) is not kind:
        return f"{name} is {_kind_text(kind)}, not {value!r}."
    if kind is not int:
        return None if value in knob.values else f"{name} is one of {', '.join(map(repr, knob.values))}, not {value!r}."
    number = int(value)
    if value == knob.off:
        return None
    if name == "NUM_WARPS" and number * 32 > THREADS_OF_A_BLOCK:
        return f"NUM_WARPS={number} is {number * 32} threads, and a block has at most {THREADS_OF_A_BLOCK}."
    if number < 1 or number > 65536:
        return f"{name}={number} is outside 1 to 65536."
    if name in ("NUM_STAGES", "GROUP_M"):
        return f"NUM_STAGES={number} is more than 16." if name == "NUM_STAGES" and number > 16 else None
    return None if number & (number - 1) == 0 else f"{name}={number} is no power of two."


def wrong_controls(value: KnobValue) -> str | None:
    """Whether a value can name a controls file: the 64 hex digits of a sha256, or nothing for none."""
    if isinstance(value, str) and (not value or re.fullmatch(r"[0-9a-f]{64}", value)):
        return None
    return f"ACF is the sha256 of a controls file, 64 hex digits, or empty for none, not {value!r}."


def _kind_text(kind: type) -> str:
    return {int: "a whole number", bool: "true or false", str: "a text"}[kind]
