"""Pickles of numbers, text and arrays of bytes; anything else in them is refused before it exists.

A pickle is a program. This reader gives it three things to call, all of them stand-ins that only keep what
they are given; NumPy itself is neither needed nor reached.
"""

import io
import math
import pickle
from typing import Any, ClassVar, NoReturn

UNSIGNED_BYTE = b"u1"
STATE = 5
"""Of an array: version, shape, type, whether the columns come first, content."""


class RefusedError(Exception):
    """The pickle holds something else, or is no whole pickle; says what."""


class Array:
    """An array of unsigned bytes: its shape, and its content row by row."""

    __slots__ = ("content", "shape")

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.content = b""

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != STATE:
            _refuse("an array in an unknown form")
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Type) or not isinstance(content, bytes) or not _is_shape(shape):
            _refuse("an array of something else than bytes")
        if math.prod(shape) != len(content):
            _refuse(f"an array of {shape} with {len(content)} bytes")
        self.shape = shape
        if columns_first:
            rows = shape[0]
            content = b"".join(content[row::rows] for row in range(rows))
        self.content = content


class _Type:
    """Stands for numpy.dtype: unsigned bytes are the only one."""

    __slots__ = ()

    def __init__(self, name: object, *_: object) -> None:
        if name not in (UNSIGNED_BYTE, UNSIGNED_BYTE.decode()):
            _refuse(f"an array of {name!r}")

    def __setstate__(self, state: object) -> None:
        """Byte order and flags say nothing of single bytes."""


def _reconstruct(*_: object) -> Array:
    """Stand for NumPy's function of this name: an empty array, to be filled by its state."""
    return Array()


class _Reader(pickle.Unpickler):
    KNOWN: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): Array,
        ("numpy", "dtype"): _Type,
    }

    def find_class(self, module: str, name: str, /) -> Any:
        """Give the stand-in; everything else is refused by its name."""
        found = self.KNOWN.get((module, name))
        if found is None:
            _refuse(f"{module}.{name}")
        return found


def load(content: bytes) -> object:
    """Read a pickle; text of Python 2 comes as bytes. Raises RefusedError."""
    try:
        return _Reader(io.BytesIO(content), encoding="bytes").load()
    except RefusedError:
        raise
    # What broken or hostile pickles make the reader run into has no common class.
    except Exception as error:
        raise RefusedError(f"it is damaged ({type(error).__name__})") from error


def _is_shape(shape: object) -> bool:
    if not isinstance(shape, tuple) or not shape:
        return False
    return all(isinstance(length, int) and length > 0 for length in shape)


def _refuse(what: str) -> NoReturn:
    raise RefusedError(f"it holds {what}")
