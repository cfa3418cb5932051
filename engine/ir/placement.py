"""Where in its buffer a kernel's input lies, and how much of that a kernel knows: no more than its structural key.

A text is shared by every kernel of its key, and equal kernels read one buffer at different places: the parts of a
chunked tensor, the gates of an LSTM. So a body is written as if each input began at the last 16-byte boundary before
its first element, and whoever launches passes the address of that boundary. Alignment, which a time depends on, is
kept, and all that lies before it is the launch's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.views import storage_roots

ALIGNMENT_BYTES = 16
"""The widest vector load; an offset's remainder to it is all that a time depends on."""


def passed_offset(offset: int, element_bytes: int) -> int:
    """What of an offset (elements) the address that a kernel is given holds: all of it up to a 16-byte boundary.

    >>> passed_offset(10, 4), passed_offset(8, 2), passed_offset(3, 4)
    (8, 8, 0)
    """
    return offset - offset % (ALIGNMENT_BYTES // element_bytes)


def passed_to(spec: TensorSpec) -> int:
    """The element of an input's storage whose address a kernel is given; of an empty input the first one."""
    return passed_offset(spec.offset, spec.element_bytes) if spec.numel else 0


def placed(body: Graph) -> Graph:
    """The body as a kernel sees it: inputs, and views of them, counted from the addresses that it is given.

    A view that reads before its input's boundary has a negative offset. A body whose inputs begin at their buffers'
    first element is itself.
    """
    if not any(body.ops[index].out.offset for index in body.inputs):
        return body
    return _placed(body)


@lru_cache(maxsize=1024)
def _placed(body: Graph) -> Graph:
    return replace(
        body,
        ops=tuple(
            _moved(op, body.ops[root]) if body.ops[root].kind == "input" else op
            for op, root in zip(body.ops, storage_roots(body), strict=True)
        ),
    )


def _moved(op: Op, root: Op) -> Op:
    return replace(op, out=replace(op.out, offset=op.out.offset - passed_to(root.out)))
