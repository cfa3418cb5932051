from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import offered_schedules, render
from engine.codegen.emit import Axis, Emitter, IndexSpace, Value
from engine.codegen.frames import FrameError, whole_frame
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.runtime import compile_source
from engine.vocabulary import Schedule, Target
from tests.codegen.bodies import matmul, softmax, tensor

H200 = Target()
ROWS = Axis("rows", 4)
COLUMNS = Axis("cols", 8, "cols < 8 - start", "start", "start")
SPACE = IndexSpace("element", (COLUMNS, ROWS))


def test_value_that_does_not_move_with_a_loop_is_written_before_it() -> None:
    builder = GraphBuilder()
    x, row = tensor(builder, (4, 8)), tensor(builder, (4, 1))
    body = builder.build(builder.add("mul", x, builder.add("exp", row)))
    emitter = Emitter(body)
    with emitter.block("for start in tl.range(0, 8, 4):", "start"):
        emitter.value(body.outputs[0], whole_frame(32), SPACE)
    assert emitter.lines == [
        "    p0 = in0 + rows * 8 + cols",
        "    x1 = tl.load(in1 + rows)",
        "    v2 = tl.exp(x1)",
        "    for start in tl.range(0, 8, 4):",
        "        x0 = tl.load(p0 + start, mask=cols < 8 - start, other=0)",
        "        v3 = x0 * v2",
    ]


def test_value_is_written_once_a_scope() -> None:
    builder = GraphBuilder()
    x = builder.add("exp", tensor(builder, (4, 8)))
    body = builder.build(builder.add("add", x, x), builder.add("mul", x, x))
    emitter = Emitter(body)
    with emitter.block("for start in tl.range(0, 8, 4):", "start"):
        for output in body.outputs:
            emitter.value(output, whole_frame(32), SPACE)
    assert sum("tl.exp" in line for line in emitter.lines) == 1


def test_held_value_is_not_reread_in_another_order() -> None:
    builder = GraphBuilder()
    product = builder.add("matmul", tensor(builder, (4, 4)), tensor(builder, (4, 4)))
    turned = builder.view(product, (4, 4), (1, 4))
    body = builder.build(builder.add("exp", turned))
    emitter = Emitter(body)
    emitter.fix(2, Value("acc", "float32", frozenset({"rows", "cols"})), whole_frame(16))
    with pytest.raises(FrameError, match="another order"):
        emitter.value(body.outputs[0], whole_frame(16), IndexSpace("output", (Axis("cols", 4), ROWS)))


def wide_pointwise() -> Kernel:
    builder = GraphBuilder()
    x = builder.input(TensorSpec((2**16, 2**16), "bfloat16", (1, 2**16)))
    return Kernel("pointwise", builder.build(builder.add("exp", x)))


@pytest.mark.parametrize(
    ("subject", "wide_index"),
    [
        (Kernel("contraction", matmul(2**16, 256, 2**16, "bfloat16")), "in0 + rows.to(tl.int64) * 65536 + k_row"),
        (Kernel("rowwise", softmax((2**20,), 4096, "bfloat16")), "out0 + rows.to(tl.int64) * 4096 + ("),
        (wide_pointwise(), "index = tl.program_id(0).to(tl.int64) * "),
    ],
    ids=["contraction", "rowwise", "pointwise"],
)
def test_offsets_beyond_32_bits_are_computed_in_64(
    subject: Kernel, wide_index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    pointer_schedules = [s for s in offered_schedules(subject, H200) if dict(s.knobs).get("LOADS") != "descriptor"]
    schedule: Schedule = pointer_schedules[len(pointer_schedules) // 2]
    source = render(subject, schedule)
    assert wide_index in source.text
    compile_source(source, H200, tmp_path)


def test_small_tensors_keep_32_bit_offsets() -> None:
    subject = Kernel("rowwise", softmax((16384,), 4096, "bfloat16"))
    assert all("int64" not in render(subject, schedule).text for schedule in offered_schedules(subject, H200))
