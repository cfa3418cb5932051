from __future__ import annotations

from engine.codegen.early_loads import loads_first


def test_loads_bring_along_what_their_addresses_and_masks_need() -> None:
    lines = [
        "    low, high = parts(acc)",
        "    a = low * high",
        "    c = tl.arange(0, 8)",
        "    row = c % 4",
        "    x0 = tl.load(in0 + row).to(tl.float32)",
        "    inside = x0 > 0",
        "    tl.store(out0 + c, a, mask=c < 4)",
        "    x1 = tl.load(in1 + c, mask=inside, other=0)",
        "    tl.store(out1 + c, a * x1)",
    ]
    front = [lines[i] for i in (2, 3, 4, 5, 7)]
    assert loads_first(lines) == [*front, *(line for line in lines if line not in front)]


def test_lines_without_loads_stay() -> None:
    lines = ["    b = acc * 2", "    tl.store(out0 + i, b)"]
    assert loads_first(lines) == lines
