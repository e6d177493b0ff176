"""torch.ops.rankine: collectives of a rankine group as operators, shorter than torch.distributed's way
to the engine. They wait for their result, and torch.compile keeps them."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

import torch

from rankine import _engine
from rankine._engine import OPERATIONS
from rankine._errors import refuse
from rankine._torch_tensors import Elements, rank_of, summands

if TYPE_CHECKING:
    from rankine.torch import ProcessGroup

_library = torch.library.Library("rankine", "DEF")
_groups: dict[str, Callable[[], ProcessGroup | None]] = {}


def add_group(name: str, group: ProcessGroup) -> None:
    _groups[name] = weakref.ref(group, lambda _: _groups.pop(name, None))


def _group(name: str) -> ProcessGroup:
    found = _groups.get(name)
    group = None if found is None else found()
    if group is None:
        refuse(f"group is {name!r}; allowed are the group_name of rankine groups: {', '.join(map(repr, _groups)) or 'there are none'}")
    return group


def _operation(op: str) -> int:
    if op not in OPERATIONS:
        refuse(f"op is {op!r}; allowed are {', '.join(OPERATIONS)}")
    return OPERATIONS[op]


def _rows(x: torch.Tensor, ranks: int) -> int:
    """The rows of each rank's block of x."""
    rows = x.shape[0] if x.dim() > 0 else 1
    if x.dim() == 0 or rows % ranks != 0:
        refuse(f"x has {rows} rows; allowed are multiples of {ranks}, the number of ranks, in dimension 0")
    return rows // ranks


def _run(group: ProcessGroup, function: Any, *arguments: Any) -> None:
    group._submitted += 1
    group._calls.run(partial(function, *arguments), None)


def _reduced(x: torch.Tensor, out: torch.Tensor, op: str, name: str) -> torch.Tensor:
    group, given = _group(name), summands(x, "x")
    _run(group, _engine.rkAllReduce, given.address, out.data_ptr(), given.count, given.type, _operation(op), group._comm, given.bytes)
    return out


# --- The operators ---


def _all_reduce_(x: torch.Tensor, op: str, group: str) -> None:
    _reduced(x, x, op, group)


def _all_reduce(x: torch.Tensor, op: str, group: str) -> torch.Tensor:
    x = x.contiguous()
    return _reduced(x, torch.empty_like(x), op, group)


def _reduce_scatter(x: torch.Tensor, op: str, group: str) -> torch.Tensor:
    me, given = _group(group), summands(x := x.contiguous(), "x")
    out = x.new_empty((_rows(x, me._size), *x.shape[1:]))
    count = given.count // me._size
    _run(me, _engine.rkReduceScatter, given.address, out.data_ptr(), count, given.type, _operation(op), me._comm, given.bytes)
    return out


def _all_gather(x: torch.Tensor, group: str) -> torch.Tensor:
    me, given = _group(group), Elements(x := x.contiguous(), "x")
    out = x.new_empty((me._size * x.shape[0], *x.shape[1:]) if x.dim() > 0 else (me._size,))
    _run(me, _engine.rkAllGather, given.address, out.data_ptr(), given.count, given.type, me._comm, given.bytes * me._size)
    return out


def _all_to_all(x: torch.Tensor, group: str) -> torch.Tensor:
    me, given = _group(group), Elements(x := x.contiguous(), "x")
    _rows(x, me._size)
    out = torch.empty_like(x)
    _run(me, _engine.rkAllToAll, given.address, out.data_ptr(), given.count // me._size, given.type, me._comm, given.bytes)
    return out


def _broadcast_(x: torch.Tensor, root: int, group: str) -> None:
    me, given = _group(group), Elements(x, "x")
    _run(me, _engine.rkBcast, given.address, given.count, given.type, rank_of(root, me._size), me._comm, given.bytes)


def _define(schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> None:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    name = schema[: schema.index("(")]
    _library.impl(name, function, "CPU")
    torch.library.register_fake(f"rankine::{name}", fake, lib=_library)


# In place on every rank.
_define("all_reduce_(Tensor(a!) x, str op, str group) -> ()", _all_reduce_, lambda x, op, group: None)
_define("broadcast_(Tensor(a!) x, int root, str group) -> ()", _broadcast_, lambda x, root, group: None)
# Into a new tensor; blocks of ranks lie along dimension 0.
_define("all_reduce(Tensor x, str op, str group) -> Tensor", _all_reduce, lambda x, op, group: x.new_empty(x.shape))
_define(
    "all_gather(Tensor x, str group) -> Tensor",
    _all_gather,
    lambda x, group: x.new_empty((_group(group)._size * (x.shape[0] if x.dim() > 0 else 1), *x.shape[1:])),
)
_define(
    "reduce_scatter(Tensor x, str op, str group) -> Tensor",
    _reduce_scatter,
    lambda x, op, group: x.new_empty((_rows(x, _group(group)._size), *x.shape[1:])),
)
_define("all_to_all(Tensor x, str group) -> Tensor", _all_to_all, lambda x, group: x.new_empty(x.shape))
