"""When the warps of an attention program may have roles: one loads through TMA, two groups of four multiply.

A group takes the powers of its scores while its products with the values run and while the other group multiplies,
which plain Triton leaves to chance. A program for each tile, or one for each multiprocessor that walks the tiles: at
4x16x2048x128 (bf16, H200) cuDNN takes 156 us under a causal mask and 228 without, a program for each tile 141 and 242,
programs that walk 125 and 220, and the best plain kernel 162 and 273. Those times are of tiles dealt from a table, the
causal ones in groups of 16 heads; the order that is written as arithmetic is counted in steps (see tile_order).
"""

from __future__ import annotations

from engine.codegen.attention_facts import AttentionFacts
from engine.codegen.dot_rules import Check, too_much_shared
from engine.codegen.family import Rule, Values
from engine.knobs import KNOBS
from engine.vocabulary import KnobValue, Target

KNOB = "OVERLAP"
NONE, SPECIALIZED, PERSISTENT = KNOBS[KNOB].values
QUERIES = 128
"""Queries of a program, 64 for each of the two groups that multiply."""
GROUP_QUERIES = 64
_KEYS = (64, 128)
"""Keys a step that leave a thread registers for scores, weights and accumulators."""
_HEADS = (64, 128)
_WARPS = 8
"""Warps that multiply; the one that loads comes besides."""
_MANY_KEYS = 1024
"""From so many keys on a program's loop is long beside its start and its end."""
_BARRIER_BYTES = 512
_CAPABILITY = 90
_LEAVE = f"leave {KNOB} out, or set {KNOB}={NONE}"


def overlaps(v: Values) -> bool:
    """Whether a schedule's warps have roles.

    >>> overlaps({}), overlaps({"OVERLAP": "specialized"})
    (False, True)
    """
    return v.get(KNOB, NONE) != NONE


def offered_overlaps(facts: AttentionFacts, target: Target) -> tuple[KnobValue, ...]:
    """The values to choose from: one, so no question, where the kernel can't be written so or its loops are short."""
    if unsuited(facts, target) or facts.keys < _MANY_KEYS or facts.keys % min(_KEYS):
        return (NONE,)
    walked = facts.batch * (facts.rows // QUERIES) > target.multiprocessors
    return (NONE, SPECIALIZED, PERSISTENT) if walked else (NONE, SPECIALIZED)


def overlap_rules(facts: AttentionFacts, target: Target, asked: tuple[str, ...]) -> tuple[Rule, ...]:
    """What binds the knob, laws first; `asked` are the family's other optional knobs that this kernel is asked for."""
    knobs = ("BLOCK_M", "BLOCK_N", "LOADS", "NUM_WARPS", "NUM_STAGES", *asked, KNOB)
    return (
        Rule(knobs, _law(facts, target)),
        Rule(("BLOCK_N", "NUM_STAGES", KNOB), _worth(facts), law=False),
    )


def shared_bytes(facts: AttentionFacts, v: Values) -> int:
    """Shared memory: queries and results of both groups, rings of keys and of values, and their barriers."""
    row = facts.depth * facts.element_bytes
    return row * (2 * QUERIES + 2 * int(v["NUM_STAGES"]) * int(v["BLOCK_N"])) + _BARRIER_BYTES


def keys_ahead(facts: AttentionFacts) -> int:
    """By how many keys a causal mask lets a query look further than its own number: those of tokens before."""
    return -(facts.masking.bounds.low or 0)


def unsuited(facts: AttentionFacts, target: Target) -> str:
    """Why no schedule of this kernel may give its warps roles, as the end of a sentence; empty where one may."""
    if target.capability != _CAPABILITY:
        return "is written for the wgmma and the TMA of compute capability 9.0"
    if not target.gluon:
        return "needs Gluon as Triton 3.6 has it, and this Triton has no such Gluon"
    if facts.element_bytes != 2:
        return f"multiplies bfloat16 and float16, and these are {facts.dtype}"
    if facts.depth != facts.width or facts.depth not in _HEADS:
        return f"is for heads of 64 or 128 elements, and these are {facts.depth} for scores, {facts.width} for values"
    for name, loaded in (("queries", facts.query), ("keys", facts.key), ("values", facts.value)):
        if loaded.rows is None:
            reason = "they are computed in the kernel" if loaded.computed else loaded.no_rows
            return f"loads its {name} through TMA from memory, and here {reason}: {_LEAVE}"
    if facts.rows % QUERIES:
        return f"takes {QUERIES} queries a program, and the {facts.rows} here are no multiple of that: {_LEAVE}"
    return _unsuited_mask(facts) or _unsuited_outputs(facts)


def _unsuited_mask(facts: AttentionFacts) -> str:
    if facts.unmasked:
        return ""
    if not facts.diagonal:
        return "is for every key or a causal mask, and here it is another one, or not the only one"
    if facts.changed:
        return "is for scores that are no more than scaled before they are masked, and here they are changed"
    ahead = keys_ahead(facts)
    if ahead < 0 or facts.rows + ahead > facts.keys:
        return "needs a key for each query under the mask, and here some queries have none, or keys end before them"
    if ahead % max(_KEYS):
        return f"masks one block a group, and the diagonal starts at key {ahead}, inside of a block"
    return ""


def _unsuited_outputs(facts: AttentionFacts) -> str:
    if facts.peaks or facts.totals or len(facts.outputs) != 1:
        return "stores one result, and here largest logits, sums of powers or another result leave the kernel"
    ((output, _),) = facts.outputs
    if output.spec.dtype != facts.dtype:
        return f"stores {facts.dtype}, and its result is {output.spec.dtype}"
    rows, reason = facts.output_rows
    return f"stores its result through TMA, and here {reason}: {_LEAVE}" if rows is None else ""


def _law(facts: AttentionFacts, target: Target) -> Check:
    never = unsuited(facts, target)
    needed: dict[str, KnobValue] = {"BLOCK_M": QUERIES, "LOADS": "descriptor", "NUM_WARPS": _WARPS, "QUERY_TILES": 1}
    needed["MASK"] = "every" if facts.unmasked else "cut"

    def broken(v: Values) -> str | None:
        if not overlaps(v):
            return None
        said = f"{KNOB}={v[KNOB]}"
        if never:
            return f"{said} {never}."
        other = [name for name, value in needed.items() if v.get(name, KNOBS[name].off) != value]
        if other:
            return f"{said} needs {', '.join(f'{name}={needed[name]}' for name in other)} here."
        if v["BLOCK_N"] not in _KEYS or facts.keys % int(v["BLOCK_N"]):
            return f"{said} takes 64 or 128 keys a step, of which BLOCK_N={v['BLOCK_N']} is not one or divides no keys."
        if int(v["NUM_STAGES"]) < 2:
            return f"{said} loads a block of keys while another is multiplied, which takes NUM_STAGES=2 or more."
        return too_much_shared(shared_bytes(facts, v), target)

    return broken


def _worth(facts: AttentionFacts) -> Check:
    """Short steps and deep rings lost (4x16x2048x128, bf16, H200): 149 us with 64 keys, 131 with three blocks of keys,
    124 with two of 128. With half of the head there is less to multiply while a block is on its way."""

    def broken(v: Values) -> str | None:
        if not overlaps(v):
            return None
        if facts.depth == max(_HEADS) and v["BLOCK_N"] != max(_KEYS):
            return f"{v['BLOCK_N']} keys a step are too short a product for the other group's powers to run beside it."
        stages = int(v["NUM_STAGES"])
        return f"{stages} blocks of keys on their way are more than are missed." if stages > 3 else None

    return broken
