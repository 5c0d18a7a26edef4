"""The names of scalars in event files of TensorBoard: records of a length, the protocol buffer Event, and checksums."""

from collections.abc import Iterator

MOST_BYTES = 64 * 1024 * 1024
EVENT_SUMMARY, SUMMARY_VALUE, VALUE_TAG = 5, 1, 1
"""Numbers of fields in tensorflow/core/util/event.proto and framework/summary.proto."""
LENGTH_DELIMITED = 2


def scalar_tags(content: bytes) -> tuple[str, ...]:
    """Return the names of an event file, in the order in which they first come; none for a file of another kind."""
    tags: dict[str, None] = {}
    position = 0
    while position + 12 <= min(len(content), MOST_BYTES):
        size = int.from_bytes(content[position : position + 8], "little")
        event = content[position + 12 : position + 12 + size]
        if len(event) < size:
            break
        for summary in _fields(event, EVENT_SUMMARY):
            for value in _fields(summary, SUMMARY_VALUE):
                for tag in _fields(value, VALUE_TAG):
                    tags.setdefault(tag.decode(errors="replace"))
        position += 12 + size + 4
    return tuple(tags)


def _fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the contents of one field of a message; what is no message ends it."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == LENGTH_DELIMITED:
            size, position = _varint(message, position)
            if number == wanted:
                yield message[position : position + size]
            position += size
        elif kind == 0:
            _, position = _varint(message, position)
        elif kind in {1, 5}:
            position += 8 if kind == 1 else 4
        else:
            return


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return value, position
