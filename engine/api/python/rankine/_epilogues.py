"""Epilogues: steps on the rows of a rank's result while the rows are in its cache."""

from __future__ import annotations

from typing import Any, Callable

from rankine import _engine
from rankine._operations import Pieces, RaisedHere
from rankine._engine import BYTES, TYPES, Buffer
from rankine._errors import Owner, refuse

# Indexed by rkNorm_t and rkActivation_t.
_NORMS = (None, "rms", "layer")
_ACTIVATIONS = (None, "relu", "gelu_tanh", "silu")


def _check_row(row_elements: int) -> None:
    if not 1 <= row_elements < 2**31:
        refuse(f"row_elements is {row_elements}; allowed are 1 to {2**31 - 1}")


def _number(name: str, value: Any, allowed: tuple[Any, ...]) -> int:
    if value not in allowed:
        refuse(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}")
    return allowed.index(value)


class Epilogue(Owner):
    """Steps or a function, made by RowEpilogue or FunctionEpilogue: ``me.all_reduce(x,
    epilogue=norm)``. Also for reduce_scatter and all_gather; calls may block, or be started or
    prepared. All ranks pass an epilogue with rows of equal size; the steps may differ between
    ranks. The result has the same bits as without an epilogue. One thread uses an epilogue, in one
    call at a time.
    """

    _closed = "the epilogue has been closed"
    _destroy = _engine.rkEpilogueDestroy
    _row_bytes: int  # bytes of a row of the call's result

    def __init__(self, epilogue: int) -> None:
        """Takes ownership of a rkEpilogue_t."""
        self._owned = epilogue

    def close(self) -> None:
        """Frees the epilogue. A second call has no effect. Requests keep their epilogue alive."""
        super().close()

    def check_rows(self, result_bytes: int) -> None:
        """Refuses a result with another number of rows than this epilogue's buffers."""

    def _take_raised(self) -> BaseException | None:
        """Returns and clears the exception that it has raised on this thread."""
        return None

    def apply(self, rows: Any) -> None:
        """Applies the epilogue to all rows without a collective, with the same bits."""
        buffer = Buffer("rows", rows, False)
        if buffer.bytes % self._row_bytes != 0:
            refuse(f"rows has {buffer.bytes} bytes; allowed are multiples of {self._row_bytes}, a row")
        self.check_rows(buffer.bytes)
        _engine.rkEpilogueApply(self._handle, buffer.address, buffer.bytes // self._row_bytes, (self,))


class RowEpilogue(Epilogue):
    """Steps on each row x of ``row_elements`` elements, in floats and in this order; steps that are
    None are skipped:

        x += bias;  residual += x and x = residual;  norm;  activation;  out, with a scale per row

    ``dtype`` is the type of the call, "f32", "f16" or "bf16", and of bias, residual, weight and
    shift. ``norm``: "rms" (weight) or "layer" (weight and shift). ``activation``: "relu",
    "gelu_tanh" or "silu". ``out`` has elements of ``out_dtype`` (dtype's by default), which is one
    of these three, or "i8" or "f8e4m3": then x is out times ``scales``, a float32 per row. The
    steps write to residual, out and scales, which have as many rows as the call's result at this
    rank. A buffer must not overlap another one, or one of the call.
    """

    def __init__(
        self,
        row_elements: int,
        dtype: str,
        *,
        bias: Any = None,
        residual: Any = None,
        norm: str | None = None,
        weight: Any = None,
        shift: Any = None,
        epsilon: float = 1e-5,
        activation: str | None = None,
        out: Any = None,
        out_dtype: str | None = None,
        scales: Any = None,
    ) -> None:
        _check_row(row_elements)
        types = tuple(TYPES)
        out_dtype = dtype if out_dtype is None else out_dtype
        number, out_number = _number("dtype", dtype, types), _number("out_dtype", out_dtype, types)
        self._row_bytes = row_elements * BYTES[dtype]
        self._rows: int | None = None
        self._buffers: list[Buffer] = []  # in use during the epilogue's lifetime

        def row(name: str, value: Any) -> int:
            return self._place(name, value, dtype, row_elements, writable=False, one=True)

        def rows(name: str, value: Any, type_name: str, width: int) -> int:
            return self._place(name, value, type_name, width, writable=True, one=False)

        epilogue = _engine.create_epilogue(
            number,
            row_elements,
            row("bias", bias),
            rows("residual", residual, dtype, row_elements),
            _number("norm", norm, _NORMS),
            row("weight", weight),
            row("shift", shift),
            epsilon,
            _number("activation", activation, _ACTIVATIONS),
            out_number,
            rows("out", out, out_dtype, row_elements),
            rows("scales", scales, "f32", 1),
        )
        super().__init__(epilogue)

    def _place(self, name: str, value: Any, type_name: str, width: int, *, writable: bool, one: bool) -> int:
        if value is None:
            return 0
        buffer = Buffer(name, value, writable)
        self._buffers.append(buffer)
        buffer.type(type_name)  # refuses other elements
        count = buffer.bytes // BYTES[type_name]
        wanted = 1 if one else self._rows
        if count % width != 0 or wanted not in (None, count // width):
            needs = f"rows of {width}" if wanted is None else f"{wanted} x {width}"
            refuse(f"{name} has {count} elements; allowed are {needs}")
        if not one:
            self._rows = count // width
        return buffer.address

    def check_rows(self, result_bytes: int) -> None:
        if self._rows is not None and result_bytes != self._rows * self._row_bytes:
            refuse(
                f"epilogue has places for {self._rows} rows of {self._row_bytes} bytes; "
                f"the result has {result_bytes} bytes"
            )


class FunctionEpilogue(Epilogue):
    """A user function: ``function(rows, first)`` gets final rows of the result, from row ``first``
    on. It must not change them, and writes its results to its own buffers; it is called once per
    row, in unspecified order, with the GIL, on the thread of its rank.

    ``element`` is the bytes of an element (then rows are a memoryview of bytes), or a NumPy dtype
    (then rows are an array of shape (rows, row_elements)). An exception in the function ends the
    call: on its rank the error has the exception as ``__cause__``, unless it was raised on the
    thread of a progress_core; other ranks get Code.remote_error.
    """

    def __init__(self, function: Callable[[Any, int], object], row_elements: int, element: Any) -> None:
        _check_row(row_elements)
        pieces = Pieces(element)
        self._row_bytes = row_elements * pieces.element_bytes
        raised = self._raised = RaisedHere()

        def call(address: int, first: int, count: int) -> int:
            with raised:
                rows = pieces.at(address, count * row_elements)
                function(rows.reshape(count, row_elements) if pieces.is_array else rows, first)
                return 0
            return 1

        self._call = call  # the engine calls this object, and does not keep it alive
        super().__init__(_engine.create_row_function(row_elements, call))

    def _take_raised(self) -> BaseException | None:
        return self._raised.take()
