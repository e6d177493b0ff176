"""A backend of torch.distributed: ranks that are processes of one machine, one each.

    import rankine.torch
    torch.distributed.init_process_group("rankine")

Tensors are dense, contiguous, and on the CPU. Everything of torch.distributed is there, but for
messages from any rank (``recv`` without ``src``), reductions with ``PREMUL_SUM``, and several tensors
per rank in one list. Errors are RuntimeErrors. A process that dies ends the calls of its group on all
ranks, with its rank and process; after destroy_process_group() the others can make a new one.
"""

from __future__ import annotations

import datetime

from rankine._library import imported

imported("torch", "rankine.torch, a backend of torch.distributed,")
import torch
import torch.distributed as distributed

try:
    from rankine import _torch
except ImportError as error:
    raise ImportError(f"rankine._torch cannot be loaded ({error}); third_party/torch --to PREFIX builds it for the PyTorch that is installed") from error

if _torch.torch_version.split(".")[:2] != torch.__version__.split(".")[:2]:
    raise ImportError(f"rankine._torch was built for PyTorch {_torch.torch_version}; this is {torch.__version__}")

_IS_1 = torch.__version__.startswith("1.")


def _create(store: distributed.Store, rank: int, size: int, timeout: datetime.timedelta) -> object:
    """A process group whose ranks meet through that store, which is its own."""
    group = _torch.create(store, rank, size, timeout)
    # TORCH_DISTRIBUTED_DEBUG=DETAIL: 1.13 wraps groups of its own backends only, 2.x all.
    if _IS_1 and distributed.get_debug_level() == distributed.DebugLevel.DETAIL and distributed.is_gloo_available():
        group = distributed.distributed_c10d._create_process_group_wrapper(
            wrapped_pg=group, store_prefix="rankine", store=store, rank=rank, world_size=size, timeout=timeout
        )
    return group


if _IS_1:
    distributed.Backend.register_backend("rankine", _create)
else:
    distributed.Backend.register_backend("rankine", _create, devices=["cpu"])
