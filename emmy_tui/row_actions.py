"""The actions of the tabs that list rows of the database: variants, failures and pins."""

from __future__ import annotations

from emmy_tui.action import COMPARE, FAILURES, PINS, PRIOR, VARIANTS, Action, Group, Now, because, on_tabs

_ROWS = (VARIANTS, FAILURES, PRIOR, COMPARE, PINS)


def no_row(now: Now) -> str:
    """Why a tab's list is empty, as what would fill it, and the key that does."""
    if now.tab == VARIANTS:
        if now.filtered:
            return f"The filter lets no row through; {now.key('clear_filter')} takes it away"
        return "Variants are listed here once one of the kernel was measured"
    if now.tab == FAILURES:
        return "No candidate failed, and this tab lists those that did"
    if now.tab == COMPARE:
        return f"Two runs are compared here; {now.key('open_other')} takes the second one from another database"
    if now.tab == PRIOR:
        return "Kernels are listed here once some were measured"
    leads = now.key("focus_next_panel")
    return f"Pins are listed here; {now.key('pin')} makes one, and {leads} leads to the kernels that deploy now"


def _has_row(now: Now) -> bool:
    return now.items > 0


def _may_write(now: Now) -> bool:
    return now.writable


def why_no_write(now: Now) -> str:
    if now.writable:
        return ""
    return (
        f"The database is only read: {now.unwritable}" if now.unwritable else "The database is opened for reading only"
    )


def _can_pin(now: Now) -> bool:
    return now.writable and (now.kernels > 0 if now.tab == PINS else now.items > 0)


def _why_no_pin(now: Now) -> str:
    if not now.writable:
        return why_no_write(now)
    return "No kernel is known yet" if now.tab == PINS else no_row(now)


def _can_unpin(now: Now) -> bool:
    return now.writable and now.items > 0 and now.row.pinned


def _why_no_unpin(now: Now) -> str:
    if not now.writable or not now.items:
        return why_no_write(now) or no_row(now)
    return f"{now.row.name or 'This kernel'} has no pin here; {now.key('pin')} pins it"


def _can_forbid(now: Now) -> bool:
    return now.writable and now.items > 0 and now.row.shares


def _why_no_forbid(now: Now) -> str:
    if not now.writable or not now.items:
        return why_no_write(now) or no_row(now)
    return "No knob value sets these failures apart from what worked, so there is no corner to forbid"


def _can_copy(now: Now) -> bool:
    return now.items > 0 and now.row.schedule


def _why_no_copy(now: Now) -> str:
    return f"{now.row.name or 'This row'} has no knobs, as a library runs it" if now.items else no_row(now)


def _can_export(now: Now) -> bool:
    return now.row.pins if now.tab == PINS else now.items > 0


def _why_no_export(now: Now) -> str:
    if now.tab != PINS:
        return no_row(now)
    return f"Nothing is pinned, so there is nothing to export; {now.key('pin')} pins"


ROW_ACTIONS: tuple[Action, ...] = (
    on_tabs(
        (VARIANTS,),
        "filter",
        ("slash",),
        "Filter",
        "Find or search: show only some rows: BLOCK_M=64 us<20 st:ok",
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
    on_tabs((VARIANTS,), "sort", ("s",), "Sort", "Order by the next column", Group.ROWS, _has_row, no_row, footer=4),
    on_tabs((VARIANTS,), "reverse", ("S",), "Reverse", "Turn the order round", Group.ROWS, _has_row, no_row, footer=12),
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
        _can_unpin,
        _why_no_unpin,
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
        lambda now: why_no_write(now) or "No change of a pin is left to undo",
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
        no_row,
        footer=8,
    ),
    on_tabs(
        (VARIANTS, PINS),
        "copy_knobs",
        ("y",),
        "Copy",
        "Copy (yank) the knobs",
        Group.ROWS,
        _can_copy,
        _why_no_copy,
        footer=8,
    ),
    on_tabs(
        (VARIANTS,),
        "copy_command",
        ("Y",),
        "Command",
        "Copy the command that measures exactly this variant again",
        Group.ROWS,
        _has_row,
        no_row,
        footer=11,
    ),
    on_tabs(
        (VARIANTS,),
        "pareto",
        ("o",),
        "Front",
        "The Pareto front: rows that nothing beats in both time and registers, to pin one",
        Group.ROWS,
        _has_row,
        no_row,
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
        no_row,
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
        "Forbid the knob values that set this cluster apart, for the next run",
        Group.ROWS,
        _can_forbid,
        _why_no_forbid,
        footer=5,
    ),
    on_tabs(
        (FAILURES,),
        "close_cluster",
        ("escape",),
        "Clusters",
        "From the rows of a cluster back to the list of clusters",
        Group.ROWS,
        lambda now: now.focus == "cluster",
        because("The list of clusters has the focus"),
        footer=3,
    ),
    on_tabs(
        (FAILURES,),
        "list_corners",
        ("C",),
        "Forbidden",
        "What is forbidden, by whom, to allow one of it again",
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
        lambda now: why_no_write(now) or "No forbidding is left to undo",
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
        why_no_write,
        footer=11,
    ),
    on_tabs(
        _ROWS,
        "export",
        ("e",),
        "Export",
        "Save the rows to a file: csv, json or md; pins as JSON that import reads",
        Group.ROWS,
        _can_export,
        _why_no_export,
        footer=9,
    ),
)
