"""torch.ops.rankine: collectives of a rankine group as operators, shorter than torch.distributed's way
to the engine. They wait for their result, and torch.compile keeps them."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Protocol, Sequence

import torch

from rankine import _engine
from rankine._engine import OPERATIONS
from rankine._errors import refuse
from rankine._torch_calls import Calls
from rankine._torch_tensors import TYPE_NUMBERS, check_summands, rank_of, refuse_gaps


class Group(Protocol):
    """The part of a ProcessGroup that operators use."""

    _size: int
    _submitted: int
    _calls: Calls


_library = torch.library.Library("rankine", "DEF")
_groups: dict[str, Callable[[], Group | None]] = {}


def add_group(name: str, group: Group) -> None:
    _groups[name] = weakref.ref(group, lambda _: _groups.pop(name, None))


def _group(name: str) -> Group:
    found = _groups.get(name)
    group = None if found is None else found()
    if group is None:
        refuse(f"group is {name!r}; allowed are the group_name of rankine groups: {', '.join(map(repr, _groups)) or 'there are none'}")
    return group


def _rows(shape: Sequence[int], ranks: int) -> int:
    """The rows of each rank's block of x."""
    rows = shape[0] if shape else 1
    if not shape or rows % ranks != 0:
        refuse(f"x has {rows} rows; allowed are multiples of {ranks}, the number of ranks, in dimension 0")
    return rows // ranks


def _complete(
    operator: str, name: str, op: str | None, root: int, shape: list[int], strides: list[int], is_contiguous: bool, dtype: int,
    run: Callable[[], object],
) -> None:  # fmt: skip
    """Runs a call of an operator after the queued calls, or raises the error of an argument."""
    group = _group(name)
    if operator.endswith("_") and not is_contiguous:
        refuse_gaps("x", shape, strides)
    if op is not None:
        if op not in OPERATIONS:
            refuse(f"op is {op!r}; allowed are {', '.join(OPERATIONS)}")
        check_summands("x", getattr(torch, _DTYPES.get(dtype, ""), "another type"))
    if operator in ("reduce_scatter", "all_to_all"):
        _rows(shape, group._size)
    rank_of(root, group._size)
    group._submitted += 1
    group._calls.run(run, None)


def _define(schema: str, fake: Callable[..., Any]) -> None:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    name = schema[: schema.index("(")]
    torch.library.register_fake(f"rankine::{name}", fake, lib=_library)
    packet = getattr(torch.ops.rankine, name)
    for each in (packet, packet.default):
        each._op = _engine.raising(each._op)


# In place on every rank.
_define("all_reduce_(Tensor(a!) x, str op, str group) -> ()", lambda x, op, group: None)
_define("broadcast_(Tensor(a!) x, int root, str group) -> ()", lambda x, root, group: None)
# Into a new tensor; blocks of ranks lie along dimension 0.
_define("all_reduce(Tensor x, str op, str group) -> Tensor", lambda x, op, group: x.new_empty(x.shape))
_define(
    "all_gather(Tensor x, str group) -> Tensor",
    lambda x, group: x.new_empty((_group(group)._size * (x.shape[0] if x.dim() > 0 else 1), *x.shape[1:])),
)
_define(
    "reduce_scatter(Tensor x, str op, str group) -> Tensor",
    lambda x, op, group: x.new_empty((_rows(x.shape, _group(group)._size), *x.shape[1:])),
)
_define("all_to_all(Tensor x, str group) -> Tensor", lambda x, group: x.new_empty(x.shape))

_DTYPES = _engine.register_operators(
    {str(each).removeprefix("torch."): TYPE_NUMBERS.get(each, (-1,))[0] for each in vars(torch).values() if isinstance(each, torch.dtype)},
    _complete,
)
