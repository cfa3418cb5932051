"""One variant in full: its knobs, numbers and failure, the source that the compiler was given; and two side by side."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.knob_words import ACF_DIGITS, in_order, long_words, value_text
from emmy_tui.predicting import Predictions, time_beside
from emmy_tui.text import Glyphs, Line, Tone, clean, fold, left, wrap
from engine.codegen import KernelSource, illegal_because, render
from engine.deploy import measuring_command
from engine.ir import GraphError
from engine.ir.kernel import Kernel
from engine.ir.roofline import floor_us
from engine.prior import steering
from engine.store import Candidate, Store, StoreError
from engine.vocabulary import Context, Schedule, Target

LABEL = 14
DETAIL_WIDEST = 120
"""Cells of a row in full, where the screen has them."""
NO_SOURCE = "This kernel was imported from another tuner, which keeps its source: there is none to show here."


@dataclass(frozen=True, slots=True)
class Detail:
    """A row with what the database knows around it. `source` is Triton text, or "" and then `why_none` says why."""

    row: Candidate
    gpu: str
    command: str
    source: str
    why_none: str
    floor: tuple[float, str] | None = None
    predicted: tuple[float, str] | None = None
    controls: str = ""
    search: str = ""


def read_detail(row: Candidate, kept: Predictions | None = None) -> Callable[[Store], Detail]:
    """The question that a desk answers. `kept` predicts, and keeps what it read."""
    predictions = kept or Predictions()

    def question(store: Store) -> Detail:
        contexts = {context.key: context for context in store.contexts()}
        context = contexts.get(row.context)
        versions = context_text(context) if context else ""
        source, why_none = source_text(store, row)
        predicted = predictions.of(store, [row]).get(row.number)
        prior = (predicted, predictions.version(store)) if predicted is not None else None
        told = (source, why_none, _floor(store, row), prior, _controls(store, row))
        return Detail(row, versions, command_of(store, row), *told, search_command(store, row))

    return question


def _controls(store: Store, row: Candidate) -> str:
    """What a person called the controls file of the row; "" without one."""
    sha256 = str(row.schedule.get("ACF", ""))
    try:
        kept = store.controls_file(sha256) if sha256 else None
    except StoreError as error:
        return str(error)
    return f"{kept.name} ({sha256[:ACF_DIGITS]})" if kept is not None else sha256[:ACF_DIGITS]


def _floor(store: Store, row: Candidate) -> tuple[float, str] | None:
    """The floor of the row's kernel in us and what sets it, where the GPU's ceilings were measured."""
    try:
        ceilings = store.ceilings(row.context)
        return floor_us(store.kernel(row.kernel), ceilings) if ceilings is not None else None
    except (StoreError, GraphError):
        return None


def context_text(context: Context) -> str:
    """GPU and versions, as far as they are known: other tuners' results name the GPU alone."""
    versions = (("driver", context.driver), ("torch", context.torch), ("Triton", context.triton))
    return ", ".join([context.gpu or "an unnamed GPU", *(f"{name} {said}" for name, said in versions if said)])


def source_text(store: Store, row: Candidate) -> tuple[str, str]:
    """The generated source, or "" and one sentence why there is none. The body is data: it is never run here."""
    try:
        kernel, target = store.kernel(row.kernel), store.target(row.context)
    except (StoreError, GraphError) as error:
        return "", str(error)
    return rendered(kernel, Schedule.of(row.schedule), target)


def rendered(kernel: Kernel, schedule: Schedule, target: Target) -> tuple[str, str]:
    """As `source_text`, of a kernel that was read."""
    source, why_none = rendered_source(kernel, schedule, target)
    return (source.text if source else ""), why_none


def rendered_source(kernel: Kernel, schedule: Schedule, target: Target) -> tuple[KernelSource | None, str]:
    """The source with what a launch needs, or None and why."""
    if kernel.foreign is not None:
        return None, NO_SOURCE
    try:
        reason = illegal_because(kernel, schedule, target)
        return (None, reason) if reason else (render(kernel, schedule, target), "")
    except Exception as error:  # a body from elsewhere may be odd in any way; the screen goes on
        return None, f"No source can be generated for this body: {type(error).__name__}: {str(error)[:200]}"


def search_command(store: Store, row: Candidate) -> str:
    """The command of the search that measured the row, or "" where no run says."""
    try:
        run = store.run(row.run)
    except StoreError:
        return ""
    if run.command:
        return run.command
    words = ["emmy", "tune", "--code", run.target, "--db", str(store.path)]
    return shlex.join([*words, "--seed", str(run.seed), "--patience", str(run.patience)])


def command_of(store: Store, row: Candidate) -> str:
    """The command that measures exactly this variant; "" where no recorded program launches its kernel."""
    prior = steering(store.path).latest
    return measuring_command(store, row.kernel, row.context, Schedule.of(row.schedule), prior)


def detail_lines(detail: Detail, width: int, glyphs: Glyphs) -> list[Line]:
    """Everything, most important first; each line at most `width` cells."""
    row = detail.row
    lines: list[Line] = [[(text, Tone.HEAD)] for text in wrap(clean(long_words(row.schedule), glyphs), width)]
    lines.append([])
    for label, value, tone in _facts(detail):
        for number, text in enumerate(wrap(clean(value, glyphs), max(1, width - LABEL))):
            lines.append([(left("" if number else label, LABEL), Tone.DIM), (text, tone)])
    lines.append([])
    if detail.why_none:
        return [*lines, *([(text, Tone.BAD)] for text in wrap(clean(detail.why_none, glyphs), width))]
    lines.append([("Generated Triton source", Tone.HEAD)])
    for text in detail.source.splitlines():
        lines += [[(row, Tone.PLAIN)] for row in fold(clean(text.expandtabs(4), glyphs), width)]
    return lines


def _facts(detail: Detail) -> list[tuple[str, str, Tone]]:
    row = detail.row
    facts: list[tuple[str, str, Tone]] = [("kernel", f"{row.label} {row.kernel}", Tone.PLAIN)]
    if row.us is not None:
        facts.append(("ranking", _interval(row), Tone.PLAIN))
    if row.deploy_us is not None:
        facts.append(("deploy", f"{fmt.us(row.deploy_us)} us", Tone.PLAIN))
    facts += [(label, text, Tone.PLAIN) for label, text in _beside(detail)]
    if row.failure:
        facts.append(("failure", row.failure, Tone.BAD))
    if row.cause:
        facts.append(("cause", row.cause, Tone.PLAIN))
    for label, value in (
        ("registers", row.registers),
        ("spills", row.spills),
        ("shared memory", None if row.shared_bytes is None else f"{row.shared_bytes} bytes"),
        ("code", None if row.code_bytes is None else f"{row.code_bytes} bytes"),
        ("controls", detail.controls or None),
        ("error", None if row.error is None else f"{row.error:.2e} of the reference's norm"),
        ("compiled in", None if row.compile_s is None else f"{row.compile_s:.2f} s"),
        ("measured", None if row.measured_at is None else fmt.moment(row.measured_at)),
        ("trial", row.trial or None),
        ("on", detail.gpu or None),
        ("measures it", detail.command or None),
        ("found by", detail.search or None),
        ("pinned", "yes" if row.pinned else None),
    ):
        if value is not None:
            facts.append((label, str(value), Tone.PLAIN))
    return facts


def _beside(detail: Detail) -> list[tuple[str, str]]:
    """What a time is to be seen beside: the prior's prediction and the floor of the kernel."""
    row, told = detail.row, []
    if detail.predicted is not None:
        us, prior = detail.predicted
        off = fmt.change(us, time_beside(row))
        told.append(("predicted", f"{fmt.us(us)} us by {prior}" + (f", measured {off} %" if off != "-" else "")))
    if detail.floor is not None and detail.floor[0] > 0:
        us, bound = detail.floor
        over = f", this takes {row.best_us / us:.2f} times that" if row.best_us is not None else ""
        told.append(("floor", f"{fmt.us(us)} us by {bound}{over}"))
    return told


def _interval(row: Candidate) -> str:
    if row.low_us is None or row.high_us is None:
        return f"{fmt.us(row.us)} us"
    return f"{fmt.us(row.us)} us, {fmt.us(row.low_us)} to {fmt.us(row.high_us)}"


def compare_lines(first: Candidate, second: Candidate, verdict: str, width: int, glyphs: Glyphs) -> list[Line]:
    """The verdict on two candidates; below it, knob by knob with those that differ marked, and their numbers."""
    cell = max(8, min(24, (width - 18) // 2))
    lines: list[Line] = [*([(text, Tone.HEAD)] for text in wrap(verdict, width)), []]
    lines += [[(left("", 18) + left("A", cell) + left("B", cell), Tone.HEAD)]]
    names = [name for name, _ in in_order({**first.schedule, **second.schedule})]
    for name in names:
        a, b = first.schedule.get(name), second.schedule.get(name)
        lines.append(_pair(name, _knob(a), _knob(b), cell, glyphs, differs=(a, type(a)) != (b, type(b))))
    lines.append([])
    for label, a_text, b_text in _compared_facts(first, second):
        lines.append(_pair(label, a_text, b_text, cell, glyphs, differs=False))
    return lines


def _knob(value: bool | int | str | None) -> str:
    return "-" if value is None else value_text(value) or '""'


def _pair(label: str, a: str, b: str, cell: int, glyphs: Glyphs, *, differs: bool) -> Line:
    mark = glyphs.differs if differs else " "
    tone = Tone.ACCENT if differs else Tone.PLAIN
    text = left(clean(a, glyphs), cell, glyphs) + left(clean(b, glyphs), cell, glyphs)
    return [(left(f"{mark} {clean(label, glyphs)}", 18, glyphs), Tone.DIM), (text, tone)]


def _compared_facts(first: Candidate, second: Candidate) -> list[tuple[str, str, str]]:
    def both(name: str, text: Callable[[Candidate], str]) -> tuple[str, str, str]:
        return name, text(first), text(second)

    def number(value: int | None) -> str:
        return "-" if value is None else str(value)

    return [
        both("us", lambda row: fmt.us(row.us if row.deploy_us is None else row.deploy_us)),
        both("by", lambda row: "deploy" if row.deploy_us is not None else "-" if row.us is None else "ranking"),
        both("ranking us", lambda row: fmt.us(row.us)),
        both("ranking low", lambda row: fmt.us(row.low_us)),
        both("ranking high", lambda row: fmt.us(row.high_us)),
        both("registers", lambda row: number(row.registers)),
        both("spills", lambda row: number(row.spills)),
        both("shared bytes", lambda row: number(row.shared_bytes)),
        both("code bytes", lambda row: number(row.code_bytes)),
        both("status", lambda row: row.failure or row.status),
    ]
