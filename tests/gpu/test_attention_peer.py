"""On a GPU: an attention's floor is below its time, and its peer is torch's own attention, as fast as torch itself."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.deploy.attention_peer import attention_body
from engine.deploy.peers import eager_body
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.needed import needed_work
from engine.ir.roofline import floor_us
from engine.measure import less_exact_than_eager
from engine.runtime import TimingPlan, compare, measure_ceilings, prepare_case, probe_us, time_in_turns
from tests.codegen.attention_bodies import attention

PLAN = TimingPlan(window_ms=2.0, windows=10, warmup_ms=30.0)
SHAPE = (16, 2048, 2048, 128, "bfloat16")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("causal", attention(*SHAPE, batch=4, causal=True)),
        ("every key", attention(*SHAPE, batch=4)),
        ("grouped", attention(*SHAPE, batch=4, group=4, causal=True)),
        ("window", attention(*SHAPE, batch=4, causal=True, window=256)),
        ("added", attention(*SHAPE, batch=1, added=(1, 1, 2048, 2048))),
        ("one query", attention(32, 1, 4096, 128, "bfloat16", group=4)),
    ],
)
def test_the_peer_is_right_and_faster_than_op_by_op(name: str, body: Graph) -> None:
    kernel = Kernel("attention", body)
    device = torch.device("cuda")
    case = prepare_case(kernel, 0, device)
    function = attention_body(kernel.body, case.inputs)
    assert function is not None
    with torch.no_grad():
        found = compare(function(*case.inputs), case.references)
    assert less_exact_than_eager(found, case.eager, ["torch.bfloat16"], case.rounding) is None
    single = eager_body(kernel.body, case.inputs)
    launches = [lambda: function(*case.inputs), lambda: single(*case.inputs)]
    windows = time_in_turns(launches, PLAN, [probe_us(launch) for launch in launches], 0)
    attention_us, single_us = (sorted(samples)[len(samples) // 2] for samples in windows)
    floor, bound = floor_us(kernel, measure_ceilings(device))
    seen = sum(needed_work(kernel.body).products.values()) / 1e9
    told = f"{name}: {attention_us:.1f} us, op by op {single_us:.1f} us"
    print(f"\n{told}, floor {floor:.1f} us by {bound}, {seen:.1f} GFLOP")
    assert attention_us > 0.97 * floor
    assert attention_us < single_us


def test_it_costs_what_a_users_call_does() -> None:
    """Queries, keys and values that lie as a projection leaves them; the result as the next one reads it."""
    kernel = Kernel("attention", attention(*SHAPE, batch=4, causal=True, scale=128**-0.5))
    case = prepare_case(kernel, 0, torch.device("cuda"))
    function = attention_body(kernel.body, case.inputs)
    assert function is not None
    query, key, value = case.inputs

    def user() -> None:
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        out.transpose(1, 2).reshape(4, 2048, 16 * 128)

    launches = [lambda: function(*case.inputs), user]
    windows = time_in_turns(launches, PLAN, [probe_us(launch) for launch in launches], 0)
    ours, theirs = (sorted(samples)[len(samples) // 2] for samples in windows)
    print(f"\nthe peer {ours:.1f} us, a user's call {theirs:.1f} us")
    assert ours < 1.05 * theirs
