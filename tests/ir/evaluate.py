"""A numpy evaluator of graphs: slow, obvious, in float64, the meaning that every grouping is held against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.plan import Grouping

_UNARY = {
    "neg": np.negative,
    "exp": np.exp,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "abs": np.abs,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "log": np.log,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "gelu": np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), otypes=[np.float64]),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sin": np.sin,
    "cos": np.cos,
    "logical_not": np.logical_not,
    "cast": lambda x: x,
    "copy": lambda x: x,
}
_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
}
_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}

Array = np.ndarray


def read(storage: Array, spec: TensorSpec) -> Array:
    """A view of flat storage."""
    assert spec.storage_elements <= storage.size
    strides = tuple(stride * storage.itemsize for stride in spec.strides)
    return as_strided(storage[spec.offset :], spec.shape, strides, writeable=False)


def evaluate(graph: Graph, storages: Sequence[Array]) -> list[Array]:
    """Outputs of a graph whose inputs lie in flat float64 storages."""
    held: list[Array] = []
    values: list[Array] = []
    given = dict(zip(graph.inputs, storages, strict=True))
    for index, op in enumerate(graph.ops):
        if op.kind == "input":
            held.append(given[index])
            values.append(read(given[index], op.out))
        elif op.kind == "view":
            held.append(held[op.inputs[0]])
            values.append(read(held[index], op.out))
        else:
            value = _compute(op, [values[i] for i in op.inputs])
            assert value.shape == op.out.shape
            values.append(value)
            held.append(np.ascontiguousarray(value).reshape(-1))
    return [values[i] for i in graph.outputs]


def run_plan(plan: Grouping, storages: Sequence[Array]) -> list[Array]:
    """Outputs of a grouping, kernel by kernel."""
    buffers: dict[int, Array] = dict(enumerate(storages))
    steps = [(step.body, step.arguments, step.results) for step in plan.prepared]
    for body, views, results in (*steps, *((c.kernel.body, c.arguments, c.results) for c in plan.calls)):
        arguments = [buffers[view.buffer] for view in views]
        for buffer, value in zip(results, evaluate(body, arguments), strict=True):
            buffers[buffer] = np.ascontiguousarray(value).reshape(-1)
    return [read(buffers[view.buffer], view.spec) for view in plan.outputs]


def random_storages(graph: Graph, seed: int = 0) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.uniform(0.2, 1.5, spec.storage_elements) for spec in graph.input_specs()]


def _compute(op: Op, arguments: list[Array]) -> Array:
    if op.kind == "constant":
        return np.asarray(float(op.attribute("value")))
    if op.kind == "iota":
        return np.arange(op.out.numel, dtype=np.float64).reshape(op.out.shape)
    if op.kind == "roll":
        return np.roll(arguments[0], -op.attribute("shift"), op.attribute("axis"))
    if op.kind == "cat":
        return np.concatenate(arguments, op.attribute("axis"))
    if op.kind == "gather":
        return arguments[0][arguments[1].astype(np.int64) % len(arguments[0])]
    if op.kind == "matmul":
        return np.matmul(*arguments)
    if op.kind == "where":
        return np.where(arguments[0] != 0, arguments[1], arguments[2])
    if op.kind in _REDUCTIONS:
        return _REDUCTIONS[op.kind](arguments[0], axis=op.attribute("axes"), keepdims=True)
    function = _UNARY.get(op.kind) or _BINARY[op.kind]
    return np.asarray(function(*arguments), dtype=np.float64)
