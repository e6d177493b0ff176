"""The operation of a reduction: a name, a sum of products, or a function of the caller; and what functions of the caller
need inside a call: arguments made of memory, and a place for exceptions."""

from __future__ import annotations

import itertools
import struct
import threading
from typing import Any, Callable

from rankine import _engine
from rankine._engine import OPERATIONS
from rankine._errors import imported, refuse

_FACTOR_FORMATS = {
    "i8": "b", "u8": "B", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f64": "d",
    "f16": "f", "f32": "f", "bf16": "f", "f8e4m3": "f", "f8e5m2": "f",
    "c64": "ff", "c128": "dd",
}  # fmt: skip


_numbers = itertools.count()  # of Operations


class Pieces:
    """Makes the arguments of a callback from memory. ``element`` is a number of bytes (then
    arguments are memoryviews of bytes) or a NumPy dtype (then arguments are arrays)."""

    def __init__(self, element: Any) -> None:
        self._dtype: Any = None
        self._numpy: Any = None
        if isinstance(element, int):
            self.element_bytes = element
        else:
            self._numpy = imported("numpy", "rankine.Operation or rankine.FunctionEpilogue on arrays of a NumPy dtype")
            self._dtype = self._numpy.dtype(element)
            self.element_bytes = self._dtype.itemsize
            if self._dtype.hasobject:
                refuse(f"element is {self._dtype}, which has Python objects; allowed are elements without")
        if not 1 <= self.element_bytes <= 4096:
            refuse(f"element has {self.element_bytes} bytes; allowed are 1 to 4096")
        self.is_array = self._dtype is not None

    def at(self, address: int, count: int) -> Any:
        piece = _engine.memory(address, count * self.element_bytes)
        if self._dtype is None:
            return piece
        return self._numpy.frombuffer(piece, self._dtype)


class RaisedHere(threading.local):
    """The exception that a callback has raised on a thread, because no exception may propagate into
    C. ``with`` stores it."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is not None:
            self.error = error
        return True

    def take(self) -> BaseException | None:
        error, self.error = self.error, None
        return error


class PreMulSum:
    """The sum of each rank's input times the rank's factor: ``me.all_reduce(x,
    op=PreMulSum(0.5))``.

    The factor must fit the type of the elements; for 8- and 16-bit floats it is an f32.
    """

    def __init__(self, factor: complex) -> None:
        self.factor = factor

    def packed(self, type_name: str) -> bytes:
        form = _FACTOR_FORMATS.get(type_name)
        if form is None:
            refuse(f"op is a PreMulSum on elements of {type_name}; allowed are all types but b8")
        value: Any = self.factor
        parts = (value.real, value.imag) if len(form) == 2 else (value,)
        try:
            if form in "bBiIqQ":
                parts = (value.__index__(),)
            return struct.pack(form, *parts)
        except (struct.error, TypeError, AttributeError, OverflowError) as error:
            refuse(f"op is a PreMulSum of {value!r} on elements of {type_name}: {error}")
            raise  # not reached


class Operation:
    """A reduction by a user function: ``function(lower, inout)`` computes ``inout[i] = lower[i] op
    inout[i]`` for all i.

    ``element`` is the bytes of an element, 1 to 4,096; then the function gets memoryviews of bytes.
    Or ``element`` is a NumPy dtype, possibly structured; then the function gets arrays of it. The
    function is called on pieces of vectors, on the threads of the ranks that reduce, with the GIL,
    and must be associative. With ``commutative=False``, contributions are combined in rank order.
    All ranks use the same Operation object. An exception in the function ends the call: on its rank
    the error has the exception as ``__cause__``, unless it was raised on the thread of a
    progress_core; other ranks get Code.remote_error.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], object],
        element: Any,
        *,
        commutative: bool = True,
    ) -> None:
        self._function = function
        self._pieces = Pieces(element)
        self.element_bytes = self._pieces.element_bytes
        self.commutative = bool(commutative)
        self._raised = RaisedHere()
        self._number = next(_numbers)
        self._call = self._apply  # the engine calls this object, and does not keep it alive

    def _apply(self, lower: int, inout: int, count: int) -> int:
        with self._raised:
            self._function(self._pieces.at(lower, count), self._pieces.at(inout, count))
            return 0
        return 1

    def _take_raised(self) -> BaseException | None:
        return self._raised.take()
