"""Names identify: kernels of one label are told apart, on every list and in every dialog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.deploying import Deploys
from emmy_tui.forbidding import CornerChoice
from emmy_tui.text import UNICODE, plain, width_of
from emmy_tui.widgets.deploy_list import deploy_line
from emmy_tui.widgets.kernel_name import SUFFIX, Names, suffixed, told_apart
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.store import Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, only_eight_warps_fail, over, press, schedules

KEYS = st.text("0123456789abcdef", min_size=6, max_size=12)


@given(st.lists(st.tuples(KEYS, st.sampled_from(("matmul", "sum"))), unique_by=lambda one: one[0]))
def test_suffixes_tell_apart_and_only_where_labels_repeat(kernels: list[tuple[str, str]]) -> None:
    suffixes = told_apart(kernels)
    assert len({(label, suffixes[key]) for key, label in kernels}) == len(kernels)
    for key, label in kernels:
        alone = [other for _, other in kernels].count(label) == 1
        assert suffixes[key] == "" if alone else key.startswith(suffixes[key])
        assert alone or len(suffixes[key]) >= SUFFIX


@given(st.text("abc", max_size=20), st.text("0123", min_size=4, max_size=6), st.integers(8, 30))
def test_the_label_is_cut_before_what_tells_it_apart(label: str, suffix: str, width: int) -> None:
    name = suffixed(label, suffix, width)
    assert width_of(name) <= width
    assert name.endswith(suffix)


def other_matmul() -> Kernel:
    build = GraphBuilder()
    left = build.input(TensorSpec.contiguous((256, 256), "float32"), "x")
    right = build.input(TensorSpec.contiguous((256, 256), "float32"), "weight")
    return Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")


async def test_pins_of_one_label_are_told_apart(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=8)
    other = other_matmul()
    with Store.open(path) as store:
        store.record_kernel(other)
        for kernel in (matmul(), other):
            store.record_pin(kernel.key, schedules(kernel, 1)[0], CONTEXT.key, author="ada")
    app = over(path)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "6")
        shown = [line.strip("│").split()[:2] for line in rows(app)[4:6]]
        assert shown == [["matmul", "512x512x512"], ["matmul", "256x256x256"]]


def test_what_deploys_is_told_apart_by_its_shape_where_that_is_shown() -> None:
    one = Deploys("abcdef", "matmul", "512x512", why="-")
    names = Names({"abcdef": "matmul"}, {"abcdef": ""}, {"abcdef": "abcd"})
    assert "matmul abcd " in plain(deploy_line(one, (12, 0, 20), UNICODE, names))
    assert "abcd" not in plain(deploy_line(one, (20, 24, 20), UNICODE, names))


@given(
    st.lists(
        st.tuples(KEYS, st.sampled_from(("matmul", "sum")), st.sampled_from(("8x8 f32", "8x8 bf16", "16x8 f32"))),
        unique_by=lambda one: one[0],
    ),
    st.integers(12, 40),
)
def test_names_tell_apart_whether_by_shape_or_by_key(kernels: list[tuple[str, str, str]], room: int) -> None:
    names = Names.of(kernels)
    width = names.column(16, room)
    assert 16 <= width <= max(16, room)
    shown = [names.name(key, width) for key, _, _ in kernels]
    assert len(set(shown)) == len(kernels)
    assert all(width_of(name) <= width for name in shown)


def test_a_shape_stands_beside_the_label_where_there_is_room() -> None:
    names = Names.of([("abcdef", "matmul", "512x512 f32"), ("bcdefa", "matmul", "256x512 f32"), ("c", "sum", "8")])
    assert names.name("abcdef", names.column(12, 30)) == "matmul 512x512"
    assert names.name("abcdef", 11) == "matmul abcd"
    assert names.name("c", 20) == "sum"


async def test_forbidden_corners_name_label_and_shape(tmp_path: Path) -> None:
    app = over(only_eight_warps_fail(fill(tmp_path / "tune.db")))
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "3", "F", "enter", "C")
        assert isinstance(app.screen, CornerChoice)
        assert f"for matmul {matmul().shape_text}" in screen_text(app)
        assert matmul().key[:12] not in screen_text(app)


async def test_the_scatter_names_its_kernel_in_a_narrow_panel(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db"))
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "4")
        app.prior.scatter.kernel, app.prior.scatter.label = matmul().key, f"matmul {matmul().shape_text}"
        app.prior.scatter.repaint()
        await pilot.pause()
        (title,) = (line for line in rows(app) if "Predicted vs measured" in line)
        assert "matmul" in title


async def test_what_a_model_was_fitted_to_elsewhere_is_said_to_be_elsewhere(tmp_path: Path) -> None:
    from emmy_tui.widgets.prior_panels import trained_lines
    from engine.deploy.prior_report import TrainedKernel

    app = over(fill(tmp_path / "tune.db"))
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "4")
        report = app.prior._report
        assert report is not None
        known = TrainedKernel(matmul().key, "c", "matmul", "contraction", "512x512", "", 9)
        unknown = TrainedKernel("feedfacecafe0123", "c", "", "", "", "", 3)
        text = "\n".join(
            plain(line) for line in trained_lines(replace(report, trained_on=(known, unknown)), 90, UNICODE)
        )
        assert "matmul 512x512" in text
        assert "feedfacecafe, recorded elsewhere" in text
