"""What `emmy run` prints of a child's answer: whether it is right, ratios with intervals, what the GPU allows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.cli.output import share_text, table_lines, text_lines, us_text
from engine.deploy.comparing import Compared, Ratio, Time, compared
from engine.ir.roofline import COMPUTE, MEMORY, Ceilings, reading_gbs

WHOLE = ("peer", "us", "95 % interval", "x emmy", "95 % interval of x", "verdict")


def bench_lines(text: str, answer: Mapping[str, Any], width: int | None) -> list[str]:
    """The answer for people."""
    context = answer["context"]
    lines = text_lines(text, width)
    versions = f"{context['gpu']}, driver {context['driver']}, torch {context['torch']}, triton {context['triton']}"
    lines += text_lines(versions, width, "  ")
    lines += text_lines(f"right: as exact as eager; {answer['kernels_launched']} kernels launched", width, "  ")
    if answer["predicted"]:
        lines += text_lines(f"not measured here, but predicted: {', '.join(answer['predicted'])}", width, "  ")
    for note in answer["notes"]:
        lines += text_lines(note, width, "  ")
    if "whole" in answer:
        lines += ["", *_whole_lines(answer["whole"], width), *_floor_lines(answer, width)]
        lines += ["", *_kernel_lines(answer, width)]
        lines += _ceiling_lines(Ceilings.from_text(answer["ceilings"]), width)
    if "ab" in answer:
        lines += ["", *_ab_lines(answer["ab"], width)]
    for name, reason in answer["skipped"].items():
        lines += text_lines(f"without {name}: {reason}", width)
    return lines


def bench_object(text: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for `--json`: times in us, ratios of a peer's time to ours."""
    found: dict[str, Any] = {
        "target": text,
        "context": answer["context"],
        "right": True,
        "predicted": answer["predicted"],
        "notes": answer["notes"],
        "recorded_us": answer["recorded_us"],
        "kernels_launched": answer["kernels_launched"],
        "skipped": answer["skipped"],
    }
    if "whole" in answer:
        whole, floor_us = _compared(answer["whole"]), _floor_of_all(answer)
        found["whole"] = {**_compared_object(whole), "floor_us": floor_us}
        found["whole"]["times_floor"] = whole.ours.us / floor_us if floor_us else None
        found["ceilings"] = json.loads(answer["ceilings"])
        found["kernels"] = [_kernel_object(row) for row in answer["kernels"]]
    if "ab" in answer:
        found["ab"] = [_ab_object(row) for row in answer["ab"]]
    return found


def _compared(timed: Mapping[str, Any]) -> Compared:
    return compared(timed["names"], timed["windows"])


def _whole_lines(timed: Mapping[str, Any], width: int | None) -> list[str]:
    found = _compared(timed)
    rows: list[tuple[object, ...]] = [("emmy", found.ours.us, _interval(found.ours), 1.0, "", "")]
    rows += [
        (p.name, p.time.us, _interval(p.time), p.difference.ratio, _ratio_interval(p), _verdict(p)) for p in found.peers
    ]
    noise = f"emmy against itself differs by {share_text(found.noise.share)}; x below 1 is faster than emmy"
    return [*table_lines(WHOLE, rows, width), *text_lines(noise, width)]


def _floor_of_all(answer: Mapping[str, Any]) -> float | None:
    """The floors of all launches, in us; None where only some kernels were asked for."""
    rows = answer["kernels"]
    whole = sum(row["count"] for row in rows) == answer["kernels_launched"]
    return sum(row["count"] * float(row["floor_us"]) for row in rows) if whole and rows else None


def _floor_by(answer: Mapping[str, Any], bound: str) -> float:
    """The floors of all launches that `bound` sets, in us."""
    return math.fsum(row["count"] * row["floor_us"] for row in answer["kernels"] if row["bound"] == bound)


def _floor_lines(answer: Mapping[str, Any], width: int | None) -> list[str]:
    floor_us = _floor_of_all(answer)
    if not floor_us:
        return []
    times = _compared(answer["whole"]).ours.us / floor_us
    by = {bound: _floor_by(answer, bound) for bound in (MEMORY, COMPUTE)}
    parts = " and ".join(f"{us_text(us)} by {bound}" for bound, us in by.items() if us)
    told = (
        f"the floors of its kernels add up to {us_text(floor_us)} us ({parts}), and emmy takes {times:.2f} times that"
    )
    return text_lines(told, width)


def _kernel_lines(answer: Mapping[str, Any], width: int | None) -> list[str]:
    names = list(dict.fromkeys(n for row in answer["kernels"] for n in row.get("names", [])[2:]))
    ways = ("peers run",) if names else ()
    columns = ("kernel", "calls", "us", *(f"{name} x" for name in names), *ways, "x floor", "bound", "shape")
    rows: list[tuple[object, ...]] = []
    failures: list[str] = []
    for row in answer["kernels"]:
        if "failure" in row:
            failures += text_lines(f"{row['label']}: {row['failure']}", width)
            continue
        found = _compared(row)
        ratios = {peer.name: f"{peer.difference.ratio:.2f} {_ratio_interval(peer)}" for peer in found.peers}
        peers = (ratios.get(name) for name in names)
        rows.append(
            (
                row["label"],
                row["count"],
                found.ours.us,
                *peers,
                *(row["peers_run"] for _ in ways),
                round(_over_floor(found, row), 2),
                row["bound"],
                row["shape"],
            )
        )
    return [*table_lines(columns, rows, width), *failures]


def _ceiling_lines(ceilings: Ceilings, width: int | None) -> list[str]:
    products = [f"{rate:.0f} TFLOP/s in {kind}" for kind, rate in ceilings.tflops]
    measured = f"the floor is that of a copy, {ceilings.copy_gbs:.0f} GB/s"
    if ceilings.l2_gbs:
        measured += f" ({ceilings.l2_gbs:.0f} GB/s within the L2)"
    if ceilings.read_gbs:
        measured += f", and of reading alone, {reading_gbs(ceilings.copy_gbs, ceilings.read_gbs):.0f} GB/s"
        if ceilings.l2_gbs:
            near = reading_gbs(ceilings.l2_gbs, ceilings.l2_read_gbs)
            measured += f" ({near:.0f} GB/s within the L2)"
    if products:
        measured += f", and of large products, {', '.join(products)}"
    return text_lines(f"{measured}, measured beside it", width)


def _ab_lines(rows: Sequence[Mapping[str, Any]], width: int | None) -> list[str]:
    lines: list[str] = []
    table: list[tuple[object, ...]] = []
    for row in rows:
        if "skipped" in row:
            lines += text_lines(f"{row['label']}: {row['skipped']}", width)
            continue
        found = _compared(row)
        (other,) = found.peers
        table.append(
            (
                row["label"],
                found.ours.us,
                other.time.us,
                other.difference.ratio,
                _ratio_interval(other),
                _verdict(other),
            )
        )
    columns = ("kernel", "a us", "b us", "b/a", "95 % interval", "b is")
    return [*(table_lines(columns, table, width) if table else []), *lines]


def _interval(time: Time) -> str:
    return f"[{us_text(time.low)}, {us_text(time.high)}]"


def _ratio_interval(peer: Ratio) -> str:
    return f"[{peer.difference.low:.3f}, {peer.difference.high:.3f}]"


def _verdict(peer: Ratio) -> str:
    return peer.difference.verdict.value


def _time_object(time: Time) -> dict[str, float]:
    return {"us": time.us, "low_us": time.low, "high_us": time.high}


def _compared_object(found: Compared) -> dict[str, Any]:
    return {
        **_time_object(found.ours),
        "noise_share": found.noise.share,
        "peers": {
            peer.name: {
                **_time_object(peer.time),
                "ratio": peer.difference.ratio,
                "low": peer.difference.low,
                "high": peer.difference.high,
                "p_value": peer.difference.p_value,
                "verdict": peer.difference.verdict,
            }
            for peer in found.peers
        },
    }


def _kernel_object(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kernel", "label", "shape", "count", "schedule", "flops", "bytes", "floor_us", "bound")
    facts = {name: row[name] for name in names}
    if "failure" in row:
        return {**facts, "failure": row["failure"]}
    found = _compared(row)
    return {
        **facts,
        **_compared_object(found),
        "peers_run": row["peers_run"],
        "times_floor": _over_floor(found, row),
    }


def _over_floor(found: Compared, row: Mapping[str, Any]) -> float:
    return found.ours.us / float(row["floor_us"])


def _ab_object(row: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: row[name] for name in ("kernel", "label", "a", "b", "skipped") if name in row}
    if "skipped" in row:
        return facts
    found = _compared(row)
    return {**facts, "a_time": _time_object(found.ours), **_compared_object(found)["peers"]["b"]}
