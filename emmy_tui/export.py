"""Rows as a file that another program reads: csv, json or a Markdown table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from emmy_tui.dialogs import ChoiceList, Dialog
from emmy_tui.knob_words import in_order, long_words
from emmy_tui.outlet import Outlet
from emmy_tui.text import Line, Tone, escaped
from emmy_tui.view import View
from engine.store import Candidate, FailureCluster

Record = dict[str, object]
FORMATS = ("csv", "json", "md")


def candidate_record(row: Candidate) -> Record:
    """One variant as an object: what it is, what was measured, then its knobs by their names."""
    facts: Record = {
        "kernel": row.kernel,
        "label": row.label,
        "context": row.context,
        "status": row.status,
        "best_us": row.best_us,
        "regime": None if row.regime is None else str(row.regime),
        "us": row.us,
        "low_us": row.low_us,
        "high_us": row.high_us,
        "deploy_us": row.deploy_us,
        "registers": row.registers,
        "spills": row.spills,
        "shared_bytes": row.shared_bytes,
        "error": row.error,
        "failure": row.failure,
        "cause": row.cause,
        "run": row.run,
        "trial": row.trial,
        "pinned": row.pinned,
    }
    return {**facts, **dict(in_order(row.schedule))}


def cluster_record(cluster: FailureCluster) -> Record:
    return {
        "count": cluster.count,
        "kinds": ", ".join(cluster.kinds),
        "cause": cluster.cause,
        "kernels": ", ".join(cluster.kernels),
        "knobs": long_words({knob.name: knob.value for knob in cluster.shared}),
        "lift": cluster.lift,
        "note": cluster.note,
        "example": cluster.example,
    }


def export_text(records: Sequence[Record], ending: str) -> str:
    """The records in one of FORMATS; a column for every name that one of them has. No control character gets in."""
    if ending == "json":
        return calm_json(json.dumps(records, indent=1, ensure_ascii=False)) + "\n"
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [[_cell(record.get(name)) for name in names] for record in records]
    if ending == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *rows])
        return text.getvalue()
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(_escaped(cell) for cell in line) + " |\n" for line in lines)


def calm_json(text: str) -> str:
    """JSON text that says the same with every character that acts on a terminal as an escape of JSON's."""
    return "\n".join(line if escaped(line) == line else _json_escapes(line) for line in text.split("\n"))


def _json_escapes(line: str) -> str:
    """Such characters stand in strings only, where \\u names them: as two halves where four digits don't reach."""
    return "".join(one if escaped(one) == one else _json_escape(one) for one in line)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else escaped(str(value))


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


class FormatQuestion(Dialog):
    """Answers with one of FORMATS, by its letter or by the cursor, or with ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", show=False),
        Binding("c", "answer('csv')", show=False),
        Binding("j", "answer('json')", show=False, priority=True),
        Binding("m", "answer('md')", show=False),
        Binding("escape,q", "answer", show=False),
    ]

    def __init__(self, view: View, what: str) -> None:
        named = zip(FORMATS, ("csv", "json", "md, a Markdown table"), strict=True)
        title, note = f"Export {what} as", "enter takes it, esc leaves"
        width = len(title) + len(note) + 4
        lines: list[Line] = [[(f"  {name[0]} ", Tone.KEY), (text.ljust(width), Tone.PLAIN)] for name, text in named]
        super().__init__(ChoiceList(view, lines, title, note))

    def action_take(self) -> None:
        self.dismiss(FORMATS[self._panel.cursor])


def ask_format(
    app: App[Any], view: View, outlet: Outlet, what: str, read: Callable[[Callable[[Sequence[Record]], None]], None]
) -> None:
    """Ask for a format, `read` the records, and write the file."""

    def answered(ending: str | None) -> None:
        if ending:
            read(lambda records: outlet.write(what, {ending: export_text(records, ending)}))

    app.push_screen(FormatQuestion(view, what), answered)
