"""Does this ptxas take these controls for this GPU, and does its code change? Asked before anything runs on the GPU.

A small kernel in PTX is assembled without and with each file, by the command that a candidate's assembly runs. A file
that ptxas rejects is out; where ptxas takes them all and writes the same code, it ignores them, and none is believed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.codegen import machine_code
from engine.measure.assembler import OPTION, Assembler, ControlsError
from engine.measure.controls import Controls, ControlsFile

ASSEMBLE_LIMIT_S = 20.0

_PROBE = """.version {version}
.target {target}
.address_size 64

.visible .entry emmy_probe(.param .u64 from, .param .u64 into, .param .u32 count)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %d<8>;
  .reg .f32 %f<13>;
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [into];
  ld.param.u32 %r1, [count];
  cvta.to.global.u64 %d3, %d1;
  cvta.to.global.u64 %d4, %d2;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mul.wide.u32 %d5, %r5, 16;
  add.s64 %d6, %d3, %d5;
  add.s64 %d7, %d4, %d5;
  ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%d6];
  mov.f32 %f5, 0f00000000;
  mov.f32 %f6, 0f3F800000;
  mov.u32 %r6, 0;
$loop:
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra $done;
  fma.rn.f32 %f5, %f1, %f2, %f5;
  fma.rn.f32 %f6, %f3, %f4, %f6;
  ex2.approx.ftz.f32 %f7, %f5;
  mul.f32 %f8, %f7, %f6;
  fma.rn.f32 %f1, %f8, %f2, %f1;
  max.f32 %f3, %f8, %f3;
  sqrt.approx.ftz.f32 %f9, %f3;
  add.f32 %f4, %f9, %f4;
  shl.b32 %r7, %r6, 2;
  xor.b32 %r8, %r7, %r5;
  cvt.rn.f32.u32 %f10, %r8;
  fma.rn.f32 %f2, %f10, %f9, %f2;
  add.u32 %r6, %r6, 1;
  bra.uni $loop;
$done:
  add.f32 %f11, %f5, %f6;
  add.f32 %f12, %f1, %f3;
  st.global.v4.f32 [%d7], {{%f11, %f12, %f2, %f4}};
  ret;
}}
"""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One file at one ptxas and one GPU. `reason` says why it is not accepted; `changes_code` compares the probe's."""

    sha256: str
    name: str
    accepted: bool
    reason: str = ""
    changes_code: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """All files at one ptxas and one GPU. `off_because` is a sentence where none of them may be searched."""

    assembler: Assembler
    capability: int
    each: tuple[Acceptance, ...]
    off_because: str = ""

    @property
    def offered(self) -> tuple[str, ...]:
        """The sha256 of every file that may be searched, in order."""
        return () if self.off_because else tuple(item.sha256 for item in self.each if item.accepted)

    @property
    def changing(self) -> int:
        """How many of the accepted ones change the probe's code."""
        return sum(item.changes_code for item in self.each if item.accepted)


def target_name(capability: int) -> str:
    """As Triton names it: the variant with all features from 9.0 on."""
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


def judge(controls: Controls, capability: int) -> Judgement:
    """Assemble the probe without and with each file. Raises ControlsError if it can't be assembled at all."""
    with tempfile.TemporaryDirectory(prefix="emmy-acf-") as folder:
        place = Path(folder)
        version = "8.7" if capability >= 100 else "8.0" if capability >= 90 else "7.4"
        (place / "probe.ptx").write_text(_PROBE.format(version=version, target=target_name(capability)))
        plain, reason = _assembled(controls.assembler, capability, place)
        if plain is None:
            raise ControlsError(
                f"{controls.assembler.path} assembles nothing for {target_name(capability)}: {reason}; "
                "name another ptxas with --ptxas"
            )
        each = tuple(_accepted(controls.assembler, file, capability, place, plain) for file in controls.files)
    judgement = Judgement(controls.assembler, capability, each)
    return Judgement(controls.assembler, capability, each, _off_because(judgement))


def _off_because(judgement: Judgement) -> str:
    version, target = judgement.assembler.version, target_name(judgement.capability)
    if not any(item.accepted for item in judgement.each):
        first = judgement.each[0]
        return f"ptxas {version} takes none of the {len(judgement.each)} files for {target} ({first.reason})"
    if not judgement.changing:
        return f"ptxas {version} takes {OPTION} and writes the same code with and without it"
    return ""


def _accepted(assembler: Assembler, file: ControlsFile, capability: int, place: Path, plain: bytes) -> Acceptance:
    path = place / f"{file.sha256}.acf"
    path.write_bytes(file.data)
    code, reason = _assembled(assembler, capability, place, path)
    if code is None:
        return Acceptance(file.sha256, file.name, False, reason)
    return Acceptance(file.sha256, file.name, True, changes_code=code != plain)


def _assembled(
    assembler: Assembler, capability: int, place: Path, controls: Path | None = None
) -> tuple[bytes | None, str]:
    """The probe's machine code, or why there is none."""
    binary = place / "probe.cubin"
    binary.unlink(missing_ok=True)
    applied = [f"{OPTION}={controls}"] if controls is not None else []
    command = [assembler.path, "-v", *applied, f"--gpu-name={target_name(capability)}", str(place / "probe.ptx")]
    try:
        done = subprocess.run(
            [*command, "-o", str(binary)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASSEMBLE_LIMIT_S,
            check=False,
            env=dict(os.environ),
        )
    except subprocess.TimeoutExpired:
        return None, f"it did not end within {ASSEMBLE_LIMIT_S:.0f} s"
    except OSError as error:
        return None, str(error.strerror or error)
    if done.returncode:
        return None, _complaint(done.stderr, done.returncode, place)
    try:
        return machine_code(binary.read_bytes()), ""
    except (OSError, ValueError) as error:
        return None, f"it wrote no GPU binary: {error}"


def _complaint(said: str, code: int, place: Path) -> str:
    lines = [line.strip() for line in said.splitlines() if "fatal" in line or "error" in line.lower()]
    if code < 0:
        return f"it died of signal {-code}"
    return lines[0].replace(f"{place}{'/'}", "") if lines else f"it ended with exit code {code}"
