"""A backend of torch.distributed: ranks are processes of one machine, one rank per process.

    import rankine.torch
    torch.distributed.init_process_group("rankine")

Tensors are dense, contiguous, and on the CPU. All functions of torch.distributed are supported
except messages from any rank (``recv`` without ``src``), reductions with ``PREMUL_SUM``, and
several tensors per rank in one list. Errors are RuntimeErrors. If a process dies, the calls of its
group end on all ranks with an error that names the rank and process; after destroy_process_group()
the other processes can make a new group.
"""

from __future__ import annotations

import datetime

from rankine._errors import imported

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
    """Makes a process group; its ranks meet through ``store``, which no other group uses."""
    group = _torch.create(store, rank, size, timeout)
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL, PyTorch 1.13 wraps only its built-in groups, 2.x wraps
    # all.
    if _IS_1 and distributed.get_debug_level() == distributed.DebugLevel.DETAIL and distributed.is_gloo_available():
        group = distributed.distributed_c10d._create_process_group_wrapper(
            wrapped_pg=group, store_prefix="rankine", store=store, rank=rank, world_size=size, timeout=timeout
        )
    return group


if _IS_1:
    distributed.Backend.register_backend("rankine", _create)
else:
    distributed.Backend.register_backend("rankine", _create, devices=["cpu"])
