"""The work of `emmy explain`: choose as a deployment chooses, and print what decided, line by line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from engine.cli.errors import failing
from engine.cli.knob_text import schedule_line
from engine.cli.output import json_text, table_lines, terminal_width, text_lines, us_text
from engine.cli.subject_options import ChoiceRequest, choose_kernels, opened_subjects
from engine.deploy import Deployment, Evidence, Source, suggestions_for
from engine.deploy.deployment import illegal_line_text, kernel_name
from engine.deploy.evidence import KernelChoice, regime_of
from engine.deploy.forks import ForkChoice, ForkSource
from engine.deploy.subjects import Subject
from engine.prior import steering
from engine.store import Store, StoreError, Suggestion
from engine.vocabulary import Target

FORKS = ("fork", "answer", "decided by", "us", "row", "runner-up", "its us", "chosen's us", "both by", "its row")
KERNELS = ("kernel", "calls", "decided by", "us", "runner-up's us", "schedule")


def explain_request(request: ChoiceRequest, json: bool) -> None:
    """Print every program that is asked for; leaves with exit code 1 where nothing can be chosen."""
    with opened_subjects(request.subject, request.program, json=json) as (store, subjects), failing(StoreError):
        prior = steering(store.path).latest
        found = [choose_kernels(request, store, subject, prior, refuse_illegal_pins=False) for subject in subjects]
        elsewhere = [_suggestions(store, *pair) for pair in found]
    if json:
        objects = [{**deployment_object(*pair), "prior": prior.version} for pair in found]
        suggested = [[suggestion_object(one) for _, one in others] for others in elsewhere]
        both = zip(objects, suggested, strict=True)
        typer.echo(json_text([{**program, "suggestions": others} for program, others in both]))
        return
    width = terminal_width(sys.stdout)
    texts = [deployment_lines(*pair, prior.version, width) for pair in found]
    for lines, others in zip(texts, elsewhere, strict=True):
        for name, one in others:
            words = f"{name}: a suggestion decides nothing here: {one.reason}: {schedule_line(str(one.schedule))}"
            lines += text_lines(words, width)
    typer.echo("\n\n".join("\n".join(lines) for lines in texts))


def _suggestions(store: Store, subject: Subject, chosen: Deployment) -> list[tuple[str, Suggestion]]:
    """Schedules from other GPUs, toolchains and shapes for the kernels, each with its kernel's name."""
    return [
        (kernel_name(item.kernel), one)
        for item in chosen.kernels
        for one in suggestions_for(item.kernel, store, subject.context_key)
    ]


def suggestion_object(one: Suggestion) -> dict[str, object]:
    """A suggestion for `--json`; its time, in us, was taken elsewhere."""
    where = {"gpu": one.origin.gpu, "context": one.origin.key, "reason": one.reason}
    return {"kernel": one.kernel_key, **where, "us": one.us, "regime": one.regime, "schedule": one.schedule.as_dict()}


def deployment_lines(subject: Subject, chosen: Deployment, prior: str, width: int | None) -> list[str]:
    """The explanation as lines for people; `prior` is the version of what predicts."""
    lines = text_lines(subject.text, width)
    pdl = ", programmatic dependent launch" if chosen.pdl else ""
    lines += text_lines(f"{_place_text(subject, chosen)}: {times_text(chosen)}{pdl}", width, "  ")
    if chosen.predicted:
        lines += text_lines(f"what is not measured in this context is predicted by {prior}", width, "  ")
        if any(item.source is ForkSource.PRIOR and item.us is not None for item in chosen.forks):
            words = "a fork's predicted us is of the whole program, before a schedule is chosen for any of its kernels"
            lines += text_lines(f"{words}; a kernel's is of the schedule that was then chosen for it", width, "  ")
    if chosen.forks:
        lines += ["", *table_lines(FORKS, [_fork_row(item) for item in chosen.forks], width)]
        for fork in chosen.forks:
            if fork.runner_up_reason:
                lines += text_lines(f"{fork.fork}={fork.runner_up}: {fork.runner_up_reason}", width)
    lines += ["", *table_lines(KERNELS, [_kernel_row(item) for item in chosen.kernels], width)]
    for item in chosen.kernels:
        for line in item.lines:
            if line.illegal:
                lines += text_lines(f"{illegal_line_text(item.kernel, line)}.", width)
    return lines + [line for note in chosen.notes for line in text_lines(note, width)]


def _place_text(subject: Subject, chosen: Deployment) -> str:
    """What it was chosen for: a GPU whose times count, or a chip alone."""
    if subject.context_key:
        return f"on {subject.gpu}, context {chosen.context_key}"
    chip = f"sm_{subject.target.capability}"
    if subject.target == Target():
        return f"for an H200 ({chip}), as no GPU is here and none is recorded: nothing is measured"
    return f"for {chip}: nothing that was measured counts for it"


def times_text(chosen: Deployment) -> str:
    """The times that belong to exactly what is chosen, and what has none."""
    graph = f"as one graph {us_text(chosen.us)} us" if chosen.us is not None else _unmeasured_text(chosen)
    if chosen.us is not None and chosen.alone_us is not None:
        graph += f" (in place: {us_text(chosen.alone_us)} us with each kernel's own best)"
    if chosen.sum_us is not None:
        return f"{graph}, its kernels {us_text(chosen.sum_us)} us"
    untimed = chosen.untimed
    more = f" and {len(untimed) - 3} more" if len(untimed) > 3 else ""
    whose = f", no time for the schedule of {', '.join(untimed[:3])}{more}" if untimed else ""
    return f"{graph}, no sum of its kernels{whose}"


def _unmeasured_text(chosen: Deployment) -> str:
    """What is said in place of the time of the graph; a graph of other schedules decided the forks, if any did."""
    others = next((item.us for item in chosen.forks if item.source is ForkSource.ASSEMBLED), None)
    if others is None:
        return "not measured as one graph"
    return f"not measured as one graph of these schedules ({us_text(others)} us with those that it was recorded with)"


def _fork_row(item: ForkChoice) -> Sequence[object]:
    return (
        *(item.fork, item.answer, item.source.value, item.us, item.row),
        *(item.runner_up, item.runner_up_us, item.compared_us, item.compared.value if item.compared else ""),
        item.runner_up_row,
    )


def _kernel_row(item: KernelChoice) -> Sequence[object]:
    name = kernel_name(item.kernel)
    if item.chosen is None:
        return (name, item.count, "called as it is", None, None, "")
    runner_up = item.runner_up.us if item.runner_up else None
    return (name, item.count, item.chosen.source.value, item.chosen.us, runner_up, str(item.chosen.schedule))


def deployment_object(subject: Subject, chosen: Deployment) -> dict[str, object]:
    """The explanation for `--json`."""
    return {
        "target": subject.text,
        "gpu": subject.gpu,
        "context_key": chosen.context_key,
        "chip": f"sm_{chosen.target.capability}",
        "ptxas": chosen.controls.assembler.identity if chosen.controls is not None else "",
        "notes": list(chosen.notes),
        "assembled_us": chosen.us,
        "alone_us": chosen.alone_us,
        "sum_us": chosen.sum_us,
        "untimed": chosen.untimed,
        "pdl": chosen.pdl,
        "predicted": chosen.predicted,
        "forks": [_fork_object(item) for item in chosen.forks],
        "kernels": [_kernel_object(item) for item in chosen.kernels],
    }


def _fork_object(item: ForkChoice) -> dict[str, object]:
    second = {
        "answer": item.runner_up,
        "us": item.runner_up_us,
        "row": item.runner_up_row,
        "source": item.compared.value if item.compared else None,
        "chosen_us": item.compared_us,
        "reason": item.runner_up_reason or None,
    }
    return {
        "fork": item.fork,
        "answer": item.answer,
        "source": item.source.value,
        "us": item.us,
        "regime": item.regime,
        "row": item.row,
        "runner_up": second if item.runner_up else None,
    }


def _kernel_object(item: KernelChoice) -> dict[str, object]:
    return {
        "kernel": item.kernel.key,
        "label": item.kernel.label,
        "family": item.kernel.family,
        "shape": item.kernel.shape_text,
        "count": item.count,
        "chosen": _evidence_object(item.chosen) if item.chosen else None,
        "runner_up": _evidence_object(item.runner_up) if item.runner_up else None,
        "lines": [_evidence_object(line) for line in item.lines],
    }


def _evidence_object(line: Evidence) -> dict[str, object]:
    return {
        "source": line.source.value,
        "schedule": line.schedule.as_dict(),
        "us": line.us,
        "regime": regime_of(line),
        "predicted": line.source in (Source.PRIOR, Source.FIRST),
        "illegal": line.illegal,
    }
