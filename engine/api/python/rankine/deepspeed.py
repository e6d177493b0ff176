"""Process groups of DeepSpeed on the CPU.

    deepspeed.init_distributed("rankine")
    import rankine.deepspeed            # afterwards: also for inference_all_reduce()
"""

from __future__ import annotations

import torch
import torch.distributed as distributed

import rankine.torch  # registers torch.ops.rankine


def _all_reduce_(x: torch.Tensor) -> torch.Tensor:
    torch.ops.rankine.all_reduce_(x, "sum", distributed.group.WORLD.group_name)
    return x


if hasattr(torch.ops.deepspeed, "inference_all_reduce_"):  # DeepSpeed has compiled its operators for shared memory
    _library = torch.library.Library("deepspeed", "IMPL")
    _library.impl("inference_all_reduce_", _all_reduce_, "CPU")
    _library.impl("inference_all_reduce", lambda x: _all_reduce_(x.clone()), "CPU")
