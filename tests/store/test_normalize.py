"""Causes that differ only in what varies from candidate to candidate are one cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store.normalize import LIMIT, normalize_cause

SAME = [
    (
        "out of resource: shared memory, Required: 262144, Hardware limit: 232448",
        "out of resource: shared memory, Required: 327680, Hardware limit: 232448",
    ),
    ("illegal memory access at 0x7f3a12", "illegal memory access at 0xdeadBEEF"),
    ("ptxas error in /tmp/a/b/k.ptx:12: too big", "ptxas error in /home/x y/c.ptx:9: too big".replace(" y", "")),
    ("entry matmul_gelu_3fa9b21c: too many registers", "entry matmul_gelu_77aa01bd: too many registers"),
    ("took 12.5 s, limit 10 s", "took 3.25 s, limit 10 s"),
    ("hung after 2.0s", "hung after 31s"),
    ("worst element off by 1.5e-02", "worst element off by 3"),
    ("cannot lower tensor<128x64xbf16>", "cannot lower tensor<32x256xbf16>"),
    ("use of %12 in %arg3", "use of %7 in %arg0"),
    ("layout #blocked1", "layout #blocked"),
    ("\x1b[31mfatal\x1b[0m  error\n", "fatal error"),
    ("needs 96KiB", "needs 228KiB"),
]
DIFFERENT = [
    ("no bf16 on sm_70", "no fp16 on sm_70"),
    ("no bf16 on sm_70", "no bf16 on sm_90"),
    ("out of shared memory", "too many registers"),
    ("int32 overflow", "int64 overflow"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_varies_is_left_out(one: str, other: str) -> None:
    assert normalize_cause(one) == normalize_cause(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_tells_apart_is_kept(one: str, other: str) -> None:
    assert normalize_cause(one) != normalize_cause(other)


def test_it_stays_readable() -> None:
    assert normalize_cause(SAME[0][0]) == "out of resource: shared memory, Required: <n>, Hardware limit: <n>"
    assert (
        normalize_cause("/usr/bin/ptxas died at 0x12 in softmax_0a1b2c3d.ptx") == "<path> died at <address> in <file>"
    )


@given(st.text(max_size=400) | st.from_regex(r"([a-z%#0-9x./_ -]|0x|<n>){0,60}", fullmatch=True))
def test_it_is_one_short_line(cause: str) -> None:
    line = normalize_cause(cause)
    assert len(line) <= LIMIT
    assert line == " ".join(line.split(" ")).strip()
    assert not any(character in line for character in "\n\r\t\x1b\x00")


@pytest.mark.parametrize("cause", [cause for pair in SAME + DIFFERENT for cause in pair])
def test_normalizing_twice_changes_nothing(cause: str) -> None:
    assert normalize_cause(normalize_cause(cause)) == normalize_cause(cause)


def test_a_long_text_takes_no_long_time() -> None:
    """Backtracking would make these hang; the suite's time limit is the assertion's other half."""
    for piece in ("/a", "0", "a_", "0x", "1x", "%a", "a.", " "):
        assert len(normalize_cause(piece * 20_000)) <= LIMIT
