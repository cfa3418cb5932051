"""The filter of the Variants tab: words that all hold, as in `BLOCK_M=64 us<20 st:ok regime:deploy kernel:matmul*`.

A word is a name, a comparison and a value, without blanks; a value with blanks stands in double quotes. The names are
the headings of the columns, and the knobs, also by the short words that the rows show: `M128 desc`, `M=128`. What can't
be understood is refused with a sentence that says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from emmy_tui.knob_words import long_name, long_value, read_short_word
from emmy_tui.quantity import BadQuantity, Measure, read_quantity
from engine.knobs import KNOBS, near_names
from engine.store import Compared, Condition


class BadFilter(Exception):
    """One sentence for a person: which word, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`kernel_text` is what `kernel:` says, "" for the shown kernel; `predicted` are conditions that the database can't
    judge, as they compare what the prior says: their fields are PREDICTED and OFF."""

    conditions: tuple[Condition, ...] = ()
    kernel_text: str = ""
    predicted: tuple[Condition, ...] = ()


PREDICTED, OFF = "predicted", "off%"
_NUMBERS = {
    "us": ("best", Measure.TIME),
    "ranking": ("us", Measure.TIME),
    PREDICTED: (PREDICTED, Measure.TIME),
    OFF: (OFF, Measure.PERCENT),
    "regs": ("registers", Measure.COUNT),
    "spill": ("spills", Measure.COUNT),
    "smem": ("shared", Measure.SIZE),
    "error": ("error", Measure.SHARE),
    "trial": ("trial", Measure.COUNT),
    "deploy": ("deploy", Measure.TIME),
    "low": ("low", Measure.TIME),
    "high": ("high", Measure.TIME),
}
_TEXTS = ("by", "st", "failure", "cause", "run", "regime")
_ALSO = {"registers": "regs", "spills": "spill", "shared": "smem", "err": "error", "status": "st", "off": OFF}
"""Other words for a name."""
_REGIMES = {"ranking": "ranking", "deploy": "deploy"}
_CHOICES = {
    "st": {"ok": "ok", "failed": "failed"},
    "regime": _REGIMES,
    "by": {**_REGIMES, "rank": "ranking", "dep": "deploy"},
}
NAMES = (*_NUMBERS, *_TEXTS, "kernel")
_COMPARED = {":": Compared.IS, **{str(compared): compared for compared in Compared}}
_WORD = re.compile(r'(?P<name>[^\s:=!<>"]+)(?P<compared>!=|<=|>=|[:=<>])(?P<value>"[^"]*"|[^\s"]*)(?=\s|$)')
_TERM = re.compile(r'(?:"[^"]*"|\S)+')
EXAMPLE = "BLOCK_M=64 us<20 st:ok regime:deploy kernel:matmul*"
NEAR, ALIKE = 3, 0.65
"""How many names that were perhaps meant are told, and from which likeness on."""
MOST_TERMS = 100
"""Far below the depth of an expression that SQLite takes."""


def parse_filter(text: str, knobs: Collection[str] = ()) -> Filter:
    """Read a filter; "" lets everything through. `knobs` are known beside Emmy's own. Raises BadFilter."""
    conditions: list[Condition] = []
    kernels: list[str] = []
    place = 0
    terms = len(_TERM.findall(text))
    if terms > MOST_TERMS:
        raise BadFilter(f"the filter has {terms} terms, at most {MOST_TERMS}")
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        found = _WORD.match(text, place)
        if found is None:
            word = text[place:].split()[0]
            short = read_short_word(word)
            if short is None:
                raise BadFilter(_why_not(text[place:]))
            conditions.append(Condition(short[0], Compared.IS, short[1]))
            place += len(word)
            continue
        name, compared = found["name"], _COMPARED[found["compared"]]
        value = found["value"].strip('"')
        if not value and not found["value"]:
            raise BadFilter(f'{name}{found["compared"]} lacks its value: write one after it, or "" for none')
        if name.casefold() == "kernel":
            kernels.append(_kernel_text(value, compared))
        else:
            conditions.append(_condition(name, compared, value, knobs))
        place = found.end()
    if len(kernels) > 1:
        raise BadFilter("kernel: stands twice; * in it matches several kernels, as in kernel:matmul*")
    predicted = tuple(one for one in conditions if one.field in (PREDICTED, OFF))
    stored = tuple(one for one in conditions if one.field not in (PREDICTED, OFF))
    return Filter(stored, kernels[0] if kernels else "", predicted)


def _why_not(rest: str) -> str:
    word = rest.split()[0]
    if rest.count('"') % 2:
        return f"the quote in {word} isn't closed: end the value with another one"
    return f"{word} is no condition: write name, comparison and value, as in {EXAMPLE}"


def _kernel_text(value: str, compared: Compared) -> str:
    if compared is not Compared.IS:
        raise BadFilter("kernel is compared with : only, as in kernel:matmul*")
    if not value.strip():
        raise BadFilter("kernel: lacks its value: write a part of a label, family or shape, as in kernel:matmul*")
    return value


def _condition(name: str, compared: Compared, value: str, knobs: Collection[str]) -> Condition:
    plain = _ALSO.get(name.casefold(), name.casefold())
    if plain in _NUMBERS:
        field, measure = _NUMBERS[plain]
        return _number(field, name, compared, value, measure)
    if plain in _TEXTS:
        return _text(plain, name, compared, value)
    knob = _knob(name, knobs)
    if compared in (Compared.IS, Compared.IS_NOT):
        return Condition(knob, compared, long_value(knob, value))
    return _number(knob, name, compared, value, Measure.COUNT)


def _number(field: str, name: str, compared: Compared, value: str, measure: Measure) -> Condition:
    """A number, equal to what is shown as it: the column writes 182.2 where 182.214 was measured, so us<=182.2 holds
    there too, and us>182.2 doesn't."""
    try:
        number, half = read_quantity(value, measure)
    except BadQuantity as error:
        raise BadFilter(f"{name} {error}: write it as in {name}{_AS_IN[measure]}") from None
    return Condition(field, compared, number, half)


_AS_IN = {
    Measure.TIME: "<20",
    Measure.SIZE: ">96K",
    Measure.COUNT: "<20",
    Measure.SHARE: "<1e-3",
    Measure.PERCENT: ">10",
}


def _text(field: str, name: str, compared: Compared, value: str) -> Condition:
    if compared not in (Compared.IS, Compared.IS_NOT):
        raise BadFilter(f"{name} is a text: compare it with : or !=")
    choices = _CHOICES.get(field)
    if choices is None or ("*" in value and field == "st"):
        return Condition(field, compared, value.casefold() if choices else value)
    chosen = choices.get(value.casefold())
    if chosen is None:
        raise BadFilter(f"{name} is one of {' and '.join(dict.fromkeys(choices.values()))}, not {value!r}")
    return Condition(field, compared, chosen)


def _knob(name: str, knobs: Collection[str]) -> str:
    """The knob that is meant, whatever its case. Raises BadFilter with the names that come near."""
    if name in knobs or name in KNOBS:
        return name
    short = long_name(name)
    if short is not None:
        return short
    same = next((known for known in (*KNOBS, *knobs) if known.casefold() == name.casefold()), None)
    if same is not None:
        return same
    near = near_names(name, (*KNOBS, *knobs, *NAMES), NEAR, ALIKE)
    if near:
        raise BadFilter(f"{name} is no column and no knob here: perhaps {', '.join(near)}")
    raise BadFilter(f"{name} is no column and no knob: write one of {', '.join(NAMES)}, or a knob such as BLOCK_M")
