"""A ptxas that takes controls, made of Triton's own and a shell script: made-up bytes say what controls do.

A controls file is text here: "slower" assembles without optimization, "other" with a little of it, "ignored" changes
nothing, "reject", "crash" and "hang" do that. Each assembly is a line in `log`. No control of NVIDIA's is involved.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

VERSION = "12.8.93"

_SCRIPT = """#!/bin/sh
# {salt}
case "$1" in
  --version) echo "Cuda compilation tools, release {release}, V{version}"; exit 0;;
  --help) echo "{help}"; exit 0;;
esac
for word in "$@"; do
  case "$word" in
    --apply-controls=*) file="${{word#--apply-controls=}}"; shift;;
    *) shift; set -- "$@" "$word";;
  esac
done
done_by=""
if [ -n "$file" ]; then
  if [ ! -f "$file" ]; then echo "ptxas fatal   : File '$file' could not be opened" >&2; exit 255; fi
  done_by=$(cat "$file")
fi
echo "assemble $done_by" >> "{log}"
if [ -n "{obeyed}" ]; then
  case "$done_by" in
    *slower*) set -- "$@" --opt-level 0;;
    *other*) set -- "$@" --opt-level 1;;
    *reject*) echo "ptxas fatal   : Invalid compiler controls file" >&2; exit 255;;
    *crash*) kill -SEGV $$;;
    *hang*) sleep 600;;
  esac
fi
exec {real} "$@"
"""


def real_ptxas() -> Path:
    """The one in Triton's package."""
    package = find_spec("triton")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"


def fake_ptxas(
    folder: Path, *, version: str = VERSION, salt: str = "", takes: bool = True, obeys: bool = True, name: str = "ptxas"
) -> Path:
    """Write one into `folder`. `salt` makes another binary of it, `obeys` False one that ignores what it takes."""
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(
        _SCRIPT.format(
            salt=salt,
            release=version.rpartition(".")[0],
            version=version,
            help="--apply-controls <file>" if takes else "--maxrregcount <n>",
            log=folder / "log",
            obeyed="yes" if obeys else "",
            real=real_ptxas(),
        )
    )
    path.chmod(0o755)
    return path


def assemblies(folder: Path) -> list[str]:
    """What each assembly so far was told, in order; "" for no controls."""
    log = folder / "log"
    return [line.removeprefix("assemble").strip() for line in log.read_text().splitlines()] if log.exists() else []
