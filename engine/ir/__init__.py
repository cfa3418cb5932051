"""Programs as data: graphs, kernels and plans, their keys, their JSON form and their verification."""

from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.shapes import GraphError
from engine.ir.slices import cut_slice
from engine.ir.verify import verify

__all__ = ["Graph", "GraphBuilder", "GraphError", "Kernel", "Op", "TensorSpec", "cut_slice", "verify"]
