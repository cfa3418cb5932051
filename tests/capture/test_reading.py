"""What code reads while it is captured: a value that would be frozen is refused in words, all else isn't."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._dynamo.tensor_version_op import _tensor_version
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention

from engine.capture.errors import DataDependentError, UnsupportedOpError
from engine.capture.live import capture_call
from engine.capture.reading import VALUE_TEXT

X, HELD, WHOLE = torch.randn(4, 4), torch.tensor(2.0), torch.tensor(1)
READS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "item": lambda x: x * HELD.item(),
    "of a result": lambda x: x * float(HELD * 2.0),
    "tolist": lambda x: x * HELD.tolist(),
    "alpha": lambda x: torch.add(x, x, alpha=HELD),
    "dim": lambda x: x.sum(dim=WHOLE),
    "full": lambda x: x + torch.full((4,), HELD),
    "a list": lambda x: x * torch.tensor([HELD, 1.0, 1.0, 1.0]),
    "equal": lambda x: x * 2.0 if torch.equal(HELD, HELD) else x * 3.0,
}
ASKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "_version": lambda x: x * x._version,
    "_base": lambda x: x * 2.0 if x._base is None else x * 3.0,
    "is_inference": lambda x: x * 2.0 if x.is_inference() else x * 3.0,
}


@pytest.mark.parametrize("what", READS)
def test_a_value_that_is_read_is_refused(what: str) -> None:
    with pytest.raises(DataDependentError) as refused:
        capture_call(READS[what], (X,), {})
    assert str(refused.value) == VALUE_TEXT


@pytest.mark.parametrize("what", ASKS)
def test_what_a_stand_in_answers_otherwise_is_refused(what: str) -> None:
    with pytest.raises(DataDependentError, match=f"for its {what}"):
        capture_call(ASKS[what], (X,), {})


def test_the_version_that_a_graph_of_torch_compile_asks_for_is_refused() -> None:
    def asking(x: torch.Tensor) -> torch.Tensor:
        return x * (_tensor_version(HELD) + 1)

    with pytest.raises(DataDependentError, match="for its _version"):
        capture_call(asking, (X,), {})


LIBRARY = torch.library.Library("of_reading", "DEF")
LIBRARY.define("doubled(Tensor a) -> Tensor")
LIBRARY.impl("doubled", lambda a: a * 2.0, "CompositeImplicitAutograd")


@pytest.mark.parametrize("overload", ["", "default"])
def test_an_op_of_python_code_is_refused(overload: str) -> None:
    packet = torch.ops.of_reading.doubled
    op = getattr(packet, overload) if overload else packet
    with pytest.raises(DataDependentError) as refused:
        capture_call(lambda x: op(x) + 1.0, (X,), {})
    assert str(refused.value) == "It calls the op of_reading::doubled, whose Python code can't be followed."
    assert capture_call(lambda x: torch.ops.aten.relu(x), (X,), {}).sources == (0,)


def test_a_question_about_gradients_counts_where_an_argument_wants_them() -> None:
    def asking(x: torch.Tensor) -> torch.Tensor:
        return x * 2.0 if x.requires_grad else x * 3.0

    assert capture_call(asking, (X,), {}).sources == (0,)
    with pytest.raises(DataDependentError, match="requires_grad"):
        capture_call(asking, (X.clone().requires_grad_(),), {})


def test_tensors_that_are_computed_with_are_inputs_and_one_given_twice_is_one() -> None:
    assert len(capture_call(lambda x: (x * HELD).clamp(max=HELD), (X,), {}).sources) == 2
    assert capture_call(lambda a, b: a * 2.0 if a is b else a * b, (X, X), {}).sources == (0,)
    assert capture_call(lambda a, b: a * 2.0 if a is b else a * b, (X, X.clone()), {}).sources == (0, 1)


def branching(x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.cond(x.sum() > 0, lambda a: a * 2.0, lambda a: a - 1.0, (x,))
    return made


def looping(x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), (torch.zeros((), dtype=int), x))[
        1
    ]
    return made


def attending(x: torch.Tensor) -> torch.Tensor:
    whole = x.expand(1, 1, 4, 4)
    made: torch.Tensor = flex_attention(whole, whole, whole, score_mod=lambda s, b, h, q, k: s + (q - k))
    return made


@pytest.mark.parametrize(
    ("name", "function"), [("cond", branching), ("while_loop", looping), ("flex_attention", attending)]
)
@pytest.mark.filterwarnings("ignore")
def test_code_as_an_argument_is_refused_and_torch_compiles_it_afterwards(
    name: str, function: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    with torch.no_grad():
        with pytest.raises(UnsupportedOpError) as refused:
            capture_call(function, (X,), {})
        assert (
            str(refused.value) == f"It uses {name}, which takes code as its argument: no kernel is generated for that."
        )
        assert function(X).shape[-2:] == X.shape


def test_what_the_code_compiles_itself_is_compiled_later_all_the_same() -> None:
    compiled: list[object] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        compiled.append(graph)
        return graph

    inner = torch.compile(lambda x: x.sin() * 2.0, backend=backend)
    assert capture_call(lambda x: inner(x) + 1.0, (X,), {}).sources == (0,)
    assert not compiled
    inner(X)
    assert len(compiled) == 1
