"""Graphs, kernels, programs and groupings as JSON text, and back.

Reading is parsing and then verifying: what comes out of `*_from_json` is as safe as what this process built itself,
and everything that is off raises GraphError in one sentence. A number that JSON lacks (inf, nan) is written as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from engine.ir.foreign import Identity
from engine.ir.graph import Attribute, Graph, Op, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall, Preparation, Program
from engine.ir.shapes import GraphError
from engine.ir.verify import verify
from engine.ir.verify_plan import verify_body, verify_grouping
from engine.vocabulary import Option

MAX_TEXT = 64 * 2**20
"""Characters; a body with MAX_OPS ops needs a quarter of it."""

MAX_NOTE = 1000

T = TypeVar("T")


def graph_to_json(graph: Graph) -> str:
    return _dump(_graph_data(graph))


def graph_from_json(text: str) -> Graph:
    """Raises GraphError unless the text is a verified graph."""
    return _read(text, _graph)


def kernel_to_json(kernel: Kernel) -> str:
    return _dump(_kernel_data(kernel))


def kernel_from_json(text: str) -> Kernel:
    """Raises GraphError unless the text is a kernel with a verified body of its family."""
    return _read(text, _kernel)


def program_to_json(program: Program) -> str:
    data = {"graph": _graph_data(program.graph), "target": program.target, "device": program.device}
    return _dump({**data, "notes": program.notes} if program.notes else data)


def program_from_json(text: str) -> Program:
    """Raises GraphError unless the text is a program with a verified graph."""
    return _read(text, _program)


def grouping_to_json(grouping: Grouping) -> str:
    """Each distinct kernel is written once, however often it is called."""
    called = [_dump(_kernel_data(call.kernel)) for call in grouping.calls]
    kernels = list(dict.fromkeys(called))
    prepared = [_preparation_data(preparation) for preparation in grouping.prepared]
    return _dump(
        {
            "buffers": [_spec_data(spec) for spec in grouping.buffers],
            "kernels": [json.loads(text) for text in kernels],
            "calls": [
                {
                    "kernel": kernels.index(text),
                    "arguments": [_view_data(view) for view in call.arguments],
                    "results": call.results,
                }
                for call, text in zip(grouping.calls, called, strict=True)
            ],
            "outputs": [_view_data(view) for view in grouping.outputs],
            "decisions": [option.knobs for option in grouping.decisions],
            **({"prepared": prepared} if prepared else {}),
        }
    )


def grouping_from_json(text: str) -> Grouping:
    """Raises GraphError unless the text is a grouping whose kernels, buffers and views fit together."""
    return _read(text, _grouping)


def _dump(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _read(text: str, parse: Callable[[Any], T]) -> T:
    if len(text) > MAX_TEXT:
        raise GraphError(f"the JSON text has more than {MAX_TEXT} characters")
    try:
        return parse(json.loads(text))
    except GraphError:
        raise
    except KeyError as error:
        raise GraphError(f"the JSON text lacks the field {error}") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise GraphError(f"the JSON text is malformed: {type(error).__name__}: {str(error)[:120]}") from None


def _graph_data(graph: Graph) -> dict[str, object]:
    data: dict[str, object] = {
        "ops": [
            {
                "kind": op.kind,
                "inputs": op.inputs,
                **_spec_data(op.out),
                "attributes": {name: _plain(value) for name, value in op.attributes},
            }
            for op in graph.ops
        ],
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "labels": graph.labels,
    }
    return {**data, "weights": graph.weights} if graph.weights else data


def _graph(data: Any) -> Graph:
    ops = tuple(
        Op(
            _text(row["kind"]),
            _integers(row["inputs"]),
            _spec(row),
            tuple(sorted((name, _attribute(name, value)) for name, value in row["attributes"].items())),
        )
        for row in data["ops"]
    )
    labels = tuple(_text(label) for label in data["labels"])
    weights = _integers(data.get("weights", []))
    return verify(Graph(ops, _integers(data["inputs"]), _integers(data["outputs"]), labels, weights))


def _program(data: Any) -> Program:
    notes = tuple(_text(note) for note in data.get("notes", []))
    if not all(note.isprintable() and len(note) <= MAX_NOTE for note in notes):
        raise GraphError(f"a note is printable text of at most {MAX_NOTE} characters")
    return Program(_graph(data["graph"]), _text(data["target"]), _text(data["device"]), notes)


def _kernel_data(kernel: Kernel) -> dict[str, object]:
    data: dict[str, object] = {"family": kernel.family, "label": kernel.label, "body": _graph_data(kernel.body)}
    if kernel.foreign is not None:
        data["foreign"] = asdict(kernel.foreign)
    return data


def _kernel(data: Any) -> Kernel:
    body = _graph(data["body"])
    family, label = _text(data["family"]), _text(data["label"])
    foreign = _identity(data["foreign"]) if "foreign" in data else None
    verify_body(family, body, foreign)
    return Kernel(family, body, label, foreign)


def _identity(data: Any) -> Identity:
    if not isinstance(data["parameters"], list):
        raise GraphError("expected a list of parameter names")
    return Identity(_text(data["name"]), _text(data["problem"]), tuple(_text(name) for name in data["parameters"]))


def _grouping(data: Any) -> Grouping:
    kernels = [_kernel(row) for row in data["kernels"]]
    calls = tuple(
        KernelCall(
            kernels[_integers([row["kernel"]])[0]],
            tuple(_view(view) for view in row["arguments"]),
            _integers(row["results"]),
        )
        for row in data["calls"]
    )
    decisions = tuple(Option(tuple((_text(name), _knob_value(value)) for name, value in o)) for o in data["decisions"])
    outputs = tuple(_view(view) for view in data["outputs"])
    buffers = tuple(_spec(row) for row in data["buffers"])
    prepared = tuple(_preparation(row) for row in data.get("prepared", []))
    return verify_grouping(Grouping(buffers, calls, outputs, decisions, prepared))


def _preparation_data(preparation: Preparation) -> dict[str, object]:
    arguments = [_view_data(view) for view in preparation.arguments]
    return {"body": _graph_data(preparation.body), "arguments": arguments, "results": preparation.results}


def _preparation(row: Any) -> Preparation:
    arguments = tuple(_view(view) for view in row["arguments"])
    return Preparation(_graph(row["body"]), arguments, _integers(row["results"]))


def _spec_data(spec: TensorSpec) -> dict[str, object]:
    return {"shape": spec.shape, "dtype": spec.dtype, "strides": spec.strides, "offset": spec.offset}


def _spec(row: Any) -> TensorSpec:
    offset = _integers([row["offset"]])[0]
    return TensorSpec(_integers(row["shape"]), _text(row["dtype"]), _integers(row["strides"]), offset)


def _view_data(view: BufferView) -> dict[str, object]:
    return {"buffer": view.buffer, **_spec_data(view.spec)}


def _view(row: Any) -> BufferView:
    return BufferView(_integers([row["buffer"]])[0], _spec(row))


def _plain(value: Attribute) -> object:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _attribute(name: str, value: Any) -> Attribute:
    if isinstance(value, list):
        return _integers(value)
    if name == "value" and value in ("inf", "-inf", "nan"):
        return float(value)
    if value is None or isinstance(value, int | float | str):
        return value
    raise GraphError(f"attribute {name[:40]!r} is neither a number nor a list of numbers")


def _integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        raise GraphError("expected a list of whole numbers")
    return tuple(values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise GraphError("expected text")
    return value


def _knob_value(value: Any) -> int | str | bool:
    if not isinstance(value, int | str):
        raise GraphError("a knob value is a whole number, a text, true or false")
    return value
