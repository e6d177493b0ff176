"""Collectives for an inference server, among the processes of a tensor-parallel group, with vLLM's
interface.

A server finds its device communicator by name, makes one for each of its groups on all their ranks,
and then calls all_reduce, gather, all_gather and, between pipeline stages, send_tensor_dict and
recv_tensor_dict. Tensors are those of rankine.torch; rank arguments count within the group.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

from rankine._errors import imported

imported("torch", "rankine.device_communicator, collectives of tensors for inference servers,")
import torch
import torch._C._distributed_c10d as c10d
import torch.distributed as distributed

from rankine.torch import ProcessGroup

# The first message of send_tensor_dict: the bytes of the list of names, types and sizes.
_LENGTH = torch.int64


class DeviceCommunicator:
    """A communicator of the ranks of ``cpu_group``, for any backend of that group: its calls use a
    new rankine group.

    All ranks of ``cpu_group`` make it, and no other process. ``device`` must be the CPU;
    ``device_group`` is not used. ``unique_name`` distinguishes communicators of the same ranks.
    """

    def __init__(
        self,
        cpu_group: distributed.ProcessGroup,
        device: torch.device | None = None,
        device_group: distributed.ProcessGroup | None = None,
        unique_name: str = "",
    ) -> None:
        if device is not None and torch.device(device).type != "cpu":
            raise ValueError(f"device is {device}; allowed is cpu")
        self.device = torch.device("cpu")
        self.cpu_group = cpu_group
        self.device_group = device_group
        self.unique_name = unique_name
        self.world_size = distributed.get_world_size(cpu_group)
        self.rank_in_group = distributed.get_rank(cpu_group)
        self.ranks = [_global_rank(cpu_group, r) for r in range(self.world_size)]
        self.rank = self.ranks[self.rank_in_group]
        # A unique place in the common store, also if a communicator is made several times.
        number: list[object] = [_next_number() if self.rank_in_group == 0 else None]
        distributed.broadcast_object_list(number, self.ranks[0], group=cpu_group)
        name = f"rankine.device/{unique_name}/{'-'.join(map(str, self.ranks))}/{number[0]}"
        store = distributed.PrefixStore(name, distributed.distributed_c10d._get_default_store())
        timeout = datetime.timedelta(minutes=30)
        self._name = name
        self._group: Any = ProcessGroup(store, self.rank_in_group, self.world_size, timeout, name)

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum of all ranks' tensors, in place."""
        torch.ops.rankine.all_reduce_(input_, "sum", self._name)
        return input_

    def gather(self, input_: torch.Tensor, dst: int = 0, dim: int = -1) -> torch.Tensor | None:
        """Returns all ranks' tensors, concatenated in rank order along ``dim``, at ``dst``; None on
        other ranks."""
        dim = self._dimension(input_, dim)
        options = _blocking(c10d.GatherOptions())
        options.rootRank = dst
        if self.rank_in_group != dst:
            self._group.gather([], [input_], options)
            return None
        parts = input_.new_empty((self.world_size, *input_.shape))
        self._group.gather([list(parts.unbind())], [input_], options)
        return self._along(parts, dim)

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Returns all ranks' tensors, concatenated in rank order along ``dim``, on every rank."""
        dim = self._dimension(input_, dim)
        parts = torch.ops.rankine.all_gather(input_, self._name)
        return self._along(parts.view(self.world_size, *input_.shape), dim)

    def send_tensor_dict(self, tensor_dict: dict[str, torch.Tensor], dst: int) -> None:
        """Sends tensors to one rank, which calls recv_tensor_dict(). Keys are strings, and values
        dense tensors on the CPU; non-contiguous tensors are copied."""
        for key, value in tensor_dict.items():
            _check_entry(key, value)
        shapes = [[key, str(t.dtype).removeprefix("torch."), list(t.shape)] for key, t in tensor_dict.items()]
        text = torch.frombuffer(bytearray(json.dumps(shapes).encode()), dtype=torch.uint8)
        # Make all tensors contiguous before the first send: the other rank waits for all of them.
        tensors = [torch.tensor([text.numel()], dtype=_LENGTH), text, *(t.contiguous() for t in tensor_dict.values())]
        works = [self._group.send([t], dst, 0) for t in tensors]
        for work in works:
            work.wait()

    def recv_tensor_dict(self, src: int) -> dict[str, torch.Tensor]:
        """Receives the tensors that rank ``src`` sends by send_tensor_dict()."""
        length = torch.empty(1, dtype=_LENGTH)
        self._group.recv([length], src, 0).wait()
        text = torch.empty(int(length), dtype=torch.uint8)
        self._group.recv([text], src, 0).wait()
        shapes = json.loads(bytes(text.numpy()))
        received = {key: torch.empty(shape, dtype=getattr(torch, dtype)) for key, dtype, shape in shapes}
        works = [self._group.recv([tensor], src, 0) for tensor in received.values()]
        for work in works:
            work.wait()
        return received

    def destroy(self) -> None:
        """The rank leaves; it must make no calls afterwards."""
        self._group.shutdown()

    def _dimension(self, input_: torch.Tensor, dim: int) -> int:
        if not -input_.dim() <= dim < input_.dim():
            raise ValueError(f"dim is {dim}; a tensor of shape {tuple(input_.shape)} has {-input_.dim()} to {input_.dim() - 1}")
        return dim % input_.dim()

    def _along(self, parts: torch.Tensor, dim: int) -> torch.Tensor:
        shape = list(parts.shape[1:])
        shape[dim] *= self.world_size
        return parts.movedim(0, dim).reshape(shape)


def _blocking(options: Any) -> Any:
    options.asyncOp = False
    return options


def _check_entry(key: object, value: object) -> None:
    # Check everything first: a later error would leave the other rank waiting for the rest.
    if not isinstance(key, str):
        raise ValueError(f"tensor_dict has the key {key!r}; allowed are strings")
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"tensor_dict[{key!r}] is {type(value).__name__}; allowed are tensors")
    if value.device.type != "cpu" or value.layout != torch.strided or value.is_quantized:
        kind = f"{value.layout}, {value.dtype}, on {value.device}"
        raise ValueError(f"tensor_dict[{key!r}] is {kind}; allowed are dense tensors on the CPU that are not quantized")


_made = 0


def _next_number() -> int:
    global _made
    _made += 1
    return _made


def _global_rank(group: distributed.ProcessGroup, rank: int) -> int:
    if group is distributed.group.WORLD:
        return rank
    return distributed.get_global_rank(group, rank)
