"""Rows as csv, json and Markdown: every value comes back, and no text breaks the form."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.export import FORMATS, calm_json, export_text
from emmy_tui.text import clean, escaped

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(("a", "b", "c")), st.one_of(TEXT, st.integers(), st.booleans(), st.none())),
    max_size=5,
)


@given(RECORDS)
def test_json_is_the_records(records: list[dict[str, object]]) -> None:
    assert json.loads(export_text(records, "json")) == records


@given(RECORDS)
def test_csv_has_a_column_for_every_name(records: list[dict[str, object]]) -> None:
    rows = list(csv.DictReader(io.StringIO(export_text(records, "csv"), newline="")))
    filled = [record for record in records if len({name for one in records for name in one}) > 1]
    if filled:
        assert len(rows) == len(records)
        for row, record in zip(rows, records, strict=True):
            for name, value in record.items():
                if isinstance(value, str):
                    assert row[name] == escaped(value)


@given(RECORDS)
def test_markdown_is_a_table(records: list[dict[str, object]]) -> None:
    names = {name for record in records for name in record}
    lines = export_text(records, "md").split("\n")[:-1]
    assert len(lines) == len(records) + 2
    for line in lines if names else ():
        assert line.replace("\\\\", "").replace("\\|", "").count("|") == len(names) + 1


def test_every_format_ends_with_a_line() -> None:
    assert all(export_text([{"a": 1}], ending).endswith("\n") for ending in FORMATS)


@given(st.lists(st.dictionaries(st.just("a"), st.text(max_size=20), min_size=1), min_size=1, max_size=3))
def test_nothing_that_acts_on_a_terminal_is_exported(records: list[dict[str, object]]) -> None:
    for ending in FORMATS:
        text = export_text(records, ending)
        assert all(clean(line) == line for line in text.split("\n"))
        assert text.count("\n") == export_text([{"a": "x"}] * len(records), ending).count("\n")
    assert json.loads(export_text(records, "json")) == records


@given(st.text())
def test_json_says_the_same_however_it_was_written(text: str) -> None:
    for ascii_only in (True, False):
        assert json.loads(calm_json(json.dumps({"a": text}, indent=1, ensure_ascii=ascii_only))) == {"a": text}
