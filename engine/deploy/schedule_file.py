"""Schedules as one JSON file that another machine reads: what was chosen for which kernel, and what says so.

The format, version 1. Times are in us, sizes in bytes, moments in seconds since 1970 (UTC); a key that may be absent
is marked with ?, and unknown keys are ignored.

    {"format": "emmy schedules", "version": 1, "emmy": product version, "command": what wrote the file, "at": moment,
     "reproduce": [command, ...],                       what measures each again, then the runs that tuned them
     "contexts": {name: {"gpu", "capability", "driver", "torch", "triton", "ptxas", "cold_l2", "target"?: {...}}},
     "kernels": {structural key: {"label", "shape", "body": {...}}},  the body is enough to tune the kernel again
     "controls"?: {hash: name},                         controls files that schedules name; their bytes stay behind
     "schedules": [{"kernel": key, "context": name, "schedule": {knob: value},
                    "acf": hash of the controls file, "" = none,
                    "pin"?: {"author", "at", "note"},
                    "evidence": [{"regime", "us", "low_us", "high_us", "samples": [...], "error"?, "registers"?,
                                  "spills"?, "shared_bytes"?, "at"?: moment}]}],
     "graphs"?: [{"context": name, "program": {...}, "plan": {...},     a program's fastest whole graph there
                  "schedules": {kernel key: {knob: value}}, "pdl": whether launches depend on each other,
                  "us", "low_us", "high_us", "samples": [...], "error"?, "sum_us"?,
                  "known_until": moment}]}                              what was measured by then was known to it

Reading verifies: a body is parsed as data and must be the kernel of its key, a context that of its name, a time a
number above zero. Nothing of a file is executed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from engine.codegen import acf_of
from engine.ir import GraphError
from engine.ir.json_form import (
    grouping_from_json,
    grouping_to_json,
    kernel_from_json,
    kernel_to_json,
    program_from_json,
    program_to_json,
)
from engine.ir.kernel import Kernel
from engine.plain_json import plain_json
from engine.store import CarriedGraph, StoreError
from engine.vocabulary import BuildReport, Context, Measurement, Pin, Regime, Schedule, Status, Target, Timing

FORMAT = "emmy schedules"
VERSION = 1
MAX_SCHEDULES = 100_000


class BadScheduleFile(StoreError):
    """The file holds no schedules that can be read; the text says why."""


@dataclass(frozen=True, slots=True)
class FileSchedule:
    """One schedule of a file. `pin` is None unless it was pinned there; `evidence` are ok results in its context, and
    `taken` says when, in seconds since 1970, by regime."""

    kernel_key: str
    schedule: Schedule
    context: Context
    pin: Pin | None
    evidence: tuple[Measurement, ...]
    taken: Mapping[Regime, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """Everything a file says. `targets` are the chips of the contexts that name one, by context key.

    `controls` names the controls files of ptxas by their hash; the bytes are their owner's and stay where they are.
    `unread` are sentences on kernels whose bodies are not what their keys say, whose schedules are left out, and on
    graphs that can't be read.
    """

    kernels: Mapping[str, Kernel]
    schedules: tuple[FileSchedule, ...]
    targets: Mapping[str, Target]
    reproduce: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    controls: Mapping[str, str] = field(default_factory=dict)
    graphs: tuple[CarriedGraph, ...] = ()


def schedule_file_text(content: ScheduleFile, *, emmy: str, command: str, at: float) -> str:
    """The file's text."""
    contexts = {one.context.key: one.context for one in content.schedules}
    data = {
        "format": FORMAT,
        "version": VERSION,
        "emmy": emmy,
        "command": command,
        "at": at,
        "reproduce": list(content.reproduce),
        "contexts": {key: _context_data(context, content.targets.get(key)) for key, context in contexts.items()},
        "kernels": {
            key: {"label": kernel.label, "shape": kernel.shape_text, "body": json.loads(kernel_to_json(kernel))}
            for key, kernel in content.kernels.items()
        },
        **({"controls": dict(content.controls)} if content.controls else {}),
        "schedules": [_schedule_data(one) for one in content.schedules],
        **({"graphs": [_graph_data(one) for one in content.graphs]} if content.graphs else {}),
    }
    return plain_json(data, indent=1) + "\n"


def is_schedule_file(document: object) -> bool:
    """Whether a JSON document says that it is one, of whatever version."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_schedule_file(document: Mapping[str, Any], name: str) -> ScheduleFile:
    """Parse and verify a document; `name` is the file's, for sentences. Raises BadScheduleFile."""
    version = document.get("version")
    if type(version) is not int:
        said = (
            "names no version" if version is None else f"names as its version {str(version)[:40]!r}, which is no number"
        )
        raise BadScheduleFile(f"{name} {said}: it was edited; export it again")
    if version != VERSION:
        way = "upgrade emmy-tui" if version > VERSION else "no Emmy wrote such a file; export it again"
        raise BadScheduleFile(f"{name} is of version {version}, and this Emmy reads version {VERSION}: {way}")
    try:
        return _file(document)
    except BadScheduleFile as error:
        raise BadScheduleFile(f"{name} is not imported: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        what = _what(error)
        raise BadScheduleFile(f"{name} is not imported: it is no sound file of schedules ({what})") from None


def _what(error: Exception) -> str:
    """What is wrong with a document, for people: Python's words about types say nothing of it."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    if isinstance(error, TypeError | AttributeError):
        return "a value in it is of another kind than it should be"
    return " ".join(str(error)[:120].split())


def _file(document: Mapping[str, Any]) -> ScheduleFile:
    contexts, targets = {}, {}
    for key, row in _object(document["contexts"], "contexts").items():
        contexts[key], target = _context(key, _object(row, f"context {key[:40]!r}"))
        if target is not None:
            targets[key] = target
    kernels: dict[str, Kernel] = {}
    unread: dict[str, str] = {}
    for key, row in _object(document["kernels"], "kernels").items():
        try:
            kernels[key] = _kernel(key, _object(row, f"kernel {key[:40]!r}"))
        except GraphError as error:
            unread[key] = f"kernel {key[:40]!r} can't be read: {error}"
    rows = document["schedules"]
    if not isinstance(rows, list) or len(rows) > MAX_SCHEDULES:
        raise BadScheduleFile(f'"schedules" is no list of at most {MAX_SCHEDULES} schedules')
    schedules = tuple(
        _schedule(number, _object(row, f"schedule {number}"), {*kernels, *unread}, contexts)
        for number, row in enumerate(rows, start=1)
    )
    reproduce = document.get("reproduce", [])
    if not isinstance(reproduce, list) or not all(isinstance(command, str) for command in reproduce):
        raise BadScheduleFile('"reproduce" is no list of commands')
    read = tuple(one for one in schedules if one.kernel_key in kernels)
    graphs, unread_graphs = _graphs(document.get("graphs", []), contexts)
    return ScheduleFile(
        kernels, read, targets, tuple(reproduce), (*unread.values(), *unread_graphs), graphs=tuple(graphs)
    )


def _graphs(rows: Any, contexts: Mapping[str, Context]) -> tuple[list[CarriedGraph], list[str]]:
    """The graphs, and a sentence for each whose program or plan can't be read."""
    if not isinstance(rows, list) or len(rows) > MAX_SCHEDULES:
        raise BadScheduleFile(f'"graphs" is no list of at most {MAX_SCHEDULES} graphs')
    graphs: list[CarriedGraph] = []
    unread = []
    for number, row in enumerate(rows, start=1):
        try:
            graphs.append(_graph(f"graph {number}", _object(row, f"graph {number}"), contexts))
        except GraphError as error:
            unread.append(f"graph {number} can't be read: {error}")
    return graphs, unread


def _graph(where: str, row: Mapping[str, Any], contexts: Mapping[str, Context]) -> CarriedGraph:
    program, plan = program_from_json(json.dumps(row["program"])), grouping_from_json(json.dumps(row["plan"]))
    if row["context"] not in contexts:
        raise BadScheduleFile(f"{where} names a context that the file doesn't hold")
    schedules = {
        key: _knobs(knobs, f"the schedule of {key[:40]!r} in {where}")
        for key, knobs in _object(row["schedules"], f"the schedules of {where}").items()
    }
    if not isinstance(row["pdl"], bool):
        raise BadScheduleFile(f"pdl of {where} is neither true nor false")
    if not schedules.keys() <= plan.kernel_counts().keys():
        raise BadScheduleFile(f"{where} has a schedule of a kernel that its plan doesn't launch")
    return CarriedGraph(
        program,
        row["context"],
        plan,
        schedules,
        _timing(row, where),
        row["pdl"],
        _from_zero(row, "known_until"),
        _from_zero(row, "sum_us") if row.get("sum_us") is not None else None,
        _number(row, "error") if row.get("error") is not None else None,
    )


def _context_data(context: Context, target: Target | None) -> dict[str, object]:
    return {**asdict(context), **({"target": asdict(target)} if target is not None else {})}


def _context(key: str, row: Mapping[str, Any]) -> tuple[Context, Target | None]:
    values = {one.name: row[one.name] for one in fields(Context)}
    for name, value in values.items():
        if not isinstance(value, bool if name == "cold_l2" else str):
            raise BadScheduleFile(f"{name} of context {key[:40]!r} is of the wrong type")
    context = Context(**values)
    if context.key != key:
        raise BadScheduleFile(f"context {key[:40]!r} was edited: its name isn't that of its versions")
    return context, _target(row["target"]) if row.get("target") is not None else None


def _target(row: Any) -> Target:
    values: dict[str, Any] = {}
    for name in (one.name for one in fields(Target)):
        if name == "gluon":
            values[name] = row.get(name, Target().gluon) is not False
            continue
        number = _number(row, name)
        values[name] = number if name.startswith(("peak", "memory")) else int(number)
    return Target(**values)


def _kernel(key: str, row: Mapping[str, Any]) -> Kernel:
    kernel = kernel_from_json(json.dumps(row["body"]))
    if kernel.key != key:
        raise GraphError("its body is another kernel's")
    return kernel


def _graph_data(one: CarriedGraph) -> dict[str, object]:
    rest = {"error": one.error, "sum_us": one.sum_us}
    return {
        "context": one.context_key,
        "program": json.loads(program_to_json(one.program)),
        "plan": json.loads(grouping_to_json(one.grouping)),
        "schedules": {key: schedule.as_dict() for key, schedule in sorted(one.schedules.items())},
        "pdl": one.pdl,
        **_timing_data(one.timing),
        **_finite(rest),
        "known_until": one.known_until,
    }


def _schedule_data(one: FileSchedule) -> dict[str, object]:
    data: dict[str, object] = {"kernel": one.kernel_key, "context": one.context.key}
    data |= {"schedule": one.schedule.as_dict(), "acf": acf_of(one.schedule)}
    if one.pin is not None:
        data["pin"] = {"author": one.pin.author, "at": one.pin.at, "note": one.pin.note}
    return {**data, "evidence": [_evidence_data(result, one.taken.get(result.regime)) for result in one.evidence]}


def _evidence_data(result: Measurement, at: float | None) -> dict[str, object]:
    timing, build = result.timing, result.build
    if timing is None:
        raise ValueError("a failed result is no evidence")
    rest = {"error": result.error, "registers": build.registers, "spills": build.spills}
    rest |= {"shared_bytes": build.shared_bytes, "at": at}
    return {"regime": str(result.regime), **_timing_data(timing), **_finite(rest)}


def _timing_data(timing: Timing) -> dict[str, object]:
    times: dict[str, object] = {"us": timing.median_us, "low_us": timing.low_us, "high_us": timing.high_us}
    return {**times, "samples": list(timing.samples)}


def _finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """Those that are known and that JSON has a number for."""
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def _schedule(number: int, row: Mapping[str, Any], kernels: set[str], contexts: Mapping[str, Context]) -> FileSchedule:
    where = f"schedule {number}"
    key, name = row["kernel"], row["context"]
    if key not in kernels or name not in contexts:
        raise BadScheduleFile(f"{where} names a kernel or a context that the file doesn't hold")
    schedule = _knobs(row["schedule"], where)
    if row.get("acf", "") != acf_of(schedule):
        raise BadScheduleFile(f"{where} names two controls files")
    rows = row["evidence"]
    if not isinstance(rows, list):
        raise BadScheduleFile(f"the evidence of {where} is no list")
    results = [_object(one, where) for one in rows]
    evidence = tuple(_evidence(one, key, schedule, name, where) for one in results)
    taken = {Regime(one["regime"]): _from_zero(one, "at") for one in results if one.get("at") is not None}
    return FileSchedule(key, schedule, contexts[name], _pin(row.get("pin"), key, schedule, where), evidence, taken)


def _knobs(value: Any, where: str) -> Schedule:
    knobs = _object(value, f"the knobs of {where}")
    if not knobs or not all(isinstance(value, int | str) for value in knobs.values()):
        raise BadScheduleFile(f"{where} is no object of knob values")
    return Schedule.of(knobs)


def _pin(row: Any, key: str, schedule: Schedule, where: str) -> Pin | None:
    if row is None:
        return None
    pin = _object(row, f"the pin of {where}")
    author, note = pin.get("author", ""), pin.get("note", "")
    if not isinstance(author, str) or not isinstance(note, str):
        raise BadScheduleFile(f"the pin of {where} has an author or a note that is no text")
    return Pin(key, schedule, author, _number(pin, "at"), note)


def _evidence(row: Mapping[str, Any], key: str, schedule: Schedule, context: str, where: str) -> Measurement:
    sizes = {name: row.get(name) for name in ("registers", "spills", "shared_bytes")}
    if any(value is not None and (not isinstance(value, int) or abs(value) >= 2**31) for value in sizes.values()):
        raise BadScheduleFile(f"a size of {where} is no whole number")
    return Measurement(
        key,
        schedule,
        Regime(row["regime"]),
        context,
        Status.OK,
        _timing(row, where),
        build=BuildReport(**sizes),
        error=_number(row, "error") if row.get("error") is not None else None,
    )


def _timing(row: Mapping[str, Any], where: str) -> Timing:
    us, low, high = (_number(row, name) for name in ("us", "low_us", "high_us"))
    samples = row["samples"]
    if not isinstance(samples, list) or not all(_is_number(sample) for sample in samples):
        raise BadScheduleFile(f"the samples of {where} are no list of times")
    if not (us > 0 and 0 <= low <= us <= high):
        raise BadScheduleFile(f"the times of {where} are no times: {low} to {us} to {high} us")
    return Timing(us, low, high, tuple(float(sample) for sample in samples))


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadScheduleFile(f"{what} is no object")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row[name]
    if not _is_number(value):
        raise BadScheduleFile(f"{name} is {str(value)[:40]!r} and no number")
    return float(value)


def _from_zero(row: Mapping[str, Any], name: str) -> float:
    value = _number(row, name)
    if value < 0:
        raise BadScheduleFile(f"{name} is {value}, below zero")
    return value


def sorted_schedules(found: Sequence[FileSchedule]) -> tuple[FileSchedule, ...]:
    """In an order that depends on the content alone."""
    return tuple(sorted(found, key=lambda one: (one.kernel_key, one.context.key, one.schedule.key)))
