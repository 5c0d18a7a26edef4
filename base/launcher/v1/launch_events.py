"""Event files of TensorBoard: their scalars, and nothing else of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from launch_files import KIBIBYTE
from launch_metrics import METRIC_NAME

if TYPE_CHECKING:
    from launch_metrics import Gathered

LARGEST_EVENT = 256 * KIBIBYTE  # that is searched for scalars
CHECKED_EVENT = 4 * KIBIBYTE  # whose checksum is compared even if it has no scalars


class Events:
    """Gathers the scalars of event files: frames of TFRecord with messages of protobuf."""

    HEADER = 12  # bytes: length and its checksum

    def __init__(self, gathered: Gathered) -> None:
        self.gathered = gathered
        self.begin()
        self.skipped = 0

    def begin(self) -> None:
        """Start with another file."""
        self.buffer, self.ahead, self.is_lost = bytearray(), 0, False
        self.gathered.begin_file()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of a file. What is damaged is counted."""
        if self.ahead:  # of a record that is too large to have scalars
            passed = min(self.ahead, len(chunk))
            self.ahead -= passed
            chunk = chunk[passed:]
        if self.is_lost:
            return
        self.buffer += chunk
        position = 0
        while len(self.buffer) - position >= self.HEADER:
            header = bytes(self.buffer[position : position + self.HEADER])
            length = int.from_bytes(header[:8], "little")
            if int.from_bytes(header[8:], "little") != masked_crc(header[:8]):
                self.skipped += 1
                self.is_lost = True  # where the next record begins is unknown
                break
            if length > LARGEST_EVENT:
                end = position + self.HEADER + length + 4
                self.ahead = max(0, end - len(self.buffer))
                position = min(end, len(self.buffer))
                continue
            end = position + self.HEADER + length + 4
            if len(self.buffer) < end:
                break
            self.take(bytes(self.buffer[position + self.HEADER : end]))
            position = end
        del self.buffer[: len(self.buffer) if self.is_lost else position]

    def take(self, record: bytes) -> None:
        """Take the content of a frame and its checksum."""
        content, crc = record[:-4], int.from_bytes(record[-4:], "little")
        try:
            step, scalars = scalars_of(content)
        except (ValueError, IndexError, OverflowError):
            self.skipped += 1
            return
        # Large records without scalars are graphs and histograms: their checksums would cost the most.
        if scalars or len(content) <= CHECKED_EVENT:
            if masked_crc(content) != crc:
                self.skipped += 1
            else:
                self.gathered.add(scalars, step, lambda _name: False)


CRC_TABLE: list[int] = []


def masked_crc(content: bytes) -> int:
    """Return the checksum of TFRecord: a rotated CRC-32C plus a constant."""
    if not CRC_TABLE:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901 - the table's recurrence
            CRC_TABLE.append(value)
    crc = 0xFFFFFFFF
    for byte in content:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message. Raises ValueError or IndexError."""
    position = 0
    while position < len(message):
        key, position = varint(message, position)
        wire = key & 7
        if wire == 0:
            value, position = varint(message, position)
            yield key >> 3, value
            continue
        if wire == 2:
            size, position = varint(message, position)
        else:
            size = {1: 8, 5: 4}.get(wire, len(message))
        end = position + size
        if end > len(message):
            raise ValueError("a field is longer than its message")
        yield key >> 3, message[position:end]
        position = end


def varint(message: bytes, position: int) -> tuple[int, int]:
    """Read an integer of variable length, and return the position behind it."""
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80 or shift > 63:
            return value, position


def unpack(kind: str, content: bytes) -> float:
    """Return the first number of packed bytes. Raises ValueError if there is none."""
    import struct

    size = struct.calcsize(kind)
    if len(content) < size:
        raise ValueError("a number is cut")
    return float(struct.unpack(f"<{kind}", content[:size])[0])


def scalars_of(event: bytes) -> tuple[int, dict[str, float]]:
    """Return step and scalars of an Event: `simple_value`, or a tensor with one number. Raises ValueError."""
    step, scalars = 0, {}
    for number, content in fields(event):
        if number == 2 and isinstance(content, int):
            step = content - 2**64 if content >= 2**63 else content
        elif number == 5 and isinstance(content, bytes):  # Summary
            for inner, value in fields(content):
                if inner == 1 and isinstance(value, bytes):
                    scalars.update(scalar_of(value))
    return step, scalars


def scalar_of(value: bytes) -> dict[str, float]:
    """Return tag and number of a Summary.Value; nothing if it is not a scalar."""
    tag, scalar = "", None
    for number, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if number == 1:
            tag = content.decode("utf-8", "replace")
        elif number == 2:
            scalar = unpack("f", content)
        elif number == 8:
            scalar = tensor_number(content)
    return {} if scalar is None or not METRIC_NAME.fullmatch(tag) else {tag: scalar}


# By dtype of a TensorProto: the type of its raw bytes, the field of its list, and the type there.
TENSORS = {1: ("f", 5, "f"), 2: ("d", 6, "d"), 3: ("i", 7, ""), 9: ("q", 10, ""), 19: ("e", 13, "")}


def tensor_number(tensor: bytes) -> float | None:
    """Return the one number of a TensorProto; None if it has another shape or type."""
    members: dict[int, Any] = {}
    for number, content in fields(tensor):
        if number == 2:
            sizes = [
                value
                for place, dim in fields(content)
                if place == 2
                for key, value in fields(dim)
                if key == 1
            ]
            if any(size != 1 for size in sizes):
                return None
        members.setdefault(number, content)
    raw, place, kind = TENSORS.get(members.get(1, 0), ("", 0, ""))
    if not raw:
        return None
    if members.get(4):
        return unpack(raw, members[4])
    content = members.get(place)
    if content is None:
        return 0.0  # protobuf leaves out zeros
    if kind:
        return unpack(kind, content)
    value = varint(content, 0)[0] if isinstance(content, bytes) else content
    if raw == "e":
        return unpack("e", value.to_bytes(8, "little"))
    return float(value - 2**64 if value >= 2**63 else value)
