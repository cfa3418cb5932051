"""The ways to a clipboard: the terminal's escape sequence, and tmux's own buffer.

A terminal takes the clipboard by an escape (OSC 52) and never says whether it did. tmux drops it unless it is told
otherwise (set-clipboard on, allow-passthrough on), so within tmux its own command loads a buffer, which tmux also hands
on to the clipboard of the terminal around it (-w, tmux 3.2 and above).
"""

from __future__ import annotations

import base64
import os
import subprocess

TMUX_S = 2.0


def clipboard_escape(text: str) -> str:
    """OSC 52."""
    return f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07"


def through_tmux(escape: str) -> str:
    """The escape for tmux itself, and once more in its envelope for the terminal outside."""
    return f"{escape}\x1bPtmux;\x1b{escape}\x1b\\"


def load_tmux_buffer(text: str) -> bool:
    """Whether the tmux around took the text as its newest buffer."""
    for options in (("-w",), ()):
        try:
            done = subprocess.run(
                ["tmux", "load-buffer", *options, "-"],
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TMUX_S,
                check=False,
                env=dict(os.environ),
            )
        except (OSError, subprocess.SubprocessError):
            return False
        if done.returncode == 0:
            return True
    return False
