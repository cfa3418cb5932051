"""What the code of a function says: the names it could look up, the modules it imports, whether it makes texts."""

from __future__ import annotations

import dis
import operator
import types
from dataclasses import dataclass
from typing import Any

_OF_TEXTS = frozenset({"str", "repr", "format", "ascii", "print"})


@dataclass(frozen=True, slots=True)
class Said:
    """`names` are those of the code and of code inside it; texts may be names for `getattr`. `imports` are modules,
    with the level of a relative import; `texts` says that objects are made texts of, which calls `__str__`."""

    code: types.CodeType
    names: tuple[str, ...]
    imports: tuple[tuple[int, str], ...]
    texts: bool


def said(code: types.CodeType, known: dict[int, Said]) -> Said:
    """What the code says; `known` keeps what was read before."""
    found = known.get(id(code))
    if found is None:
        inner = [said(part, known) for part in code.co_consts if isinstance(part, types.CodeType)]
        quoted = [text for text in code.co_consts if isinstance(text, str) and text.isidentifier()]
        names = tuple(dict.fromkeys((*code.co_names, *quoted, *(name for one in inner for name in one.names))))
        steps = list(dis.get_instructions(code))
        imports = (*_imports(steps), *(each for one in inner for each in one.imports))
        makes = any(step.opname.startswith("FORMAT_") for step in steps) or not _OF_TEXTS.isdisjoint(code.co_names)
        found = known[id(code)] = Said(code, names, imports, makes or any(one.texts for one in inner))
    return found


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
