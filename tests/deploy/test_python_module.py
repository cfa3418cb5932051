"""An exported module runs in a process that has torch and triton and not this package, and gives what eager gives."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.codegen import offered_schedules, render
from engine.deploy import ModuleOrigin, deployment, python_module
from engine.deploy.python_module import comment, input_names
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.ir.plan import BufferView, Grouping, KernelCall, Program
from engine.prior import ColdModel
from engine.store import Store
from engine.vocabulary import Context, Schedule, Target
from tests.codegen.attention_bodies import attention

CONTEXT = Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8")
ORIGIN = ModuleOrigin("0.1", 'emmy export --python -o "x.py"\nimport os', ("emmy tune --code 'f()'",), CONTEXT)


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec.contiguous(shape, dtype)


def exported(program: Program, tmp_path: Path, last: bool = False) -> str:
    """The module of a program that nobody measured: the prior decides."""
    space = grouping_space(program.graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1 if last else 0])
    with Store.open(tmp_path / "tune.db") as store:
        store.record_context(CONTEXT, Target())
        return python_module(
            program, deployment(space.grouping(path), store, CONTEXT.key, Target(), ColdModel()), ORIGIN
        )


def run_alone(text: str, check: str, tmp_path: Path, *, interpret: bool = True) -> str:
    """Run the module and a check in a bare process where `engine` can't be imported; the check's output."""
    (tmp_path / "tuned.py").write_text(text)
    (tmp_path / "check.py").write_text(
        "import sys\nsys.modules['engine'] = sys.modules['emmy_tui'] = None\nimport torch, tuned\n"
        + textwrap.dedent(check)
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0", "PYTHONPATH": ""}
    child = subprocess.run(
        [sys.executable, "check.py"], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert child.returncode == 0, child.stderr[-3000:]
    return child.stdout


def mlp() -> Graph:
    """A scaled linear layer with its norm weight folded where that is an option, a residual, and two outputs."""
    b = GraphBuilder()
    x = b.input(spec(16, 64), "x")
    gain = b.input(spec(64), "model.norm.weight", weight=True)
    up = b.input(spec(32, 64), "model.up.weight", weight=True)
    mean = b.add("mean", b.add("mul", x, x), axes=(1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    normed = b.add("mul", b.add("mul", x, scale), gain)
    product = b.add("matmul", normed, b.view(up, (64, 32), (1, 64)))
    hidden = b.add("silu", product)
    return b.build(hidden, b.add("sum", hidden, axes=(1,)), b.add("mul", x, b.add("exp", gain)))


EAGER = """
def eager(x, gain, up):
    hidden = torch.nn.functional.silu((x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * gain) @ up.T)
    return hidden, hidden.sum(1, keepdim=True), x * gain.exp()
torch.manual_seed(0)
x, gain, up = torch.randn(16, 64), torch.randn(64), torch.randn(32, 64)
def close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)
"""


@pytest.mark.parametrize("last", [False, True])
def test_a_module_gives_what_eager_gives_without_this_package(tmp_path: Path, last: bool) -> None:
    text = exported(Program(mlp(), 'f(x)\n"""\nimport os'), tmp_path, last)
    check = (
        EAGER
        + """
close(tuned.run(x, gain, up), eager(x, gain, up))
first = tuned.run(x, gain, up)
second = tuned.run(2 * x, gain, up)
close(first, eager(x, gain, up))
gain.mul_(3)
close(tuned.run(x, gain, up), eager(x, gain, up))
gain = torch.nn.Parameter(torch.randn(64))
tuned.prepare(*[{"model_norm_weight": gain, "model_up_weight": up}[n] for n in tuned.prepare.__code__.co_varnames])
close(tuned.run(x, gain, up), eager(x, gain, up))
big = torch.randn(20, 64)
close(tuned.run(big[4:], gain, up), eager(big[4:], gain, up))
wide = torch.randn(64, 16).T
close(tuned.run(wide, gain, up), eager(wide, gain, up))
for bad in (torch.randn(8, 64), x.double(), "x"):
    try:
        tuned.run(bad, gain, up)
    except (ValueError, TypeError) as error:
        print(error)
"""
    )
    said = run_alone(text, check, tmp_path).splitlines()
    assert said[0].startswith("x is (8, 64) torch.float32, and the kernels are for (16, 64) torch.float32")
    assert said[1].startswith("x is (16, 64) torch.float64")
    assert said[2] == "x is no tensor"


def test_calls_of_libraries_and_moved_values_run_through_torch(tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input(spec(8, 12), "class")
    table = b.input(spec(12), "class", weight=True)
    arguments = arguments_to_json([{"tensor": 0}, 1], {})
    summed = b.extern("aten.cumsum.default", (b.add("exp", x),), arguments, spec(8, 12))
    turned = b.add("roll", b.add("cat", table, table, axis=0), axis=0, shift=3)
    graph = b.build(b.add("mul", summed, b.view(turned, (12,), (1,), 2)), b.view(summed, (12, 8), (1, 12)))
    check = """
    x, t = torch.randn(8, 12), torch.randn(12)
    def eager(x, t):
        summed = x.exp().cumsum(1)
        return summed * torch.roll(torch.cat([t, t]), -3)[2:14], summed.T
    for one, other in zip(tuned.run(x, t), eager(x, t), strict=True):
        torch.testing.assert_close(one, other)
    print(tuned.run.__code__.co_varnames)
    """
    text = exported(Program(graph, "moved"), tmp_path)
    assert "torch.ops.aten.cumsum.default(" in text
    assert run_alone(text, check, tmp_path).strip() == "('xclass', 'xclass_1')"


def test_one_of_several_results_and_a_text_run_through_torch(tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input(spec(8, 12), "x")
    doubled = b.add("exp", x)
    places = TensorSpec.contiguous((8, 12), "int64")
    ordered = b.extern("aten.sort.default", (doubled,), arguments_to_json([{"tensor": 0}, 1, True], {}), places, 1)
    rounded = arguments_to_json([{"tensor": 0}, 3], {"rounding_mode": "floor"})
    graph = b.build(b.extern("aten.div.Tensor_mode", (ordered,), rounded, places))
    check = """
    x = torch.randn(8, 12)
    print(torch.equal(tuned.run(x), torch.sort(x, 1, descending=True)[1] // 3))
    """
    text = exported(Program(graph, "sorted"), tmp_path)
    assert run_alone(text, check, tmp_path).strip() == "True"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_module_says_what_it_needs(tmp_path: Path) -> None:
    check = """
    for work in (tuned.run, tuned.PROGRAM.capture):
        try:
            work(torch.randn(16, 64), torch.randn(64), torch.randn(32, 64))
        except ValueError as error:
            print(error)
    """
    said = run_alone(exported(Program(mlp(), "mlp"), tmp_path), check, tmp_path, interpret=False).splitlines()
    assert len(said) == 2
    assert set(said) == {
        "the kernels need a CUDA GPU, which isn't here, and CUDA tensors, and the inputs are on the cpu"
    }


@pytest.mark.parametrize("acf", ["", "a1b2"])
def test_descriptors_are_made_of_the_storages(tmp_path: Path, acf: str) -> None:
    b = GraphBuilder()
    left, right = b.input(spec(64, 32), "x"), b.input(spec(48, 32), "w")
    program = Program(b.build(b.add("matmul", left, b.view(right, (32, 48), (1, 32)))), "x @ w.T")
    space = grouping_space(program.graph)
    with Store.open(tmp_path / "tune.db") as store:
        store.record_context(CONTEXT, Target())
        chosen = deployment(space.grouping(()), store, CONTEXT.key, Target(), ColdModel())
    (item,) = chosen.kernels
    assert item.chosen is not None
    schedule = next(
        one
        for one in offered_schedules(item.kernel, Target())
        if (one["LOADS"], one["PRECISION"]) == ("descriptor", "ieee")
    )
    schedule = Schedule.of({**schedule.as_dict(), "ACF": acf} if acf else schedule.as_dict())
    line = replace(item.chosen, schedule=schedule)
    chosen = replace(chosen, kernels=(replace(item, chosen=line),))
    text = python_module(program, chosen, ORIGIN)
    assert "TensorDescriptor(_view(b[0], (64, 32), (32, 1), 0)" in text
    assert ("controls file a1b2, which this file doesn't apply" in text) is bool(acf)
    check = """
    x, w = torch.randn(64, 32), torch.randn(48, 32)
    torch.testing.assert_close(tuned.run(x, w), x @ w.T)
    padded = torch.randn(3 + 48 * 32)[3:].view(48, 32)
    torch.testing.assert_close(tuned.run(x, padded), x @ padded.T)
    """
    run_alone(text, check, tmp_path)


def test_the_text_holds_no_line_of_a_databases_texts(tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input(spec(64), 'a"; import os; os.system("x") #')
    text = exported(Program(b.build(b.add("exp", x)), "é\u2028import os\nimport os"), tmp_path)
    assert text.isascii()
    imported = {node.names[0].name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)}
    assert imported == {"contextlib", "torch", "triton", "triton.language"}


def test_names_are_safe_and_differ() -> None:
    assert input_names(("w.0", "w_0", "run", "1", "lambda", "", "é"), 8) == (
        *("w_0", "w_0_1", "run_2", "x1", "xlambda", "input5", "input6", "input7"),
    )
    assert comment("a\nb\ud800\u2028") == "# a\\nb\\ud800\\u2028"


COMPILED = """
import triton
from triton._C.libtriton import native_specialize_impl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.experimental.gluon._runtime import GluonASTSource
function, launched = tuned.kernel_0, []
class Recorder:
    def __getitem__(self, grid):
        return lambda *args, **options: launched.append((grid, args, options))
tuned.kernel_0, tuned._on = Recorder(), lambda device: tuned.contextlib.nullcontext()
q, k, v = (torch.zeros(shape, dtype=torch.bfloat16) for _, shape, *_ in tuned.INPUTS)
tuned.run(q, k, v)
((grid, args, options),) = launched
told = {name: native_specialize_impl(CUDABackend, x, False, True, True)[0] for name, x in zip(function.arg_names, args)}
source = GluonASTSource(function, told, {}, {})
built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
print(grid, options, built.metadata.num_warps, built.metadata.shared, ".target sm_90a" in built.asm["ptx"])
print(*dict.fromkeys(told.values()), sep="|")
"""


def test_a_kernel_whose_warps_have_roles_compiles_from_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", causal=True))
    schedule = next(one for one in offered_schedules(kernel, Target()) if one["OVERLAP"] == "persistent")
    specs = (*kernel.body.input_specs(), *kernel.body.output_specs())
    views = [BufferView(number, spec) for number, spec in enumerate(specs)]
    grouping = Grouping(specs, (KernelCall(kernel, tuple(views[:3]), (3,)),), (views[3],))
    with Store.open(tmp_path / "tune.db") as store:
        store.record_context(CONTEXT, Target())
        chosen = deployment(grouping, store, CONTEXT.key, Target(), ColdModel())
    (item,) = chosen.kernels
    assert item.chosen is not None
    chosen = replace(chosen, kernels=(replace(item, chosen=replace(item.chosen, schedule=schedule)),), pdl=True)
    text = python_module(Program(kernel.body, "attention"), chosen, ORIGIN)
    assert "GluonDescriptor(_view(b[0], (2048, 2048), (2048, 1), 0), [2048, 2048], [2048, 1], [64, 128]" in text
    assert "launch_pdl" not in text
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    launch, types = run_alone(text, COMPILED, tmp_path, interpret=False).splitlines()
    assert launch == "(132, 1, 1) {'num_warps': 4, 'num_stages': 2} 12 196920 True"
    assert types.split("|") == list(dict.fromkeys(argument.type for argument in render(kernel, schedule).arguments))
