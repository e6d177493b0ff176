"""vLLM's communicator of a group of ranks, on a group of rankine.torch."""

from __future__ import annotations

import torch
import torch.distributed as distributed
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator


class Communicator(CpuCommunicator):
    def _all_group_ranks_share_shm_group_name(self) -> bool:
        return False  # no shared memory of vLLM

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        torch.ops.rankine.all_reduce_(input_, "sum", self.device_group.group_name)
        return input_

    def all_gatherv(
        self, input_: torch.Tensor | list[torch.Tensor], dim: int = 0, sizes: list[int] | None = None
    ) -> torch.Tensor | list[torch.Tensor]:
        """Concatenates all ranks' tensors along ``dim``, where rank r's has sizes[r]."""
        if isinstance(input_, list):
            return [self.all_gatherv(each, dim, sizes) for each in input_]
        if sizes is None:
            return self.all_gather(input_, dim)
        x = input_.movedim(dim, 0).contiguous()
        out = x.new_empty((sum(sizes), *x.shape[1:]))
        distributed.all_gather(list(out.split(sizes)), x, group=self.device_group)
        return out.movedim(0, dim)

    def reduce_scatterv(self, input_: torch.Tensor, dim: int = -1, sizes: list[int] | None = None) -> torch.Tensor:
        """Sums all ranks' tensors; rank r gets sizes[r] of the sum along ``dim``."""
        if sizes is None:
            return self.reduce_scatter(input_, dim)
        x = input_.movedim(dim, 0).contiguous()
        out = x.new_empty((sizes[self.rank_in_group], *x.shape[1:]))
        distributed.reduce_scatter(out, list(x.split(sizes)), group=self.device_group)
        return out.movedim(0, dim)
