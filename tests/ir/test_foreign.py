from __future__ import annotations

import json

import pytest

from engine.ir import GraphError, Kernel
from engine.ir.foreign import FOREIGN, NO_BODY, Identity, foreign_key
from engine.ir.json_form import kernel_from_json, kernel_to_json
from engine.ir.verify import verify
from engine.ir.verify_plan import verify_kernel
from tests.ir.graphs import softmax

IDENTITY = Identity.of("convolution_kernel", "4096x4096", ("tile", "block"))
KERNEL = Kernel(FOREIGN, NO_BODY, "convolution_kernel", IDENTITY)


def test_it_passes_every_door() -> None:
    assert verify(NO_BODY) is NO_BODY
    assert verify_kernel(KERNEL) is KERNEL
    assert (KERNEL.flops, KERNEL.bytes_moved, KERNEL.shape_text) == (0, 0, "4096x4096")
    read = kernel_from_json(kernel_to_json(KERNEL))
    assert (read, read.key, read.label) == (KERNEL, KERNEL.key, KERNEL.label)


def test_its_key_is_its_identity() -> None:
    assert KERNEL.key == foreign_key(Identity.of("convolution_kernel", "4096x4096", ("block", "tile")), 24)
    others = [
        Identity.of("convolution", "4096x4096", ("block", "tile")),
        Identity.of("convolution_kernel", "4096x4097", ("block", "tile")),
        Identity.of("convolution_kernel", "4096x4096", ("block",)),
    ]
    assert len({KERNEL.key, *(Kernel(FOREIGN, NO_BODY, "", other).key for other in others)}) == 4


def test_our_kernels_say_nothing_of_it() -> None:
    assert "foreign" not in json.loads(kernel_to_json(Kernel("rowwise", softmax())))


@pytest.mark.parametrize(
    "kernel",
    [
        Kernel(FOREIGN, NO_BODY),
        Kernel(FOREIGN, softmax(), "", IDENTITY),
        Kernel("rowwise", softmax(), "", IDENTITY),
        Kernel(FOREIGN, NO_BODY, "", Identity("", "", ("a",))),
        Kernel(FOREIGN, NO_BODY, "", Identity("a\nb", "", ("a",))),
        Kernel(FOREIGN, NO_BODY, "", Identity("k", "", ("b", "a"))),
        Kernel(FOREIGN, NO_BODY, "", Identity("k" * 201, "", ())),
    ],
    ids=["no identity", "a body", "our family", "no name", "control character", "unsorted", "long"],
)
def test_what_is_no_foreign_kernel_is_refused(kernel: Kernel) -> None:
    with pytest.raises(GraphError):
        verify_kernel(kernel)
    with pytest.raises(GraphError):
        kernel_from_json(kernel_to_json(kernel))


@pytest.mark.parametrize("broken", [{"parameters": "ab"}, {"parameters": [1]}, {"name": 3}, {"problem": None}])
def test_hostile_json_is_refused(broken: dict[str, object]) -> None:
    data = json.loads(kernel_to_json(KERNEL))
    data["foreign"] |= broken
    with pytest.raises(GraphError):
        kernel_from_json(json.dumps(data))


def test_an_identity_is_printable_and_short() -> None:
    tidied = Identity.of("a\x1b[31m\n b", "x" * 500, ("q", "q"))
    assert tidied.legal
    assert (tidied.name, len(tidied.problem), tidied.parameters) == ("a [31m b", 200, ("q",))
