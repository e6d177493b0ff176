"""Expert parallelism: tokens that go to experts on other ranks, and return."""

from __future__ import annotations

from typing import Any

from rankine import _engine
from rankine._engine import BYTES, TYPES, Buffer
from rankine._errors import Owner, refuse, whole
from rankine._member import Member


class Experts(Owner):
    """Sends each token's row to the experts that a router chose, on any rank, and brings the
    weighted results back.

        layer = rankine.Experts(me, 64, 4096, "bf16", choices=8)
        counts = layer.dispatch(x, indices, rows)     # x: tokens x 4096, indices: tokens x 8, int32
        ...                                           # this rank's experts work on rows, in place
        layer.combine(rows[: sum(counts)], out, weights)

    Rank r has ``experts`` / ranks neighbouring experts. ``dtype``, of tokens, and ``result_dtype``,
    of results and out (None: dtype): "f32", "f16", "bf16", "f8e4m3" or "f8e5m2". ``capacity``: the
    most rows of an expert, from all ranks; rows beyond it are dropped, of the highest ranks and
    there of the last tokens; 0: no limit. All but ``choices`` must be equal on all ranks, which
    make the same calls in the same order. The thread of the rank uses the object, outside of
    groups, and closes it before the member: by close(), at the end of a ``with`` block, or by
    garbage collection.
    """

    _closed = "the experts have been closed"
    _destroy = _engine.rkExpertsDestroy

    def __init__(
        self,
        member: Member,
        experts: int,
        row_elements: int,
        dtype: str,
        *,
        choices: int = 1,
        capacity: int = 0,
        result_dtype: str | None = None,
    ) -> None:
        result_dtype = dtype if result_dtype is None else result_dtype
        for name, value in (("dtype", dtype), ("result_dtype", result_dtype)):
            if value not in TYPES:
                refuse(f"{name} is {value!r}; allowed are {', '.join(TYPES)}")
        self._member, self._dtype, self._result_dtype, self._width = member, dtype, result_dtype, row_elements
        self._owned = _engine.rkExpertsCreate(
            whole("experts", experts),
            whole("choices", choices),
            whole("row_elements", row_elements, 1),
            TYPES[dtype],
            TYPES[result_dtype],
            whole("capacity", capacity, 0, 2**63 - 1),
            member._handle,
        )
        self._choices, self._tokens = choices, 0
        self._counts: list[int] = []  # of the latest dispatch; empty: none has succeeded

    def __enter__(self) -> Experts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def dispatch(self, x: Any, indices: Any, rows: Any) -> list[int]:
        """Returns the number of rows of each of this rank's experts. x: a row per token. indices:
        int32, ``choices`` per token; -1: no expert. rows: room for the rows that arrive; they lie
        without gaps in the order of this rank's experts, for one expert in the order of ranks,
        tokens and choices. If the room of a rank is too small, or an index is invalid, all ranks
        raise InvalidArgument, and no row moves."""
        self._counts = []
        chosen = Buffer("indices", indices, False)
        if chosen.type(None) != TYPES["i32"]:
            refuse("indices has elements of another type; allowed is i32: convert it by astype('int32')")
        tokens, odd = divmod(chosen.bytes // 4, self._choices)
        if odd:
            refuse(f"indices has {chosen.bytes // 4} elements; allowed are multiples of {self._choices}")
        sent, arrived = self._rows("x", x, False, tokens, self._dtype), self._rows("rows", rows, True, None, self._dtype)
        room = arrived.bytes // (self._width * BYTES[self._dtype])
        _engine.rkExpertsDispatch(self._handle, sent.address, chosen.address, tokens, arrived.address, room)
        self._tokens, self._counts = tokens, self._numbers(_engine.rkExpertsGetCounts)
        return list(self._counts)

    def combine(self, results: Any, out: Any, weights: Any = None) -> None:
        """Once after each dispatch. results: a row for each row that has arrived, at its place. Row
        t of out = the sum over c of weights[t, c] (float32; None: 1) times the result of choice c
        of token t, in float32, rounded once. Choices without an expert and dropped choices add
        nothing."""
        handle = self._handle
        if not self._counts:
            refuse("combine: no rows are out; the latest dispatch() must have succeeded")
        given = self._rows("results", results, False, sum(self._counts), self._result_dtype)
        returned = self._rows("out", out, True, self._tokens, self._result_dtype)
        factors = None if weights is None else Buffer("weights", weights, False)
        wanted = TYPES["f32"], 4 * self._tokens * self._choices
        if factors is not None and (factors.type(None), factors.bytes) != wanted:
            refuse(f"weights has {factors.bytes} bytes; allowed are {self._tokens} x {self._choices} elements of f32")
        address = None if factors is None else factors.address
        _engine.rkExpertsCombine(handle, given.address, address, returned.address)

    @property
    def dropped(self) -> list[int]:
        """The positions in the flattened indices whose rows the latest dispatch dropped, ascending."""
        return self._numbers(_engine.rkExpertsGetDropped)

    def _numbers(self, function: Any) -> list[int]:
        address, count = function(self._handle)
        return _engine.memory(address, 8 * count).cast("Q").tolist() if count > 0 else []

    def _rows(self, name: str, value: Any, writable: bool, rows: int | None, dtype: str) -> Buffer:
        buffer = Buffer(name, value, writable)
        buffer.type(dtype)  # refuses other elements
        if rows is not None and buffer.bytes != rows * self._width * BYTES[dtype]:
            elements = buffer.bytes // buffer.item_bytes
            refuse(f"{name} has {elements} elements; allowed are {rows} rows of {self._width}")
        return buffer
