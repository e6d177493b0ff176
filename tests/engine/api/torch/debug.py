"""TORCH_DISTRIBUTED_DEBUG=DETAIL: PyTorch's wrapper compares the ranks' calls before the backend executes them."""

from __future__ import annotations

import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"  # read at the creation of a group

import torch
import torch.distributed as dist

import calls
import training
from processes import backend, check, main, play, refused


def set_level(ranks: int) -> None:
    dist.set_debug_level_from_env()

    def on_each(rank: int, n: int) -> None:
        check(dist.get_debug_level() == dist.DebugLevel.DETAIL, "the level is not DETAIL")
        wrapper = backend()
        check(isinstance(wrapper, torch._C._distributed_c10d._ProcessGroupWrapper), f"{wrapper} is no wrapper")
        check(wrapper.wrapped_pg.name() == "rankine", "it wraps another backend")

    play(ranks, on_each)


def shapes_that_differ(ranks: int) -> None:
    """The wrapper reports the ranks' shapes."""

    def on_each(rank: int, n: int) -> None:
        x = torch.ones(3 if rank == 0 else 4)
        refused("Detected mismatch between collectives on ranks", lambda: dist.all_reduce(x))

    play(ranks, on_each)


def data_parallel(ranks: int) -> None:
    def on_each(rank: int, n: int) -> list[float]:
        model = torch.nn.parallel.DistributedDataParallel(training.net())
        return training.train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank)

    losses = play(ranks, on_each)[0]
    check(losses[-1] < 0.8 * losses[0], f"nothing was learnt: {losses[0]} to {losses[-1]}")


if __name__ == "__main__":
    main([set_level, shapes_that_differ, calls.coalesced, calls.objects, data_parallel])
