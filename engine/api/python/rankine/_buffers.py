"""Reads the address, type and count of an object with the buffer protocol: PEP 3118 through ctypes,
because a memoryview does not reveal its address."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p, py_object
from typing import Any

from rankine._library import refuse

# Indexed by rkDataType_t.
TYPES = (
    "i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64",
    "bf16", "f8e4m3", "f8e5m2", "b8", "c64", "c128",
)  # fmt: skip
NUMBERS = {name: number for number, name in enumerate(TYPES)}
BYTES = {
    "i8": 1, "u8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f16": 2, "f32": 4, "f64": 8,
    "bf16": 2, "f8e4m3": 1, "f8e5m2": 1, "b8": 1, "c64": 8, "c128": 16,
}  # fmt: skip
OPAQUE = 100  # rkOpaque

_FLOATS = {"e": "f16", "f": "f32", "d": "f64", "?": "b8", "Zf": "c64", "Zd": "c128"}
_CONTIGUOUS_WITH_FORMAT = 0x0004 | 0x0020 | 0x0018  # FORMAT | C_CONTIGUOUS, as in CPython's pybuffer.h


class _View(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [py_object, ctypes.POINTER(_View), c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_View)]
_release.restype = None


def _natural(form: str, itemsize: int) -> str:
    """Returns the type of a struct format: "f32", "u16"; "" if the format is not supported."""
    bare = form[1:] if form[:1] in "@=<" else form
    if bare in _FLOATS:
        return _FLOATS[bare]
    if len(bare) == 1 and bare in "bhilqn":
        return f"i{8 * itemsize}"
    if len(bare) == 1 and bare in "cBHILQN":
        return f"u{8 * itemsize}"
    return ""


# Type names, by format and bytes per element of a view.
_naturals: dict[tuple[bytes | None, int], str] = {}


def _natural_of(form: bytes | None, itemsize: int) -> str:
    found = _natural((form or b"B").decode(), itemsize)
    _naturals[form, itemsize] = found
    return found


# Unused views, kept for reuse: making one costs as much as filling it.
_spare: list[_View] = []


class Buffer:
    """A buffer in use, until release(): meanwhile its owner cannot resize or free it."""

    __slots__ = ("_view", "address", "bytes", "name", "natural", "item_bytes")

    def __init__(self, name: str, value: Any, writable: bool) -> None:
        self._view: _View | None = None
        try:
            view = _spare.pop()
        except IndexError:
            view = _View()
        try:
            _get(value, view, _CONTIGUOUS_WITH_FORMAT)
        except (ValueError, BufferError) as error:
            refuse(f"{name} cannot be used: {error}")
        except TypeError:
            raise TypeError(
                f"{name} is a {type(value).__name__}; allowed are NumPy arrays and other buffers"
            ) from None
        self._view = view
        self.name = name
        self.address: int | None = view.buf
        self.bytes: int = view.len
        self.item_bytes: int = view.itemsize
        kind = view.format, self.item_bytes
        natural = _naturals.get(kind)
        self.natural: str = _natural_of(*kind) if natural is None else natural
        if writable and view.readonly:
            self.release()
            refuse(f"{name} is read-only; allowed for results are writable buffers")

    def release(self) -> None:
        """Ends the use. A second call has no effect."""
        view, self._view = self._view, None
        if view is not None:
            _release(view)
            _spare.append(view)

    __del__ = release  # also if __init__ fails

    @property
    def format(self) -> str:
        """The struct format; valid while the buffer is in use."""
        return ((self._view.format if self._view is not None else None) or b"B").decode()

    def type_name(self, dtype: str | None) -> str:
        """The type of the elements. ``dtype`` gives the meaning of unsigned integer words."""
        if dtype is None:
            if self.natural in NUMBERS:
                return self.natural
            refuse(
                f"{self.name} has elements of format '{self.format}'; "
                f"allowed are {', '.join(TYPES)} (set dtype='bf16' for integer words that hold bf16)"
            )
        if dtype not in NUMBERS:
            refuse(f"dtype is {dtype!r}; allowed are {', '.join(TYPES)}")
        if self.natural in (dtype, f"u{8 * BYTES[dtype]}"):
            return dtype
        refuse(
            f"{self.name} has elements of format '{self.format}'; "
            f"dtype {dtype} is for arrays of it or of unsigned integers of {BYTES[dtype]} bytes"
        )
