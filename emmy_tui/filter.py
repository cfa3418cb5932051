"""The filter of the Variants tab: words that all hold, as in `BLOCK_M=64 us<20 st:ok regime:deploy kernel:matmul*`.

A word is a name, a comparison and a value, without blanks; a value with blanks stands in double quotes. Names in
capitals are knobs. What can't be understood is refused with a sentence that says what to write.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from engine.knobs import KNOBS
from engine.store import Compared, Condition


class BadFilter(Exception):
    """One sentence for a person: which word, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Filter:
    """`kernel_text` is what `kernel:` says, "" for the shown kernel."""

    conditions: tuple[Condition, ...] = ()
    kernel_text: str = ""


_NUMBERS = {
    "us": "us",
    "low": "low",
    "high": "high",
    "deploy": "deploy",
    "regs": "registers",
    "registers": "registers",
    "spills": "spills",
    "smem": "shared",
    "shared": "shared",
    "err": "error",
    "error": "error",
    "trial": "trial",
}
_TEXTS = {"st": "st", "status": "st", "failure": "failure", "cause": "cause", "run": "run"}
_CHOICES = {"st": ("ok", "failed"), "regime": ("ranking", "deploy")}
NAMES = (*_NUMBERS, *_TEXTS, "regime", "kernel")
_COMPARED = {":": Compared.IS, **{str(compared): compared for compared in Compared}}
_WORD = re.compile(r'(?P<name>[^\s:=!<>"]+)(?P<compared>!=|<=|>=|[:=<>])(?P<value>"[^"]*"|[^\s"]*)(?=\s|$)')
EXAMPLE = "BLOCK_M=64 us<20 st:ok regime:deploy kernel:matmul*"


def parse_filter(text: str) -> Filter:
    """Read a filter; "" lets everything through. Raises BadFilter."""
    conditions: list[Condition] = []
    kernels: list[str] = []
    place = 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        found = _WORD.match(text, place)
        if found is None:
            raise BadFilter(_why_not(text[place:]))
        name, compared = found["name"], _COMPARED[found["compared"]]
        value = found["value"].strip('"')
        if not value and not found["value"]:
            raise BadFilter(f'{name}{found["compared"]} lacks its value: write one after it, or "" for none')
        if name.casefold() == "kernel":
            kernels.append(_kernel_text(value, compared))
        else:
            conditions.append(_condition(name, compared, value))
        place = found.end()
    if len(kernels) > 1:
        raise BadFilter("kernel: stands twice; * in it matches several kernels, as in kernel:matmul*")
    return Filter(tuple(conditions), kernels[0] if kernels else "")


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


def _condition(name: str, compared: Compared, value: str) -> Condition:
    plain = name.casefold()
    if plain in _NUMBERS:
        return Condition(_NUMBERS[plain], compared, _number(name, value))
    if plain in _TEXTS or plain == "regime":
        if compared not in (Compared.IS, Compared.IS_NOT):
            raise BadFilter(f"{name} is a text: compare it with : or !=")
        field = _TEXTS.get(plain, plain)
        choices = _CHOICES.get(field, ())
        if choices and "*" not in value and value.casefold() not in choices:
            raise BadFilter(f"{name} is one of {' and '.join(choices)}, not {value!r}")
        return Condition(field, compared, value.casefold() if choices else value)
    if name.upper() not in KNOBS and not any(letter.isupper() for letter in name):
        raise BadFilter(f"{name} is no column and no knob: write one of {', '.join(NAMES)}, or a knob such as BLOCK_M")
    knob = name.upper() if name.upper() in KNOBS else name
    if compared in (Compared.IS, Compared.IS_NOT):
        return Condition(knob, compared, value)
    return Condition(knob, compared, _number(name, value))


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise BadFilter(f"{name} is a number, not {value!r}: write it as in {name}<20") from None
    if not math.isfinite(number):
        raise BadFilter(f"{name} is a finite number, not {value!r}")
    return number


def filter_text(filter_: Filter) -> str:
    """The text that `parse_filter` reads back as this filter."""
    words = [f"{one.field}{one.compared}{_quoted(one.value)}" for one in filter_.conditions]
    if filter_.kernel_text:
        words.append(f"kernel:{_quoted(filter_.kernel_text)}")
    return " ".join(words)


def _quoted(value: float | str) -> str:
    text = repr(value) if isinstance(value, float) else value
    return f'"{text}"' if not text or re.search(r"\s", text) else text
