"""The instructions of a cubin, found by its section table; what is no cubin is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen import machine_code


def cubin(*sections: tuple[str, bytes]) -> bytes:
    """An ELF file with these sections, and the table of their names as the last one."""
    named = [*sections, (".shstrtab", b"")]
    texts, names, offsets = b"\0", [], []
    for name, _ in named:
        names.append(len(texts))
        texts += name.encode() + b"\0"
    body = b""
    for _, data in (*sections, ("", texts)):
        offsets.append((64 + len(body), len(data)))
        body += data
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 0, 0)
        for name, (offset, size) in zip(names, offsets, strict=True)
    )
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(named), len(sections))
    return header + body + table


def test_only_instructions_count() -> None:
    assert machine_code(cubin((".text.a", b"one"), (".nv.info", b"info"), (".text.b", b"two"))) == b"onetwo"
    assert machine_code(cubin((".debug_line", b"x"))) == b""


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ELF"):
        machine_code(data)


def test_a_cut_off_file_is_refused() -> None:
    whole = cubin((".text.a", b"one"))
    with pytest.raises(ValueError, match="cut off"):
        machine_code(whole[:-1])
