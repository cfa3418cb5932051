from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper


@gluon.jit
def turns():
    return gl.where(131 - gl.program_id(0) < 100, 8, 7)


@gluon.jit
def tile(turn):
    number = turn * 132 + gl.where(turn % 2 == 0, gl.program_id(0), 131 - gl.program_id(0))
    head = number // 352 * 22
    heads = gl.minimum(22, 64 - head)
    return head + number % 352 % heads, (15 - number % 352 // heads) * 128


@gluon.jit
def fetch(desc, row, column, ring, slot, uses):
    buffers, full, free = ring
    hopper.mbarrier.wait(free.index(slot), (uses & 1) ^ 1)
    hopper.mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    hopper.tma.async_copy_global_to_shared(desc, [row, column], full.index(slot), buffers.index(slot))


@gluon.jit
def produce(query_desc, key_desc, value_desc, query_ring, key_ring, value_ring):
    count = 0
    for turn in range(turns()):
        batch, first = tile(turn)
        query_row = batch // 16 * 2048
        query_column = batch % 16 * 128
        key_row = batch // 16 * 2048
        key_column = batch % 16 * 128
        value_row = batch // 16 * 2048
        value_column = batch % 16 * 128
        steps = first // 128 + 1
        start = (steps - 1) * 128
        fetch(query_desc, query_row + first, query_column, query_ring, 0, turn)
        fetch(key_desc, key_row + start, key_column, key_ring, count % 2, count // 2)
        fetch(query_desc, query_row + first + 64, query_column, query_ring, 1, turn)
        for step in range(steps):
            if step + 1 < steps:
                fetch(key_desc, key_row + start - 128, key_column, key_ring, (count + 1) % 2, (count + 1) // 2)
            fetch(value_desc, value_row + start, value_column, value_ring, count % 2, count // 2)
            start -= 128
            count += 1


@gluon.jit
def consume(out_desc, results, query_ring, key_ring, value_ring, group: gl.constexpr):
    keys, keys_full, keys_free = key_ring
    values, values_full, values_free = value_ring
    queries, queries_full, queries_free = query_ring
    scores_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    result_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    weights_layout: gl.constexpr = gl.DotOperandLayout(0, result_layout, 2)
    zeros = gl.zeros([64, 128], gl.float32, scores_layout)
    query = queries.index(group)
    result = results.index(group)
    count = 0
    for turn in range(turns()):
        batch, first = tile(turn)
        steps = first // 128 + 1
        hopper.mbarrier.wait(queries_full.index(group), turn & 1)
        hopper.mbarrier.wait(keys_full.index(count % 2), count // 2 & 1)
        key = keys.index(count % 2).permute((1, 0))
        scores = hopper.warpgroup_mma(query, key, zeros, use_acc=False, is_async=True)
        scores = hopper.warpgroup_mma_wait(0, (scores,))
        gl.thread_barrier()
        hopper.mbarrier.arrive(keys_free.index(count % 2), count=1)
        row = gl.arange(0, 64, layout=gl.SliceLayout(1, scores_layout))[:, None]
        column = gl.arange(0, 128, layout=gl.SliceLayout(0, scores_layout))[None, :]
        scores = gl.where(row + (first + group * 64 - (steps - 1) * 128) >= column, scores, float("-inf"))
        peak = gl.max(scores, 1)
        weights = gl.exp2(scores * 0.18033688011112042 - (peak * 0.18033688011112042)[:, None])
        total = gl.sum(gl.reshape(weights, [64, 16, 8]), 1)
        weights = gl.convert_layout(weights.to(gl.bfloat16), weights_layout, assert_trivial=True)
        acc = gl.zeros([64, 128], gl.float32, result_layout)
        hopper.mbarrier.wait(keys_full.index((count + 1) % 2), (count + 1) // 2 & 1, pred=steps > 1)
        for step in range(1, steps):
            key = keys.index((count + 1) % 2).permute((1, 0))
            scores = hopper.warpgroup_mma(query, key, zeros, use_acc=False, is_async=True)
            hopper.mbarrier.wait(values_full.index(count % 2), count // 2 & 1)
            flying = hopper.warpgroup_mma(weights, values.index(count % 2), acc, is_async=True)
            scores = hopper.warpgroup_mma_wait(1, (scores,))
            gl.thread_barrier()
            hopper.mbarrier.arrive(keys_free.index((count + 1) % 2), count=1)
            higher = gl.maximum(peak, gl.max(scores, 1))
            powers = gl.exp2(scores * 0.18033688011112042 - (higher * 0.18033688011112042)[:, None])
            shrink = gl.exp2((peak - higher) * 0.18033688011112042)
            total = total * gl.convert_layout(shrink, gl.SliceLayout(1, total.type.layout))[:, None]
            total = total + gl.sum(gl.reshape(powers, [64, 16, 8]), 1)
            peak = higher
            fresh = gl.convert_layout(powers.to(gl.bfloat16), weights_layout, assert_trivial=True)
            hopper.mbarrier.wait(keys_full.index((count + 2) % 2), (count + 2) // 2 & 1, pred=step + 1 < steps)
            acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))
            gl.thread_barrier()
            hopper.mbarrier.arrive(values_free.index(count % 2), count=1)
            acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, result_layout), assert_trivial=True)[:, None]
            weights = fresh
            count += 1
        hopper.mbarrier.arrive(queries_free.index(group), count=1)
        hopper.mbarrier.wait(values_full.index(count % 2), count // 2 & 1)
        flying = hopper.warpgroup_mma(weights, values.index(count % 2), acc, is_async=True)
        whole = gl.convert_layout(gl.sum(total, 1), gl.SliceLayout(1, result_layout))
        acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))
        gl.thread_barrier()
        hopper.mbarrier.arrive(values_free.index(count % 2), count=1)
        count += 1
        acc = acc * (1.0 / whole)[:, None]
        hopper.tma.store_wait(0)
        gl.thread_barrier()
        result.store(acc.to(gl.bfloat16))
        hopper.fence_async_shared()
        gl.thread_barrier()
        out_row = batch // 16 * 2048 + first + group * 64
        hopper.tma.async_copy_shared_to_global(out_desc, [out_row, batch % 16 * 128], result)
    hopper.tma.store_wait(0)


@gluon.jit
def attention(query_desc, key_desc, value_desc, out_desc):
    queries = gl.allocate_shared_memory(gl.bfloat16, [2, 64, 128], query_desc.layout)
    keys = gl.allocate_shared_memory(gl.bfloat16, [2, 128, 128], key_desc.layout)
    values = gl.allocate_shared_memory(gl.bfloat16, [2, 128, 128], value_desc.layout)
    results = gl.allocate_shared_memory(gl.bfloat16, [2, 64, 128], out_desc.layout)
    queries_full = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    queries_free = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    keys_full = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    keys_free = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    values_full = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    values_free = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        hopper.mbarrier.init(queries_full.index(i), count=1)
        hopper.mbarrier.init(queries_free.index(i), count=1)
    for i in gl.static_range(2):
        hopper.mbarrier.init(keys_full.index(i), count=1)
        hopper.mbarrier.init(keys_free.index(i), count=2)
    for i in gl.static_range(2):
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
