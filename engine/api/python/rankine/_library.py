"""Loads librankine.so.1 by ctypes, declares the prototypes of rankine.h, and converts results to
exceptions.

The library is taken from the prefix of this package's installation, otherwise from the dynamic
linker's search path (LD_LIBRARY_PATH).
"""

from __future__ import annotations

import atexit
import ctypes
import enum
import importlib
import operator
import os
import pathlib
import sys
import threading
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Generator, NoReturn


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


class NotCopied:
    """The base of objects of one process: they cannot be copied or pickled."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a rankine.{type(self).__name__} cannot be copied or pickled; make one in each process")


class Config(ctypes.Structure):
    """rkConfig_t."""

    _fields_ = [
        ("size", c_size_t),
        ("timeoutMs", c_int64),
        ("wait", c_char_p),
        ("network", c_char_p),
        ("nodes", POINTER(c_int)),
        ("levels", POINTER(c_int)),
        ("levelCount", c_int),
        ("tuned", c_int),
        ("recordTimes", c_int),
        ("planBytes", c_size_t),
        ("order", c_char_p),
        ("progressCore", c_int),
        ("placement", c_char_p),
        ("ports", c_int),
    ]


class UniqueId(ctypes.Structure):
    """rkUniqueId."""

    _fields_ = [("internal", ctypes.c_byte * 128)]


class CallOptions(ctypes.Structure):
    """rkCallOptions_t."""

    _fields_ = [
        ("size", c_size_t),
        ("algorithm", c_char_p),
        ("transport", c_char_p),
        ("timeoutMs", c_int64),
        ("segments", c_int),
        ("group", c_int),
        ("aggregation", c_int),
        ("dims", POINTER(c_int)),
        ("dimCount", c_int),
        ("skips", POINTER(c_int)),
        ("skipCount", c_int),
        ("levels", POINTER(c_int)),
        ("levelCount", c_int),
        ("tag", c_uint64),
        ("order", c_char_p),
        ("radix", c_int),
        ("sharedPayloads", c_int),
    ]


class RowSteps(ctypes.Structure):
    """rkRowSteps_t."""

    _fields_ = [
        ("size", c_size_t),
        ("type", c_int),
        ("rowElements", c_size_t),
        ("bias", c_void_p),
        ("residual", c_void_p),
        ("norm", c_int),
        ("weight", c_void_p),
        ("shift", c_void_p),
        ("epsilon", c_float),
        ("activation", c_int),
        ("outType", c_int),
        ("out", c_void_p),
        ("scales", c_void_p),
    ]


ReduceFunction = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)
RowFunction = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t, c_void_p)

_InterruptCheck = ctypes.CFUNCTYPE(c_int)

_COUNTS = POINTER(c_size_t)
_PROTOTYPES = {
    "rkGetVersion": [POINTER(c_int)],
    "rkGetUniqueIdByName": [POINTER(UniqueId), c_char_p],
    "rkCommInitRankConfig": [POINTER(c_void_p), c_int, UniqueId, c_int, POINTER(Config)],
    "rkCommInitAllConfig": [POINTER(c_void_p), c_int, POINTER(Config)],
    "rkCommSplit": [c_void_p, c_int, c_int, POINTER(c_void_p)],
    "rkCommDestroy": [c_void_p],
    "rkCommAbort": [c_void_p],
    "rkCommFail": [c_void_p, c_char_p],
    "rkSetInterruptCheck": [_InterruptCheck],
    "rkCommPinThread": [c_void_p],
    "rkCommCpu": [c_void_p, POINTER(c_int)],
    "rkCommPortsInUse": [c_void_p, POINTER(c_int), POINTER(c_int)],
    "rkCommCount": [c_void_p, POINTER(c_int)],
    "rkCommUserRank": [c_void_p, POINTER(c_int)],
    "rkCommGetAsyncError": [c_void_p, POINTER(c_int)],
    "rkAllReduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkReduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_void_p],
    "rkBcast": [c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkAllGather": [c_void_p, c_void_p, c_size_t, c_int, c_void_p],
    "rkReduceScatter": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkScan": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkExscan": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkAllToAll": [c_void_p, c_void_p, c_size_t, c_int, c_void_p],
    "rkGather": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkScatter": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkBarrier": [c_void_p],
    "rkAllGatherCounts": [c_void_p, c_void_p, _COUNTS, c_int, c_void_p],
    "rkReduceScatterCounts": [c_void_p, c_void_p, _COUNTS, c_int, c_int, c_void_p],
    "rkAllToAllCounts": [c_void_p, c_void_p, _COUNTS, c_int, c_void_p],
    "rkAllToAllDisplaced": [c_void_p, _COUNTS, c_void_p, _COUNTS, _COUNTS, c_int, c_void_p],
    "rkGatherCounts": [c_void_p, c_void_p, _COUNTS, c_int, c_int, c_void_p],
    "rkScatterCounts": [c_void_p, c_void_p, _COUNTS, c_int, c_int, c_void_p],
    "rkRedOpCreate": [POINTER(c_int), ReduceFunction, c_size_t, c_int, c_void_p, c_void_p],
    "rkRedOpCreatePreMulSum": [POINTER(c_int), c_void_p, c_int, c_void_p],
    "rkRedOpDestroy": [c_int, c_void_p],
    "rkEpilogueCreate": [POINTER(c_void_p), POINTER(RowSteps)],
    "rkEpilogueCreateFunction": [POINTER(c_void_p), c_size_t, RowFunction, c_void_p],
    "rkEpilogueApply": [c_void_p, c_void_p, c_size_t],
    "rkEpilogueDestroy": [c_void_p],
    "rkAllReduceThen": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
    "rkReduceScatterThen": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
    "rkAllGatherThen": [c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p],
    "rkCommGetOrder": [c_void_p, POINTER(c_char_p)],
    "rkCommProgress": [c_void_p],
    "rkGroupEndAsync": [POINTER(c_void_p)],
    "rkGroupEndPrepare": [POINTER(c_void_p)],
    "rkRequestStart": [c_void_p],
    "rkRequestTest": [c_void_p, POINTER(c_int)],
    "rkRequestWait": [c_void_p],
    "rkRequestWaitFor": [c_void_p, c_int64, POINTER(c_int)],
    "rkRequestWaitAll": [c_size_t, POINTER(c_void_p)],
    "rkRequestFree": [c_void_p],
    "rkRequestGetOrders": [c_void_p, POINTER(c_char_p)],
    "rkSend": [c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkRecv": [c_void_p, c_size_t, c_int, c_int, c_void_p],
    "rkGroupStart": [],
    "rkGroupEnd": [],
    "rkCommSetCallOptions": [c_void_p, POINTER(CallOptions)],
    "rkCommFlightRecord": [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)],
    "rkBucketsCreate": [POINTER(c_void_p), c_size_t, c_void_p],
    "rkBucketsAdd": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "rkBucketsAddUnused": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "rkBucketsFlush": [c_void_p],
    "rkBucketsWait": [c_void_p],
    "rkBucketsAllReduce": [c_void_p, c_size_t, POINTER(c_void_p), _COUNTS, c_int, c_int],
    "rkBucketsGetCalls": [c_void_p, _COUNTS],
    "rkBucketsDestroy": [c_void_p],
    "rkCommModelTime": [c_void_p, POINTER(c_double)],
    "rkCommCompute": [c_void_p, c_double],
}


def _load() -> ctypes.CDLL:
    # PREFIX/lib/python3/dist-packages/rankine/_library.py
    beside = pathlib.Path(__file__).resolve().parents[3] / "librankine.so.1"
    path = str(beside) if beside.exists() else "librankine.so.1"
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded ({error}); LD_LIBRARY_PATH may name its folder") from error
    for name, arguments in _PROTOTYPES.items():
        getattr(loaded, name).argtypes = arguments
        getattr(loaded, name).restype = c_int
    loaded.rkGetLastError.argtypes = [c_void_p]
    loaded.rkGetLastError.restype = c_char_p
    return loaded


library = _load()


class _Interrupt(threading.local):
    """The exception that a signal handler has raised while this thread waited in a call."""

    error: BaseException | None = None


_interrupt = _Interrupt()


def _answers() -> Generator[int, None, None]:
    """Yields the answer for a waiting call: 0, or 1 if a signal handler has raised. Python runs
    handlers when it continues a function: in a generator this is inside the try block, in a new
    function it would be before it.
    """
    answer = 0
    while True:
        try:
            yield answer
            ctypes.pythonapi.PyErr_CheckSignals()
            answer = 0
        except GeneratorExit:
            return
        except BaseException as error:
            _interrupt.error, answer = error, 1


_listening: Any = None  # the check of the main thread, or None


def listen_to_signals() -> None:
    """Makes calls of the main thread, on which Python runs signal handlers, end when a handler
    raises."""
    global _listening
    if _listening is not None or threading.current_thread() is not threading.main_thread():
        return
    answers = _answers()
    next(answers)
    _listening = _InterruptCheck(answers.__next__)
    library.rkSetInterruptCheck(_listening)


def _listen_no_more() -> None:
    if threading.current_thread() is threading.main_thread():
        library.rkSetInterruptCheck(_InterruptCheck())  # NULL


def _listen_in_child() -> None:
    """The forking thread is the child's main thread."""
    global _listening
    _listening = None
    listen_to_signals()


listen_to_signals()
atexit.register(_listen_no_more)
os.register_at_fork(after_in_child=_listen_in_child)


def last_error(code: int) -> Error:
    """Returns the error of this thread's last call, which returned ``code`` other than 0. Raises
    the exception of a signal handler instead, such as KeyboardInterrupt, if there was one."""
    known = Code(code)
    text = library.rkGetLastError(None).decode(errors="replace")
    error = (InvalidArgument if known is Code.invalid_argument else Error)(known, text)
    interrupt, _interrupt.error = _interrupt.error, None
    if interrupt is not None:
        raise interrupt from error
    return error


def check(code: int) -> None:
    if code != 0:
        raise last_error(code)


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
    """Converts a whole number to C form and checks its range, because ctypes would truncate it
    silently."""
    try:
        number = operator.index(value)
    except TypeError:
        refuse(f"{name} is {value!r}; allowed are whole numbers")
    if not least <= number <= most:
        allowed = "allowed are numbers of 32 bits" if least == -(2**31) else f"allowed are {least} to {most}"
        refuse(f"{name} is {number}; {allowed}")
    return number


def ints(name: str, values: object) -> tuple[ctypes.Array[c_int] | None, int]:
    """Returns a list of whole numbers in C form, and its length; None is an empty list."""
    if values is None:
        return None, 0
    try:
        numbers = [operator.index(value) for value in values]  # type: ignore[attr-defined]
    except TypeError as error:
        refuse(f"{name} is {values!r}; allowed are lists of whole numbers")
        raise error  # not reached
    if any(not -(2**31) <= number < 2**31 for number in numbers):
        refuse(f"{name} is {values!r}; allowed are numbers of 32 bits")
    return (c_int * len(numbers))(*numbers), len(numbers)


def text(name: str, value: str | None) -> bytes | None:
    """Converts a text to C form; a C text ends at the first NUL."""
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value:
        refuse(f"{name} is {value!r}; allowed are str without a NUL")
    return value.encode()


def version() -> str:
    """The version of the library: "0.1.0"."""
    code = c_int()
    check(library.rkGetVersion(ctypes.byref(code)))
    return f"{code.value // 10000}.{code.value // 100 % 100}.{code.value % 100}"
