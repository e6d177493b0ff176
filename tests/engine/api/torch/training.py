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


def _gather(whole: torch.Tensor, part: torch.Tensor) -> None:
    if dist.get_backend() == "gloo":  # in 1.13 gloo takes lists only, and has no reduce_scatter
        dist.all_gather(list(whole.chunk(dist.get_world_size())), part)
    else:
        dist.all_gather_into_tensor(whole, part)


def _scatter_sums(part: torch.Tensor, whole: torch.Tensor) -> None:
    if dist.get_backend() == "gloo":
        dist.all_reduce(whole)
        part.copy_(whole.chunk(dist.get_world_size())[dist.get_rank()])
    else:
        dist.reduce_scatter_tensor(part, whole)


def sharded_by_hand(ranks: int) -> None:
    """Sharding of a flat parameter like in FSDP: gathered before use, gradients scattered as sums."""

    def on_each(rank: int, n: int):
        model = net()
        flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        size = -(-flat.numel() // n)
        flat = torch.nn.functional.pad(flat, (0, n * size - flat.numel()))
        shard = flat[rank * size : (rank + 1) * size].clone()
        losses = []
        for step in range(STEPS):
            _gather(flat, shard)
            at = 0
            for p in model.parameters():
                p.data = flat[at : at + p.numel()].view_as(p)
                p.grad = None
                at += p.numel()
            x, y = batch(rank, step)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            grads = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
            grads = torch.nn.functional.pad(grads, (0, n * size - grads.numel()))
            own = torch.empty(size)
            _scatter_sums(own, grads)
            shard -= 0.1 * own / n
            total = loss.detach().clone()
            dist.all_reduce(total)
            losses.append(float(total))
        _gather(flat, shard)
        return losses, [flat]

    compare(ranks, on_each)


def fully_sharded(ranks: int) -> None:
    """FSDP, if this PyTorch has it for the CPU: 1.13 needs CUDA, and cannot import it under Python 3.11."""
    try:
        from torch.distributed.fsdp import FullyShardedDataParallel
    except ValueError as error:
        print(f"note FSDP of this PyTorch cannot be imported: {str(error)[:60]} ...")
        return

    def on_each(rank: int, n: int):
        model = FullyShardedDataParallel(net())
        return train(model, torch.optim.SGD(model.parameters(), lr=0.05), rank), []

    try:
        play(ranks, on_each, backend="gloo")
    except AssertionError as error:
        print(f"note FSDP of this PyTorch does not train with gloo, either: {str(error).strip().splitlines()[-1][:60]} ...")
        return
    compare(ranks, on_each)


if __name__ == "__main__":
    main([data_parallel, with_a_hook, zero_redundancy, uneven_inputs, sharded_by_hand, fully_sharded])
