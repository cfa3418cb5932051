"""Whether a GPU binary is all there: one written to a disk without space ends early, and only loading it would tell."""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF\x02\x01"
_HEADER_BYTES = 64
_NO_BITS = 8
"""Type of a section that takes no room in the file."""


def is_whole(binary: bytes) -> bool:
    """Whether all that the headers of a 64-bit little-endian ELF file speak of lies within it (ELF-64, 1.5)."""
    if len(binary) < _HEADER_BYTES or not binary.startswith(_MAGIC):
        return False
    segments_at, sections_at = struct.unpack_from("<QQ", binary, 32)
    segment_bytes, segments, section_bytes, sections = struct.unpack_from("<HHHH", binary, 54)
    end = max(segments_at + segments * segment_bytes, sections_at + sections * section_bytes)
    if end > len(binary):
        return False
    starts = (sections_at + index * section_bytes for index in range(sections))
    return all(_end_of_section(binary, start) <= len(binary) for start in starts)


def _end_of_section(binary: bytes, start: int) -> int:
    (kind,) = struct.unpack_from("<I", binary, start + 4)
    offset, size = struct.unpack_from("<QQ", binary, start + 24)
    return 0 if kind == _NO_BITS else int(offset + size)
