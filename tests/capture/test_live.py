"""A call with tensors that exist: its program is the one that a tuner captures, and each input is known."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.capture import TargetOptions, capture, parse_target
from engine.capture import binding as binding_module
from engine.capture.binding import bind_target
from engine.capture.configurations import Configured
from engine.capture.errors import CaptureError, DataDependentError, UnsupportedOpError, UnsupportedTensorError
from engine.capture.live import LiveProgram, capture_call
from engine.capture.target import ModelTarget
from engine.runtime.reference import evaluate
from tests.capture.models import captured, configuration

pytestmark = pytest.mark.filterwarnings("ignore")


def run(live: LiveProgram, tensors: list[torch.Tensor]) -> object:
    """The call by its program, op by op."""
    inputs = [source if isinstance(source, torch.Tensor) else tensors[source] for source in live.sources]
    return live.rebuild(evaluate(live.program.graph, inputs, None))


def test_a_module_holds_its_weights_and_the_arguments_are_positions() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.ReLU()).eval()
    x = torch.randn(3, 8)
    live = capture_call(module, (x,), {})
    assert sorted(live.program.graph.labels) == ["0.bias", "0.weight", "input"]
    held = {label: source for label, source in zip(live.program.graph.labels, live.sources, strict=True)}
    assert held["input"] == 0
    assert held["0.weight"].data_ptr() == module[0].weight.data_ptr()
    assert {live.program.graph.labels[i] for i in live.program.graph.weights} == {"0.weight", "0.bias"}
    assert torch.allclose(run(live, [x]), module(x))


def test_what_is_returned_is_put_together_again() -> None:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    live = capture_call(lambda a, *, b: {"n": 3, "l": [a + b, None, a.t()]}, (x,), {"b": y})
    found = run(live, [x, y])
    assert (found["n"], found["l"][1]) == (3, None)
    assert torch.equal(found["l"][0], x + y)
    assert torch.equal(found["l"][2], x.t())


def test_a_tensor_that_is_returned_twice_is_one_and_equal_ones_are_two() -> None:
    def function(x: torch.Tensor) -> object:
        doubled = x * 2.0
        return doubled, {"again": doubled, "equal": x * 2.0, "number": 1}

    live = capture_call(function, (torch.randn(4),), {})
    one, rest = live.rebuild([torch.ones(4) for _ in range(3)])
    assert rest["again"] is one
    assert rest["equal"] is not one
    assert rest["number"] == 1


def test_a_size_that_is_returned_is_one() -> None:
    x = torch.randn(4, 3)
    for function in (lambda a: (a * 2.0, a.shape), lambda a: (a * 2.0, {"size": [a.t().shape]})):
        live = capture_call(function, (x,), {})
        found, wanted = run(live, [x]), function(x)
        size, same = (found[1], wanted[1]) if isinstance(found[1], tuple) else (found[1]["size"][0], x.t().shape)
        assert type(size) is torch.Size
        assert size == same


def test_tensors_that_a_function_closes_over_are_held() -> None:
    scale = torch.randn(4)
    x = torch.randn(2, 4)
    live = capture_call(lambda a: a * scale, (x,), {})
    assert any(isinstance(source, torch.Tensor) and torch.equal(source, scale) for source in live.sources)
    assert torch.equal(run(live, [x]), x * scale)


def test_tensors_that_are_said_to_stay_are_weights() -> None:
    x, w = torch.randn(2, 4), torch.randn(4, 4)
    live = capture_call(lambda a, b: a @ b, (x, w), {}, weights=frozenset({1}))
    assert [live.program.graph.labels[i] for i in live.program.graph.weights] == ["b"]


@pytest.mark.parametrize(
    ("function", "kind", "sentence"),
    [
        (lambda a: a.add_(1), UnsupportedOpError, "changes one of its arguments in place"),
        (lambda a: a[a > 0] * 2, DataDependentError, "asks for the values"),
        (lambda a: a + torch.randn(4, 4), UnsupportedOpError, "draws values of its own"),
        (lambda a: (a * 2, object()), CaptureError, "returns a object"),
        (nn.BatchNorm1d(4), UnsupportedOpError, "changes the buffer"),
        (
            lambda a: a.view(torch.int32) + 1,
            UnsupportedOpError,
            "aten.view.dtype as it is called here is not",
        ),
        (lambda a: a.long() @ a.long(), UnsupportedOpError, "The matmul of the program is not supported: multiplies"),
        (lambda a: torch.from_numpy(a.numpy()) * 2, DataDependentError, "It reads the value of a tensor in Python"),
        (lambda a: a * (a.data_ptr() % 7), DataDependentError, "It asks a tensor for its data_ptr"),
        (torch.func.grad(lambda a: (a * a).sum()), UnsupportedOpError, "torch.export can't capture the call"),
    ],
)
def test_what_kernels_cant_do_as_the_call_does_is_refused(
    function: object, kind: type[CaptureError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence) as raised:
        capture_call(function, (torch.randn(4, 4),), {})
    assert not any(word in str(raised.value) for word in ("Fake", "subclass", "compiled_fn", "iterable", "op 2"))
    assert issubclass(UnsupportedTensorError, CaptureError)


def test_torchs_own_parts_are_not_named() -> None:
    x = torch.randn(4, 4)
    with pytest.raises(UnsupportedOpError, match=r"torch\.export can't capture the call\.$"):
        capture_call(lambda a, b: (a.add_(1), b * 2), (x, x), {})
    with pytest.raises(UnsupportedOpError, match=r"at `raise AssertionError.*` \(test_live\.py, line \d+\)\.$"):
        capture_call(_asserting, (x,), {})
    with pytest.raises(UnsupportedOpError, match="ValueError: no such width"):
        capture_call(_refusing, (x,), {})


def _asserting(a: torch.Tensor) -> torch.Tensor:
    raise AssertionError


def _refusing(a: torch.Tensor) -> torch.Tensor:
    raise ValueError("no such width")


@pytest.mark.parametrize(
    "code",
    [
        "m = nn.Sequential(nn.Linear(16, 32), nn.SiLU())\nx = torch.randn(8, 16)\nm(x)",
        "torch.softmax(torch.randn(4, 8).t(), -1)",
    ],
)
def test_a_bound_expression_is_the_program_that_was_captured(code: str) -> None:
    bound = bind_target(parse_target(code), "cpu")
    live = capture_call(bound.function, bound.args, bound.kwargs)
    wanted = capture(code).graph
    graph = live.program.graph
    assert (graph.ops, graph.inputs, graph.outputs) == (wanted.ops, wanted.inputs, wanted.outputs)
    assert graph.weights == wanted.weights
    found = run(live, [leaf for leaf in bound.args if isinstance(leaf, torch.Tensor)])
    assert torch.allclose(found, bound(), atol=1e-5)
    assert torch.equal(bind_target(parse_target(code), "cpu")(), bound())


@pytest.mark.parametrize("layer", [0, None])
def test_a_bound_model_is_the_program_that_was_captured(layer: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    options = TargetOptions(layer, "bfloat16", 8, 1)
    monkeypatch.setattr(binding_module, "configure", lambda _: Configured(configuration("qwen3"), "a test"))
    bound = bind_target(ModelTarget("a test", "qwen3", options), "cpu")
    live = capture_call(bound.function, bound.args, bound.kwargs)
    wanted = captured("qwen3", options)
    assert (live.program.graph.ops, live.program.graph.weights) == (wanted.ops, wanted.weights)
    assert bool(torch.as_tensor(bound.args[0] if bound.args else bound.kwargs["input_ids"]).any())


def test_a_function_of_a_file_is_bound_with_its_examples(tmp_path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import torch\ndef f(x):\n    return x * 2\ndef example_inputs():\n    return torch.ones(3, 3)\n")
    bound = bind_target(parse_target(f"{file}:f", TargetOptions()), "cpu")
    assert torch.equal(bound(), torch.full((3, 3), 2.0))


def test_several_tensors_of_places_on_the_first_axes() -> None:
    table = torch.randn(3, 5, 4)
    rows, columns = torch.tensor([[0], [-1]]), torch.tensor([[0, -1, 3]])
    live = capture_call(lambda t, i, j: t[i, j] + F.relu(t[i, j]), (table, rows, columns), {})
    found = run(live, [table, rows, columns])
    assert torch.equal(found, table[rows, columns] + F.relu(table[rows, columns]))
