"""Messages arrive whole and in order, whatever their size; silence and death are told apart."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.measure.channel import Channel, ChannelClosed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


def open_pair() -> tuple[Channel, Channel]:
    first_reads, second_writes = os.pipe()
    second_reads, first_writes = os.pipe()
    return Channel(first_reads, first_writes), Channel(second_reads, second_writes)


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    ends = open_pair()
    yield ends
    for end in ends:
        end.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.dictionaries(st.text(), JSON), max_size=5))
def test_what_is_sent_is_received(messages: list[dict[str, object]]) -> None:
    left, right = open_pair()
    try:
        for message in messages:
            left.send(message)
        assert [right.receive(1) for _ in messages] == messages
    finally:
        left.close()
        right.close()


def test_a_message_larger_than_the_pipe(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    large = {"text": "x" * 1_000_000}
    sender = threading.Thread(target=left.send, args=(large,))
    sender.start()
    assert right.receive(10) == large
    sender.join()


def test_silence_is_a_timeout(pair: tuple[Channel, Channel]) -> None:
    with pytest.raises(TimeoutError):
        pair[0].receive(0.01)


def test_a_closed_end_is_told_in_both_directions(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    right.close()
    with pytest.raises(ChannelClosed):
        left.receive(1)
    with pytest.raises(ChannelClosed):
        left.send({})


@pytest.mark.parametrize("line", [b"not json\n", b"[1]\n", b"\xff\xfe\n"])
def test_anything_but_a_message_closes(line: bytes) -> None:
    read_fd, write_fd = os.pipe()
    os.write(write_fd, line)
    channel = Channel(read_fd, write_fd)
    with pytest.raises(ChannelClosed):
        channel.receive(1)
    channel.close()
