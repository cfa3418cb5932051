"""The actions of the tabs that list rows of the database: variants, failures and pins."""

from __future__ import annotations

from emmy_tui.action import COMPARE, FAILURES, PINS, PRIOR, VARIANTS, Action, Group, Now, because, on_tabs

_ROWS = (VARIANTS, FAILURES, PRIOR, COMPARE, PINS)
_NO_ROW = because("There is no row")


def _has_row(now: Now) -> bool:
    return now.items > 0


def _may_write(now: Now) -> bool:
    return now.writable


def _why_no_write(now: Now) -> str:
    return "" if now.writable else "The database is opened for reading only"


def _can_pin(now: Now) -> bool:
    return now.writable and (now.kernels > 0 if now.tab == PINS else now.items > 0)


def _why_no_pin(now: Now) -> str:
    if not now.writable:
        return _why_no_write(now)
    return "No kernel is known yet" if now.tab == PINS else "There is no row"


ROW_ACTIONS: tuple[Action, ...] = (
    on_tabs(
        (VARIANTS,),
        "filter",
        ("slash",),
        "Filter",
        "Show only some rows: BLOCK_M=64 us<20 st:ok",
        Group.ROWS,
        lambda now: now.items > 0 or now.filtered or now.kernels > 0,
        because("No kernel is known yet"),
        footer=3,
    ),
    on_tabs(
        (VARIANTS,),
        "clear_filter",
        ("escape",),
        "Show all",
        "Take the filter away",
        Group.ROWS,
        lambda now: now.filtered,
        because("No filter is on"),
        footer=3,
    ),
    on_tabs((VARIANTS,), "sort", ("s",), "Sort", "Sort by the next column", Group.ROWS, _has_row, _NO_ROW, footer=4),
    on_tabs(
        (VARIANTS,), "reverse", ("S",), "Reverse", "Turn the order round", Group.ROWS, _has_row, _NO_ROW, footer=12
    ),
    on_tabs(
        (VARIANTS, PINS),
        "pin",
        ("p",),
        "Pin",
        "Pin this variant; on the Pins tab, the suggestion, what deploys now, or knob values that you type",
        Group.ROWS,
        _can_pin,
        _why_no_pin,
        footer=5,
    ),
    on_tabs(
        (VARIANTS, PINS),
        "unpin",
        ("u",),
        "Unpin",
        "Take this kernel's pin away",
        Group.ROWS,
        lambda now: now.writable and now.items > 0,
        lambda now: _why_no_write(now) or "There is no row",
        footer=10,
    ),
    on_tabs(
        (VARIANTS, PINS),
        "undo_pin",
        ("U",),
        "Undo",
        "Undo the last change of a pin",
        Group.ROWS,
        lambda now: now.writable and now.undoable,
        lambda now: _why_no_write(now) or "No change of a pin is left to undo",
        footer=9,
    ),
    on_tabs(
        (VARIANTS,),
        "mark",
        ("b",),
        "Compare",
        "Mark this variant; on a second one, compare both knob by knob",
        Group.ROWS,
        _has_row,
        _NO_ROW,
        footer=8,
    ),
    on_tabs((VARIANTS, PINS), "copy_knobs", ("y",), "Copy", "Copy the knobs", Group.ROWS, _has_row, _NO_ROW, footer=8),
    on_tabs(
        (VARIANTS,),
        "copy_command",
        ("Y",),
        "Command",
        "Copy the command that reproduces this row",
        Group.ROWS,
        _has_row,
        _NO_ROW,
        footer=11,
    ),
    on_tabs(
        (VARIANTS,),
        "pareto",
        ("o",),
        "Front",
        "Rows that nothing beats in both time and registers; p pins one",
        Group.ROWS,
        _has_row,
        _NO_ROW,
        footer=11,
    ),
    on_tabs(
        (VARIANTS,),
        "assemble",
        ("a",),
        "Code",
        "Compile this variant and count its PTX and SASS instructions",
        Group.ROWS,
        _has_row,
        _NO_ROW,
        footer=11,
    ),
    on_tabs(
        (VARIANTS,),
        "next_context",
        ("c",),
        "Context",
        "Rows of the kernel's next GPU and toolchain",
        Group.ROWS,
        lambda now: now.contexts > 1,
        because("The kernel was measured in one context only"),
        footer=11,
    ),
    on_tabs(
        (FAILURES,),
        "forbid",
        ("F",),
        "Forbid",
        "Forbid the knob values that only this cluster shares, for the next run",
        Group.ROWS,
        lambda now: now.writable and now.items > 0,
        lambda now: _why_no_write(now) or "There is no row",
        footer=5,
    ),
    on_tabs(
        (FAILURES,),
        "list_corners",
        ("C",),
        "Forbidden",
        "What is forbidden, by whom; a allows one again",
        Group.ROWS,
        lambda now: now.corners > 0,
        because("Nothing is forbidden"),
        footer=8,
    ),
    on_tabs(
        (FAILURES,),
        "undo_forbid",
        ("U",),
        "Undo",
        "Undo the last forbidding or allowing",
        Group.ROWS,
        lambda now: now.writable and now.undoable,
        lambda now: _why_no_write(now) or "No forbidding is left to undo",
        footer=9,
    ),
    on_tabs(
        (PINS,),
        "import_pins",
        ("I",),
        "Import",
        "Pin what a file says",
        Group.ROWS,
        _may_write,
        _why_no_write,
        footer=11,
    ),
    on_tabs(
        _ROWS,
        "export",
        ("e",),
        "Export",
        "Write the rows to a file: csv, json or md; pins as JSON that import reads",
        Group.ROWS,
        _has_row,
        _NO_ROW,
        footer=9,
    ),
)
