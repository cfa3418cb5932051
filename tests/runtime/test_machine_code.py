"""A binary that ends early is told from a whole one, wherever it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime import compile_source
from engine.runtime.machine_code import is_whole
from engine.vocabulary import Target
from tests.runtime.sources import add_source


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("machine_code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
        return bytes(compile_source(add_source(), Target(), folder).kernel.asm["cubin"])


def test_what_ptxas_makes_is_whole(binary: bytes) -> None:
    assert is_whole(binary)


@given(share=st.floats(0.0, 1.0, exclude_max=True))
def test_a_part_of_it_is_not(binary: bytes, share: float) -> None:
    assert not is_whole(binary[: int(share * len(binary))])


def test_a_page_less_is_not(binary: bytes) -> None:
    assert not is_whole(binary[:-1])
    assert not is_whole(binary[: 4096 * ((len(binary) - 1) // 4096)])


@given(st.binary(max_size=300))
def test_other_bytes_are_not(data: bytes) -> None:
    assert not is_whole(data)
