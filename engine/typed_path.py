"""A path that a person typed: absolute, its home folder found, and what stands in its way as one sentence.

Asking the system about a path fails in ways that say nothing to a person: a user that doesn't exist, a name that is too
long, a folder that may not be entered, a working folder that is gone. All of that is asked for here, once, so that
whoever has a path from here may look at it without a thought of them.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

SHOWN_CHARACTERS = 60
NAME_BYTES = 255
"""What a name may have in the usual file systems: a path that is refused without a longer one is itself too long."""


class BadPath(Exception):
    """A path that can't be meant; its text is the sentence that a person reads."""


def typed_path(typed: str | Path) -> Path:
    """The absolute path; what stands there, if anything, can be looked at. Raises BadPath."""
    path = _absolute(typed)
    _status(path)
    return path


def typed_file(typed: str | Path) -> Path:
    """The absolute path of a file that is there. Raises BadPath."""
    path = _absolute(typed)
    status = _status(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise BadPath(f"{path} is a folder; name a file in it")
    if status is None or not stat.S_ISREG(status.st_mode):
        raise BadPath(f"{path} is no file")
    return path


def _absolute(typed: str | Path) -> Path:
    path = Path(typed)
    try:
        path = path.expanduser()
    except RuntimeError:
        raise BadPath(_homeless(path.parts[0])) from None
    try:
        return path.absolute()
    except OSError:
        raise BadPath(f"the working folder is gone, so {_shown(path)} is nowhere: name the path in full") from None


def _homeless(first: str) -> str:
    if first == "~":
        return "the home folder of ~ isn't known: set HOME, or name the path in full"
    return f"there is no user {_shown(first[1:])}, whose home folder {_shown(first)} is; ./{_shown(first)} is a name"


def _status(path: Path) -> os.stat_result | None:
    """What stands at the path; None where nothing does."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise BadPath("no path holds such a character: name another file") from None
    except OSError as error:
        raise BadPath(_unreachable(path, error)) from None


def _unreachable(path: Path, error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        longest = max(path.parts, key=lambda part: len(os.fsencode(part)))
        if len(os.fsencode(longest)) <= NAME_BYTES:
            return f"the path is too long, {len(os.fsencode(path))} bytes: name another file; it is {_shown(path)}"
        return f"a name in the path is too long, {_shown(longest)}: name another file"
    if error.errno == errno.ELOOP:
        return f"the links at {path} lead in a circle: name another file"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path} can't be reached, as a folder on the way to it may not be entered: ask its owner for access"
    return f"{path} can't be reached ({error.strerror or error}): name another file"


def _shown(text: object) -> str:
    """As much of a long name as tells it."""
    shown = str(text)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}..."
