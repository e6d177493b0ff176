"""Errors, and the conversion and checks of arguments. rankine._engine uses these functions, too."""

from __future__ import annotations

import array
import enum
import importlib
import math
import operator
import sys
from typing import Any, Callable, NoReturn, Protocol, Sequence


def imported(package: str, purpose: str) -> Any:
    """Imports a package that only ``purpose`` needs. If it is missing, raises an ImportError that
    names both."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        message = f"the package {package} is not installed for {sys.executable}; {purpose} needs it"
        raise ModuleNotFoundError(message, name=package) from None


class Code(enum.IntEnum):
    """The kind of an error, with the numbers of rkResult_t."""

    success = 0
    system_error = 2
    internal_error = 3
    invalid_argument = 4
    invalid_usage = 5
    remote_error = 6
    mismatch = 8
    timeout = 9
    rank_lost = 10
    aborted = 11
    out_of_memory = 12
    forked = 13


class Error(RuntimeError):
    """The error of a call. A program can react to ``code``; the text names the function, the
    argument or the rank."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[Code, str]]:
        return type(self), (self.code, str(self))


class InvalidArgument(Error, ValueError):
    """An invalid argument: nothing has happened, and the communicator stays usable."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(code, text)


def refuse(text: str) -> NoReturn:
    raise InvalidArgument(Code.invalid_argument, text)


def fail(code: int, text: str) -> NoReturn:
    raise Error(Code(code), text)


class HasRaised(Protocol):
    """An object that runs Python inside a call."""

    def _take_raised(self) -> BaseException | None:
        """Returns and clears the exception that it has raised on this thread."""


def raise_for(
    code: int, text: bytes, interrupt: BaseException | None, callbacks: Sequence[HasRaised] | None
) -> None:
    """Raises the error of a call that returned ``code`` and ``text``. Exceptions of a signal handler
    (such as KeyboardInterrupt) and of the call's callbacks on this thread come first, or are its
    cause."""
    error: Error | None = None
    if code != 0:
        kind = InvalidArgument if code == Code.invalid_argument else Error
        error = kind(Code(code), text.decode(errors="replace"))
    raised = [cause for callback in callbacks or () if (cause := callback._take_raised()) is not None]
    if interrupt is not None:
        raise interrupt from error
    if raised and (error is None or not isinstance(raised[0], Exception)):
        raise raised[0] from error
    if error is not None:
        raise error from (raised[0] if raised else None)


class NotCopied:
    """The base of objects of one process: they cannot be copied or pickled."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a rankine.{type(self).__name__} cannot be copied or pickled; make one in each process")


class Owner(NotCopied):
    """The base of objects with one object of the C library, ``_owned``, which ends by close(), or by
    garbage collection. None: closed, or not made."""

    _owned: int | None = None
    _closed = ""  # the text of errors of a closed object
    _destroy: Callable[[int], object]

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Frees the object. A second call has no effect."""
        owned, self._owned = self._owned, None
        if owned is not None:
            type(self)._destroy(owned)

    @property
    def _handle(self) -> int:
        if self._owned is None:
            raise Error(Code.invalid_usage, self._closed)
        return self._owned


def milliseconds(name: str, seconds: float | None) -> int:
    """Converts a time limit to C form: 0 for the default (None), -1 for no limit (inf)."""
    if seconds is None:
        return 0
    if seconds == float("inf"):
        return -1
    try:
        fits = 0.001 <= seconds <= 1e9
    except TypeError:
        fits = False
    if not fits:
        refuse(f"{name} is {seconds!r} s; allowed are 0.001 to 1e9, inf, and None for the default")
    return round(seconds * 1000)


def whole(name: str, value: Any, least: int = -(2**31), most: int = 2**31 - 1) -> int:
    """Checks that a whole number has a C form."""
    try:
        number = operator.index(value)
    except TypeError:
        refuse(f"{name} is {value!r}; allowed are whole numbers")
    if not least <= number <= most:
        allowed = "allowed are numbers of 32 bits" if least == -(2**31) else f"allowed are {least} to {most}"
        refuse(f"{name} is {number}; {allowed}")
    return number


def ints(name: str, values: object) -> bytes:
    """Returns a list of whole numbers in C form; None is an empty list."""
    try:
        numbers = [operator.index(value) for value in values or ()]  # type: ignore[attr-defined]
    except TypeError:
        refuse(f"{name} is {values!r}; allowed are lists of whole numbers")
    if any(not -(2**31) <= number < 2**31 for number in numbers):
        refuse(f"{name} is {values!r}; allowed are numbers of 32 bits")
    return array.array("i", numbers).tobytes()


def sizes(values: Sequence[int]) -> bytes:
    """Returns sizes or addresses in C form."""
    return array.array("Q", values).tobytes()


def counts(values: Sequence[Any], blocks: int) -> bytes:
    """Returns the counts of a call in C form; rows of counts are flattened."""
    rows = [row if hasattr(row, "__len__") else (row,) for row in values]
    flat = [whole("counts", count, 0, 2**48 - 1) for row in rows for count in row]
    if len(flat) != blocks:
        refuse(f"counts is {values!r}; allowed are {blocks} counts, 0 and more")
    return sizes(flat)


def listed(names: dict[str, int]) -> str:
    return ", ".join(names)


def not_a_buffer(name: str, value: object) -> NoReturn:
    raise TypeError(f"{name} is a {type(value).__name__}; allowed are NumPy arrays and other buffers")


def interface(name: str, items: dict[str, Any]) -> tuple[int, bool, str, int, int]:
    """Reads NumPy's __array_interface__: address, is read-only, kind and bytes of an element, elements."""
    shape, form, (address, readonly) = items["shape"], items["typestr"], items["data"]
    size = int(form[2:])
    stride, is_contiguous = size, True
    for length, step in zip(reversed(shape), reversed(items.get("strides") or ())):
        is_contiguous = is_contiguous and (length == 1 or step == stride)
        stride *= length
    if not is_contiguous and 0 not in shape:
        refuse(f"{name} cannot be used: the array is not C-contiguous")
    return address, readonly, "V" if form[0] == ">" and size > 1 else form[1], size, math.prod(shape)


def exported(export: Any) -> object:
    """Calls an object's __dlpack__(); older ones know no versions."""
    try:
        return export(max_version=(1, 0))
    except TypeError:
        return export()


def text(name: str, value: str | None) -> bytes | None:
    """Returns a text in C form; a C text ends at the first NUL."""
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value:
        refuse(f"{name} is {value!r}; allowed are str without a NUL")
    return value.encode()
