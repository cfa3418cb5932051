"""All of a storage is seen from any tensor that views a part of it, and a copy of it gives that tensor again."""

from __future__ import annotations

import pytest
import torch

from engine.runtime import whole_storage
from engine.runtime.memory import packed

BASE = torch.arange(24, dtype=torch.float32)
VIEWS = {
    "all of it": BASE,
    "a part": BASE[5:9],
    "transposed": BASE.view(4, 6).T,
    "overlapping": BASE.as_strided((3, 5), (1, 2), 7),
    "one place": BASE[3].expand(4, 4),
    "empty": BASE[24:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_gives_all_behind_it_in_place(name: str) -> None:
    view = VIEWS[name]
    whole = whole_storage(view)
    assert whole.data_ptr() == BASE.data_ptr()
    assert torch.equal(whole, BASE)
    again = whole.clone().as_strided(view.shape, view.stride(), view.storage_offset())
    assert torch.equal(again, view)
    assert again.stride() == view.stride()


def test_bytes_hold_what_tensors_of_other_sizes_share() -> None:
    raw = torch.arange(7, dtype=torch.uint8)
    number = raw[:4].view(torch.float32)
    assert whole_storage(number).shape == (1,)
    assert torch.equal(whole_storage(number, torch.uint8), raw)


@pytest.mark.parametrize("name", VIEWS)
def test_packed_elements_begin_where_their_storage_does(name: str) -> None:
    found = packed(VIEWS[name])
    assert torch.equal(found, VIEWS[name])
    assert found.is_contiguous()
    assert found.storage_offset() == 0
    assert packed(found) is found
