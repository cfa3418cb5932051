"""What the candidates of each ptxas controls file came to, kernel by kernel: times beside registers, and any win."""

from __future__ import annotations

from dataclasses import dataclass

from engine.cli.eval_acf_searches import ControlsSearch, controls_searches, file_name
from engine.codegen import acf_of
from engine.events import Compared as Comparison
from engine.store import KernelVariants, Store, VariantRow, pareto_front
from engine.vocabulary import Schedule

KNOB = "ACF"
EVERY = 1_000_000


@dataclass(frozen=True, slots=True)
class ControlsRow:
    """The best candidate of one controls file ("" for none) among all of a kernel's schedules.

    `ratio` is the best time without controls over this one's. `front` says that no other row is both faster and smaller
    in registers; `verdict` is that of the comparison in turns, where it took part in one.
    """

    sha256: str
    name: str
    best_us: float | None
    regime: str
    ratio: float | None
    registers: int | None
    spills: int | None
    tried: int
    failed: int
    front: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ControlsReport:
    """One kernel in one context. `sentence` says what was decided last, and by what; `searches` are the runs'."""

    kernel: str
    label: str
    shape: str
    gpu: str
    ptxas: str
    sentence: str
    rows: tuple[ControlsRow, ...]
    searches: tuple[ControlsSearch, ...] = ()


def controls_reports(store: Store, kernel_text: str = "") -> list[ControlsReport]:
    """A report for each kernel and context in which controls were searched."""
    names = {file.sha256: file.name for file in store.controls()}
    ptxas = {context.key: context.ptxas for context in store.contexts()}
    searches = controls_searches(store, names)
    reports = []
    for one in store.variants(kernel_text, EVERY):
        if any(row.schedule.get(KNOB) for row in one.rows):
            compared = store.compared(one.kernel, one.context)
            rows = _rows(one, names, compared)
            sentence = _sentence(rows, compared, names)
            about = (one.kernel, one.label or one.family, one.shape, one.gpu, ptxas.get(one.context, ""))
            searched = tuple(searches.get((one.kernel, one.context), ()))
            reports.append(ControlsReport(*about, sentence, rows, searched))
    return reports


def _rows(kernel: KernelVariants, names: dict[str, str], compared: Comparison | None) -> tuple[ControlsRow, ...]:
    groups: dict[str, list[VariantRow]] = {}
    for row in kernel.rows:
        groups.setdefault(str(row.schedule.get(KNOB, "")), []).append(row)
    best = {acf: next((row for row in rows if row.best_us is not None), None) for acf, rows in groups.items()}
    counted = [
        (acf, one.best_us or 0.0, one.registers)
        for acf, one in best.items()
        if one is not None and one.registers is not None
    ]
    front = {counted[at][0] for at in pareto_front([(us, registers) for _, us, registers in counted])}
    plain = best.get("")
    verdicts = _verdicts(compared)
    found = []
    for acf, tried in groups.items():
        first = best[acf]
        us = first.best_us if first else None
        found.append(
            ControlsRow(
                sha256=acf,
                name=file_name(acf, names),
                best_us=us,
                regime=str(first.regime or "") if first else "",
                ratio=plain.best_us / us if plain and plain.best_us and us else None,
                registers=first.registers if first else None,
                spills=first.spills if first else None,
                tried=len(tried),
                failed=sum(bool(candidate.failure) for candidate in tried),
                front=acf in front,
                verdict=verdicts.get(acf, ""),
            )
        )
    return tuple(sorted(found, key=lambda row: (row.best_us is None, row.best_us or 0.0, row.sha256)))


def _verdicts(compared: Comparison | None) -> dict[str, str]:
    """By controls file: how its fastest finalist compares with the best without."""
    if compared is None or not compared.tried:
        return {}
    verdicts: dict[str, str] = {}
    for key, verdict in zip(compared.schedules[1:], compared.verdicts, strict=True):
        acf = acf_of(Schedule.from_key(key))
        if acf:
            verdicts.setdefault(acf, verdict)
    return verdicts


def _sentence(rows: tuple[ControlsRow, ...], compared: Comparison | None, names: dict[str, str]) -> str:
    tried = sum(row.tried for row in rows if row.sha256)
    if compared is None or not _verdicts(compared):
        return f"no controls win: of {tried} candidates none was faster than the best without, so none was confirmed"
    control = f"the best without, timed against itself beside them: {compared.control_ratio:.3f}x, "
    control += compared.control_verdict or "not timed"
    acf = acf_of(Schedule.from_key(compared.chosen))
    if not acf:
        return f"no controls win: none of {compared.tried} tried is faster beyond the noise; {control}"
    at = compared.schedules.index(compared.chosen) - 1
    return (
        f"{file_name(acf, names)} wins: {1 / compared.ratios[at]:.3f}x the best without in {compared.processes} "
        f"fresh processes, p {compared.p_values[at]:.1e} corrected for {compared.tried} tried, "
        f"d {compared.effects[at]:.1f}; {control}"
    )
