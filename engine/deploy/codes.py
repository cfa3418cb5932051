"""What the code of a function says: the names it could look up, the modules it imports, whether it makes texts."""

from __future__ import annotations

import dis
import operator
import types
from dataclasses import dataclass
from typing import Any

_OF_TEXTS = frozenset({"str", "repr", "format", "ascii", "print"})
IMPORTS = frozenset({"import_module", "__import__"})
"""Functions that give a module by a text."""

MATCHED = "__match_args__"
"""The attribute of a class that says in which order `match` takes its objects' attributes."""
ASK = frozenset({"getattr", "hasattr"})
"""Functions that give an attribute by a text."""
_ASK_ANY = frozenset({"vars", "dir", "__dict__", "__getattribute__", "attrgetter", "methodcaller", "getmembers"})


@dataclass(frozen=True, slots=True)
class Said:
    """`names` are those of the code and of code inside it; texts may be names for `getattr`. `imports` are modules,
    with the level of a relative import; `texts` says that objects are made texts of, which calls `__str__`,
    `imports_any` that it may import modules whose names it doesn't say, `asks_any` that it may ask for such attributes.
    """

    code: types.CodeType
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]
    texts: bool
    imports_any: bool
    asks_any: bool


def said(code: types.CodeType, known: dict[int, Said]) -> Said:
    """What the code says; `known` keeps what was read before."""
    found = known.get(id(code))
    if found is None:
        inner = [said(part, known) for part in code.co_consts if isinstance(part, types.CodeType)]
        quoted = [text for text in code.co_consts if isinstance(text, str) and text.isidentifier()]
        names = tuple(dict.fromkeys((*code.co_names, *quoted, *(name for one in inner for name in one.names))))
        steps = list(dis.get_instructions(code))
        called, imports_any = _called(steps)
        if any(step.opname == "MATCH_CLASS" for step in steps):
            names = (*names, MATCHED)
        imports = (*_imports(steps), *called, *(each for one in inner for each in one.imports))
        makes = any(step.opname.startswith("FORMAT_") for step in steps) or not _OF_TEXTS.isdisjoint(code.co_names)
        asks_any = not _ASK_ANY.isdisjoint(names) or _asks_any(steps)
        found = known[id(code)] = Said(
            code,
            names,
            imports,
            makes or any(one.texts for one in inner),
            imports_any or any(one.imports_any for one in inner),
            asks_any or any(one.asks_any for one in inner),
        )
    return found


def _called(steps: list[dis.Instruction]) -> tuple[list[tuple[int, str]], bool]:
    """Modules that are imported by a call with a constant text alone, and whether other such calls may be there."""
    found, computes = [], False
    steps = [step for step in steps if step.opname not in ("PUSH_NULL", "CACHE", "EXTENDED_ARG", "PRECALL")]
    for place, step in enumerate(steps):
        if not isinstance(step.argval, str) or step.argval not in IMPORTS or step.opname.startswith("STORE"):
            continue
        text, call = (*steps[place + 1 : place + 3], step, step)[:2]
        if text.opname == "LOAD_CONST" and _is_absolute(text.argval) and (call.opname, call.arg) == ("CALL", 1):
            found.append((0, text.argval))
        elif step.opname == "IMPORT_FROM":
            computes = computes or text.argval != step.argval
        elif step.opname != "MAKE_CELL":
            computes = True
    return found, computes


def _asks_any(steps: list[dis.Instruction]) -> bool:
    """Whether `getattr` or `hasattr` may be called with a name that is no constant."""
    return any(
        step.argval in ASK and (step.opname == "LOAD_CONST" or not _asks_for_one(steps[place + 1 :]))
        for place, step in enumerate(steps)
        if isinstance(step.argval, str)
    )


def _asks_for_one(steps: list[dis.Instruction]) -> bool:
    """Whether the call of what was just put on the stack has a constant text as its second argument."""
    depth, second = 0, False
    for step in steps:
        if step.opname == "CALL" and step.arg == depth:
            return second
        if step.opname == "CALL":
            effect = -1 - (step.arg or 0)
        elif step.opname == "PRECALL":
            continue
        else:
            effect = dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth + effect == 2:
            second = depth == 1 and step.opname == "LOAD_CONST" and isinstance(step.argval, str)
        depth += effect
        if depth < 0:
            break
    return False


def _is_absolute(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _imports(steps: list[dis.Instruction]) -> list[tuple[int, str]]:
    found = []
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            # the level and the names asked for are pushed before it
            levels = [one.argval for one in steps[max(0, place - 4) : place] if isinstance(one.argval, int)]
            found.append((levels[0] if levels else 0, str(step.argval)))
    return found


def imported(function: types.FunctionType, imports: tuple[tuple[int, str], ...]) -> list[str]:
    """Whole names of the modules that the function imports when it runs, with those they lie in."""
    found: list[str] = []
    for level, name in imports:
        whole = name
        if level:
            package = str(function.__globals__.get("__package__") or "")
            base = package.rsplit(".", level - 1)[0] if level > 1 else package
            whole = f"{base}.{name}" if name else base
        parts = whole.split(".")
        found.extend(".".join(parts[: end + 1]) for end in range(len(parts)))
    return list(dict.fromkeys(found))


def names_of_getter(getter: Any) -> list[str]:
    """What `operator.attrgetter` and `methodcaller` look up; "getattr" where they don't say."""
    _, given, *_ = getter.__reduce__()
    if isinstance(getter, operator.methodcaller):
        given = given[:1]
    texts = [text for text in given if isinstance(text, str)]
    return [part for text in texts for part in text.split(".")] or ["getattr"]
