"""What a key, a word of the footer, a tab's name or a line of the palette does now; where it does nothing, why."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.app import SystemCommand
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input

from emmy_tui.action import Action, reason_why_not
from emmy_tui.actions import ACTIONS, BY_NAME, Keys, first_key, keys_of
from emmy_tui.key_order import KeyOrder
from emmy_tui.widgets.footer import Footer
from emmy_tui.widgets.status import TabBar

NOT_NOW = "Not now"
"""How the palette begins what it says of an action that does nothing now."""
LINE_KEYS = "bfd\x7f"
"""What goes and deletes by words in a line that is typed."""


class Pressing(KeyOrder):
    """Asks the table of actions."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        known = BY_NAME.get(action)
        return known.when(self.now) if known is not None and not known.in_list and not known.tabs else True

    def keeps_alt(self, character: str) -> bool:
        """Whether escape and this character are one key with alt: one that a person bound, or one that edits a line.

        Called by the driver's thread.
        """
        typed = bool(self.screen_stack) and isinstance(self.screen_stack[-1].focused, Input)
        name = f"alt+shift+{character.lower()}" if character.isupper() else f"alt+{character}"
        bound = any(name in keys for keys in self.view.keys.values())
        return bound or (typed and character in LINE_KEYS)

    def on_key(self, event: Key) -> None:
        """Before the key does anything: where nothing that it stands for works now, say why."""
        if len(self.screen_stack) > 1:
            return
        if event.key == "escape":
            self.desk.leave()
            return
        now = self.now
        meant = [action for action in ACTIONS if event.key in keys_of(action, self.view.keys) and not action.in_list]
        here = [action for action in meant if not action.tabs or now.tab in action.tabs] or meant
        if here and not any(action.when(now) for action in meant):
            reason = next(filter(None, (reason_why_not(a, now) for a in sorted(here, key=lambda a: not a.tabs))), "")
            if reason:
                self.outlet.warn(f"{reason}.")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the table; one that doesn't work now says why."""
        now = self.now
        for action in ACTIONS:
            if action.palette:
                works = action.when(now)
                meaning = action.meaning if works else f"{NOT_NOW}: {reason_why_not(action, now)}"
                yield SystemCommand(palette_title(action, self.view.keys), meaning, self._palette_call(action.name))

    def _palette_call(self, name: str) -> Callable[[], None]:
        return lambda: self.press_key_of(name)

    def press_key_of(self, name: str) -> None:
        """Do what the key of an action does, or say why it does nothing now."""
        action = BY_NAME[name]
        if action.when(self.now):
            focused = self.screen_stack[0].focused
            owner = focused if action.in_list and focused is not None else self.tab if action.tabs else self
            self.call_later(self.run_action, name, owner)
        else:
            self.outlet.warn(reason_why_not(action, self.now) or NOT_NOW)

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.press_key_of(message.name)

    def on_tab_bar_pressed(self, message: TabBar.Pressed) -> None:
        self.press_key_of(message.name)


def palette_title(action: Action, keys: Keys | None = None) -> str:
    """An action as the palette lists it: its words and its key."""
    return f"{action.label}  {first_key(action, keys)}".rstrip()
