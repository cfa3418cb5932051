"""Keys take effect in the order in which they are pressed, however fast they come.

Textual hands every key to whatever has the focus when the key arrives, and does what it means some messages later. So
keys that a fast hand, a paste or a macro sends at once would go to the list in which the first of them is about to open
a line, or into the line that one of them is about to close. Here a key goes out once the one before it was handled, and
once what that one opens can take it. One that acts on the rows of a list is meant for those that the keys before it ask
for, and waits for them.

A message that is sent behind the key, the same way, tells when it was handled. It is lost where its widget goes away,
so nothing waits longer than LOST_S for it.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from textual.events import Event, Key, Paste
from textual.message import Message

from emmy_tui.action import Group
from emmy_tui.actions import ACTIONS, keys_of
from emmy_tui.verbs import Verbs

LOST_S = 0.25
OPENS_S = 1.0
"""How long keys wait for a line that is about to open, for the focus in what has opened, or for rows."""
LOOK_S = 0.01
"""How often is looked whether it has."""
LEAVING = ("escape", "ctrl+c", "ctrl+q")
"""What a person presses who doesn't want the line any more for which keys are kept."""
ASKING = ("filter", "clear_filter", "sort", "reverse")
"""What asks for other rows, whatever those are that are seen."""

Typed = Key | Paste


class Handled(Message):
    """The key that was sent before this was handled by every widget on its way."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class KeyOrder(Verbs):
    """What waits, and what is on its way."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._kept: deque[Typed] = deque()
        self._sent = 0
        self._on_its_way = self._looking = False
        self._sent_at = self._kept_at = self._turned_at = 0.0
        self._rows_from: float | None = None

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._may_go(event):
            await self._go(event)

    def _may_go(self, typed: Typed) -> bool:
        """Whether it goes out now; else it is kept, and goes when its turn comes."""
        if self.desk.prompting and isinstance(typed, Key) and typed.key in LEAVING:
            self._kept.clear()
            return True
        if not self._kept and not self._blocked(typed):
            return True
        if not self._kept:
            self._kept_at = time.monotonic()
        self._kept.append(typed)
        self._look_later()
        return False

    def _blocked(self, typed: Typed) -> bool:
        now = time.monotonic()
        if self._on_its_way and now - self._sent_at < LOST_S:
            return True
        kept_s = now - self._kept_at if self._kept else 0.0
        if self.desk.prompting and kept_s < OPENS_S:
            return True
        if self._wants_rows(typed, now):
            return True
        top = self.screen
        return bool(top.AUTO_FOCUS) and top.focused is None and now - self._turned_at < OPENS_S

    def _wants_rows(self, typed: Typed, now: float) -> bool:
        """Whether the key acts on rows that are still on their way; all keys together wait for them once."""
        if not self.tab.unread:
            self._rows_from = None
            return False
        if len(self.screen_stack) > 1 or not isinstance(typed, Key) or not self._acts_on_rows(typed.key):
            return False
        if self._rows_from is None:
            self._rows_from = now
        return now - self._rows_from < OPENS_S

    def _acts_on_rows(self, key: str) -> bool:
        """Moves do as long as the rows are those of another kernel or filter; what is done with one also needs it."""
        meant = [one for one in ACTIONS if key in keys_of(one, self.view.keys)]
        moves = any(one.in_list and one.name != "select" for one in meant)
        own = [one for one in meant if one.name == "select" or (self.view.tab in one.tabs and one.group is Group.ROWS)]
        return (moves and self.tab.behind) or any(one.name not in ASKING for one in own)

    async def _go(self, typed: Typed) -> None:
        """Through Textual's own door, and the message behind it."""
        self._on_its_way, self._sent_at = True, time.monotonic()
        self._sent += 1
        to = self.focused or self.screen
        await super().on_event(typed)
        if not to.post_message(Handled(self._sent)):
            self._on_its_way = False

    def on_handled(self, message: Handled) -> None:
        if message.number == self._sent:
            self._on_its_way = False
            self._next()

    def on_descendant_focus(self) -> None:
        """What has opened can take keys."""
        self._next()

    def _turned(self, over: bool) -> None:
        """A screen was opened or closed, and with it the message may be lost. What the closed one answered is done
        before the next key: by whoever asked, the tab or this."""
        super()._turned(over)
        self._on_its_way, self._turned_at = False, time.monotonic()
        if self._kept:
            self.tab.call_later(lambda: self.call_later(self._next))

    def _next(self) -> None:
        if self._kept and not self._blocked(self._kept[0]):
            self._on_its_way, self._sent_at = True, time.monotonic()
            self._kept_at = time.monotonic()
            self.call_next(self._go, self._kept.popleft())
        if self._kept:
            self._look_later()

    def _look_later(self) -> None:
        if not self._looking:
            self._looking = True
            self.set_timer(LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = False
        self._next()
