"""Training over this backend has the same losses as with gloo, and the same weights on all ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from processes import check, main, play

STEPS = 50


def net() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3)
    )


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    make = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 20, generator=make)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> list[float]:
    losses = []
    for step in range(STEPS):
        x, y = batch(rank, step)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(float(total))
    return losses


def weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def compare(ranks: int, on_each, tolerance: float = 1e-4) -> None:
    ours = play(ranks, on_each)
    losses, parameters = ours[0]
    for rank, (_, others) in enumerate(ours):
        check(all(map(torch.equal, parameters, others)), f"rank {rank} has other weights than rank 0")
    for step, (a, b) in enumerate(zip(losses, play(ranks, on_each, backend="gloo")[0][0])):
        check(abs(a - b) <= tolerance * max(1.0, abs(b)), f"step {step}: the loss is {a}, gloo's {b}")
    check(losses[-1] < 0.8 * losses[0], f"nothing was learnt: {losses[0]} to {losses[-1]}")


def data_parallel(ranks: int) -> None:
    def on_each(rank: int, n: int):
        # The buckets are so small that several are in flight.
        model = DistributedDataParallel(net(), bucket_cap_mb=0.01)
        return train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank), weights(model)

    compare(ranks, on_each)


def with_a_hook(ranks: int) -> None:
    """Gradients as f16, through a hook with chained futures."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    def on_each(rank: int, n: int):
        model = DistributedDataParallel(net())
        model.register_comm_hook(None, fp16_compress_hook)
        return train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank), weights(model)

    compare(ranks, on_each, tolerance=0.05)


def zero_redundancy(ranks: int) -> None:
    def on_each(rank: int, n: int):
        model = DistributedDataParallel(net())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
        losses = train(model, optimizer, rank)
        optimizer.consolidate_state_dict(0)
        return losses, weights(model)

    compare(ranks, on_each)


def uneven_inputs(ranks: int) -> None:
    """DDP's join(): ranks that finish early shadow the calls of the others."""

    def on_each(rank: int, n: int) -> int:
        model = DistributedDataParallel(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps = 0
        with model.join():
            for step in range(5 + 2 * rank):
                x, y = batch(rank, step)
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
        return steps

    check(play(ranks, on_each) == [5 + 2 * rank for rank in range(ranks)], "each its own number of steps")


if __name__ == "__main__":
    main([data_parallel, with_a_hook, zero_redundancy, uneven_inputs])
