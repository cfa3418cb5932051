from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper


@gluon.jit
def tile():
    number = gl.program_id(0)
    return number % 16, (7 - number // 16) * 128


@gluon.jit
def fetch(desc, row, column, ring, slot, uses):
    buffers, full, free = ring
    hopper.mbarrier.wait(free.index(slot), (uses & 1) ^ 1)
    hopper.mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    hopper.tma.async_copy_global_to_shared(desc, [row, column], full.index(slot), buffers.index(slot))


@gluon.jit
def produce(query_desc, key_desc, value_desc, query_ring, key_ring, value_ring):
    count = 0
    batch, first = tile()
    query_row = batch // 8 * 1024
    query_column = batch % 8 * 64
    key_row = batch // 8 * 2048
    key_column = batch // 4 % 2 * 64
    value_row = batch // 8 * 2048
    value_column = batch // 4 % 2 * 64
    steps = first // 64 + 18
    start = (steps - 1) * 64
    fetch(query_desc, query_row + first, query_column, query_ring, 0, 0)
    fetch(key_desc, key_row + start, key_column, key_ring, count % 3, count // 3)
    fetch(query_desc, query_row + first + 64, query_column, query_ring, 1, 0)
    for step in range(steps):
        if step + 1 < steps:
            fetch(key_desc, key_row + start - 64, key_column, key_ring, (count + 1) % 3, (count + 1) // 3)
        fetch(value_desc, value_row + start, value_column, value_ring, count % 3, count // 3)
        start -= 64
        count += 1


@gluon.jit
def consume(out_desc, results, query_ring, key_ring, value_ring, group: gl.constexpr):
    keys, keys_full, keys_free = key_ring
    values, values_full, values_free = value_ring
    queries, queries_full, queries_free = query_ring
    scores_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    result_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    weights_layout: gl.constexpr = gl.DotOperandLayout(0, result_layout, 2)
    zeros = gl.zeros([64, 64], gl.float32, scores_layout)
    query = queries.index(group)
    result = results.index(group)
    count = 0
    batch, first = tile()
    steps = first // 64 + 18
    if group == 0:
        hopper.mbarrier.wait(keys_full.index(count % 3), count // 3 & 1)
        gl.thread_barrier()
        hopper.mbarrier.arrive(keys_free.index(count % 3), count=1)
        hopper.mbarrier.wait(values_full.index(count % 3), count // 3 & 1)
        gl.thread_barrier()
        hopper.mbarrier.arrive(values_free.index(count % 3), count=1)
        count += 1
        steps -= 1
    hopper.mbarrier.wait(queries_full.index(group), 0)
    hopper.mbarrier.wait(keys_full.index(count % 3), count // 3 & 1)
    key = keys.index(count % 3).permute((1, 0))
    scores = hopper.warpgroup_mma(query, key, zeros, use_acc=False, is_async=True)
    scores = hopper.warpgroup_mma_wait(0, (scores,))
    gl.thread_barrier()
    hopper.mbarrier.arrive(keys_free.index(count % 3), count=1)
    row = gl.arange(0, 64, layout=gl.SliceLayout(1, scores_layout))[:, None]
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, scores_layout))[None, :]
    scores = gl.where(row + (first + group * 64 + 1024 - (steps - 1) * 64) >= column, scores, float("-inf"))
    peak = gl.max(scores, 1)
    weights = gl.exp2(scores * 0.18033688011112042 - (peak * 0.18033688011112042)[:, None])
    total = gl.sum(gl.reshape(weights, [64, 8, 8]), 1)
    weights = gl.convert_layout(weights.to(gl.float16), weights_layout, assert_trivial=True)
    acc = gl.zeros([64, 64], gl.float32, result_layout)
    hopper.mbarrier.wait(keys_full.index((count + 1) % 3), (count + 1) // 3 & 1, pred=steps > 1)
    for step in range(1, steps):
        key = keys.index((count + 1) % 3).permute((1, 0))
        scores = hopper.warpgroup_mma(query, key, zeros, use_acc=False, is_async=True)
        hopper.mbarrier.wait(values_full.index(count % 3), count // 3 & 1)
        flying = hopper.warpgroup_mma(weights, values.index(count % 3), acc, is_async=True)
        scores = hopper.warpgroup_mma_wait(1, (scores,))
        gl.thread_barrier()
        hopper.mbarrier.arrive(keys_free.index((count + 1) % 3), count=1)
        higher = gl.maximum(peak, gl.max(scores, 1))
        powers = gl.exp2(scores * 0.18033688011112042 - (higher * 0.18033688011112042)[:, None])
        shrink = gl.exp2((peak - higher) * 0.18033688011112042)
        total = total * gl.convert_layout(shrink, gl.SliceLayout(1, total.type.layout))[:, None]
        total = total + gl.sum(gl.reshape(powers, [64, 8, 8]), 1)
        peak = higher
        fresh = gl.convert_layout(powers.to(gl.float16), weights_layout, assert_trivial=True)
        hopper.mbarrier.wait(keys_full.index((count + 2) % 3), (count + 2) // 3 & 1, pred=step + 1 < steps)
        acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))
        gl.thread_barrier()
        hopper.mbarrier.arrive(values_free.index(count % 3), count=1)
        acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, result_layout), assert_trivial=True)[:, None]
        weights = fresh
        count += 1
    hopper.mbarrier.arrive(queries_free.index(group), count=1)
    hopper.mbarrier.wait(values_full.index(count % 3), count // 3 & 1)
    flying = hopper.warpgroup_mma(weights, values.index(count % 3), acc, is_async=True)
    whole = gl.convert_layout(gl.sum(total, 1), gl.SliceLayout(1, result_layout))
    acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))
    gl.thread_barrier()
    hopper.mbarrier.arrive(values_free.index(count % 3), count=1)
    count += 1
    acc = acc * (1.0 / whole)[:, None]
    result.store(acc.to(gl.float16))
    hopper.fence_async_shared()
    gl.thread_barrier()
    out_row = batch // 8 * 1024 + first + group * 64
    hopper.tma.async_copy_shared_to_global(out_desc, [out_row, batch % 8 * 64], result)
    hopper.tma.store_wait(0)


@gluon.jit
def attention(query_desc, key_desc, value_desc, out_desc):
    queries = gl.allocate_shared_memory(gl.float16, [2, 64, 64], query_desc.layout)
    keys = gl.allocate_shared_memory(gl.float16, [3, 64, 64], key_desc.layout)
    values = gl.allocate_shared_memory(gl.float16, [3, 64, 64], value_desc.layout)
    results = gl.allocate_shared_memory(gl.float16, [2, 64, 64], out_desc.layout)
    queries_full = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    queries_free = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    keys_full = gl.allocate_shared_memory(gl.int64, [3, 1], hopper.mbarrier.MBarrierLayout())
    keys_free = gl.allocate_shared_memory(gl.int64, [3, 1], hopper.mbarrier.MBarrierLayout())
    values_full = gl.allocate_shared_memory(gl.int64, [3, 1], hopper.mbarrier.MBarrierLayout())
    values_free = gl.allocate_shared_memory(gl.int64, [3, 1], hopper.mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        hopper.mbarrier.init(queries_full.index(i), count=1)
        hopper.mbarrier.init(queries_free.index(i), count=1)
    for i in gl.static_range(3):
        hopper.mbarrier.init(keys_full.index(i), count=1)
        hopper.mbarrier.init(keys_free.index(i), count=2)
    for i in gl.static_range(3):
        hopper.mbarrier.init(values_full.index(i), count=1)
        hopper.mbarrier.init(values_free.index(i), count=2)
    hopper.fence_async_shared()
    query_ring = (queries, queries_full, queries_free)
    key_ring = (keys, keys_full, keys_free)
    value_ring = (values, values_full, values_free)
    gl.warp_specialize(
        [
            (consume, (out_desc, results, query_ring, key_ring, value_ring, 0)),
            (consume, (out_desc, results, query_ring, key_ring, value_ring, 1)),
            (produce, (query_desc, key_desc, value_desc, query_ring, key_ring, value_ring)),
        ],
        [4, 1],
        [240, 24],
    )
