"""Collective groups of Ray among actors of one machine.

    import rankine.ray                                     # in the driver and in each actor
    ray.util.collective.create_collective_group(actors, 2, [0, 1], backend="rankine")
"""

from __future__ import annotations

from typing import Any

from rankine._errors import imported
from rankine._teams import Communicator

ray = imported("ray", "rankine.ray, a backend of ray.util.collective,")
try:
    from ray.util.collective import backend_registry
except ImportError:
    raise ImportError(
        f"Ray {ray.__version__} has no ray.util.collective.backend_registry, which rankine.ray needs; install Ray 2.56 or newer"
    ) from None
from ray.util.collective.collective_group.base_collective_group import BaseGroup

_OPERATIONS = {"SUM": "sum", "PRODUCT": "prod", "MIN": "min", "MAX": "max", "AVERAGE": "avg"}


def _row(parts: Any) -> Any:
    """Returns a new vector of as many rows as there are tensors."""
    like, shape = parts[0], (len(parts), *parts[0].shape)
    if hasattr(like, "new_empty"):
        return like.new_empty(shape)
    import numpy

    return numpy.empty(shape, like.dtype)


class Group(BaseGroup):
    """A rank of a group. Tensors are NumPy arrays or PyTorch tensors on the CPU, contiguous; lists of
    tensors have one tensor per rank, all of one shape. Ray gives each tensor or list inside a list."""

    def __init__(self, world_size: int, rank: int, group_name: str, *_: object) -> None:
        super().__init__(world_size, rank, group_name)
        name = f"ray.{ray.get_runtime_context().get_job_id()}.{group_name}"
        self._member = Communicator(world_size, rank=rank, name=name).join(rank)

    @classmethod
    def backend(cls) -> str:
        return "RANKINE"

    @classmethod
    def check_backend_availability(cls) -> bool:
        return True

    def destroy_group(self) -> None:
        self._member.close()

    def allreduce(self, tensor: list[Any], options: Any) -> None:
        self._member.all_reduce(tensor[0], op=_OPERATIONS[options.reduceOp.name])

    def barrier(self, _: object = None) -> None:
        self._member.barrier()

    def reduce(self, tensor: list[Any], options: Any) -> None:
        self._member.reduce(tensor[0], root=options.root_rank, op=_OPERATIONS[options.reduceOp.name])

    def broadcast(self, tensor: list[Any], options: Any) -> None:
        self._member.broadcast(tensor[0], options.root_rank)

    def allgather(self, tensor_list: list[list[Any]], tensor: list[Any], _: object = None) -> None:
        rows = _row(tensor_list[0])
        self._member.all_gather(tensor[0], rows)
        for part, row in zip(tensor_list[0], rows):
            part[...] = row

    def reducescatter(self, tensor: list[Any], tensor_list: list[list[Any]], options: Any) -> None:
        rows = _row(tensor_list[0])
        for i, part in enumerate(tensor_list[0]):
            rows[i] = part
        self._member.reduce_scatter(rows, tensor[0], op=_OPERATIONS[options.reduceOp.name])

    def send(self, tensor: list[Any], options: Any) -> None:
        self._member.send(tensor[0], options.dst_rank)

    def recv(self, tensor: list[Any], options: Any) -> None:
        self._member.recv(tensor[0], options.src_rank)


backend_registry.register_collective_backend("rankine", Group)
