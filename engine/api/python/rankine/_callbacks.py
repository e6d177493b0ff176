"""Runs functions of the caller inside a call: converts their arguments, and keeps their exceptions.
"""

from __future__ import annotations

import threading
from typing import Any

from rankine import _engine
from rankine._errors import imported, refuse


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
