"""Keys as a person writes them in the config file, and as Textual names them: "?" is question_mark.

A name that no key has would leave its action without one, and without a word, so it is refused.
"""

from __future__ import annotations

from difflib import get_close_matches

from textual.keys import KEY_ALIASES, Keys, _character_to_key

MODIFIERS = ("alt", "ctrl", "hyper", "meta", "shift", "super")
_INVENTED = frozenset((Keys.Any.value, Keys.Ignore.value, Keys.ScrollUp.value, Keys.ScrollDown.value))
"""What Textual's list of keys has beside keys."""
_CHARACTERS = {_character_to_key(chr(code)) for code in range(ord(" "), 0x7F)}
NAMES = frozenset(key.value.rpartition("+")[2] for key in Keys if key.value not in _INVENTED and "<" not in key.value)
NAMES = (NAMES | _CHARACTERS) - {Keys.Return.value, "ctrl-at"}
CLOSE = 0.7
"""How alike a name has to be to what was written, from 0 to 1, to be offered."""
_SENT_AS = {alias: key for key, aliases in KEY_ALIASES.items() for alias in aliases}
"""Keys for which a terminal sends the same as for another one."""


class NoKey(Exception):
    """What is wrong with the name, as the end of a sentence."""


def key_name(written: str) -> str:
    """The key as Textual names it. Raises NoKey."""
    written = written.strip()
    if len(written) == 1 and written.isprintable():
        return _character_to_key(written)
    if "," in written:
        apart = ", ".join(f'"{one.strip()}"' for one in written.split(","))
        raise NoKey(f'"{written}" is no key; several are a list: [{apart}]')
    *modifiers, key = written.split("+") if not written.endswith("++") else [*written[:-2].split("+"), "+"]
    if len(key) == 1 and key.isprintable():
        key = _character_to_key(key)
    if any(one not in MODIFIERS for one in modifiers) or not (key in NAMES or (len(key) == 1 and key.isalpha())):
        raise NoKey(f'"{written}" is no key{_instead(modifiers, key)}; keys are written as in f5, ctrl+x, pageup or ?')
    return _sent(set(modifiers), key)


def _sent(modifiers: set[str], key: str) -> str:
    """As a terminal sends it: shift and a letter is a capital, beside ctrl a capital is as good as a letter."""
    if len(key) == 1 and key.isalpha():
        if modifiers <= {"shift"}:
            return key.upper() if modifiers else key
        modifiers = modifiers | ({"shift"} if key.isupper() and "ctrl" not in modifiers else set())
        key = key.lower()
    name = "+".join([*sorted(modifiers), key])
    return _SENT_AS.get(name, name)


def _instead(modifiers: list[str], key: str) -> str:
    """What was perhaps meant."""
    close = [get_close_matches(one.lower(), MODIFIERS, 1) for one in modifiers]
    small = key.lower()
    begun = [name for name in sorted(NAMES) if len(small) > 2 and name.startswith(small)]
    meant = [small] if small in NAMES else begun[:1] or get_close_matches(small, sorted(NAMES), 1, CLOSE)
    if not all(close) or not meant:
        return ""
    return f" (is {'+'.join([*(one for (one,) in close), *meant])} meant?)"
