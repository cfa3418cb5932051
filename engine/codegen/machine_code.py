"""What of a GPU binary is machine code: the bytes that two assemblies differ by when an option reached the code.

A cubin is a 64-bit ELF file whose sections named ".text." and a kernel's name hold the instructions (ELF-64 object
file format, section header table); all else in it is notes, line tables and sizes.
"""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF\x02"
_HEADER = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<II8x8xQQ")


def machine_code(cubin: bytes) -> bytes:
    """All kernels' instructions, in the file's order. Raises ValueError for what is no whole cubin."""
    if not cubin.startswith(_MAGIC) or len(cubin) < _HEADER.size:
        raise ValueError("no 64-bit ELF file")
    start, entry, count, names = _HEADER.unpack_from(cubin)
    if entry < _SECTION.size or names >= count or start + entry * count > len(cubin):
        raise ValueError("an ELF file that is cut off")
    sections = [_SECTION.unpack_from(cubin, start + entry * index) for index in range(count)]
    text = cubin[sections[names][2] : sections[names][2] + sections[names][3]]
    return b"".join(
        cubin[offset : offset + size] for name, _, offset, size in sections if text[name:].startswith(b".text.")
    )
