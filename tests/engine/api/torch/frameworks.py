"""What PyTorch builds on a process group: FSDP2, tensor parallelism, pipelines, DTensor, functional collectives, torch.compile, data loaders."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import training
from processes import check, main, play


def fully_sharded(ranks: int) -> None:
    """FSDP2: the losses of gloo."""

    def on_each(rank: int, n: int) -> list[float]:
        model = fully_shard(training.net(), mesh=init_device_mesh("cpu", (n,)))
        return training.train(model, torch.optim.SGD(model.parameters(), lr=0.05), rank)

    for ours, theirs in zip(play(ranks, on_each), play(ranks, on_each, backend="gloo")):
        check(all(abs(a - b) < 1e-4 * max(1, abs(b)) for a, b in zip(ours, theirs)), f"{ours} are not {theirs}")


class Mlp(torch.nn.Module):
    def __init__(self, ranks: int) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.up, self.down = torch.nn.Linear(8, 4 * ranks), torch.nn.Linear(4 * ranks, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x).relu())


def tensor_parallel(ranks: int) -> None:
    """A model in parts: outputs and gradients of the whole model; also compiled."""

    def on_each(rank: int, n: int) -> None:
        mesh = init_device_mesh("cpu", (n,))
        whole, x = Mlp(n), torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
        wanted = whole(x)
        wanted.sum().backward()
        for compiles in (False, True):
            model = parallelize_module(Mlp(n), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
            run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiles else model
            y = run(x)
            check(torch.allclose(y, wanted, atol=1e-5), f"compiled: {compiles}: outputs")
            y.sum().backward()
            gradient = model.up.weight.grad
            check(torch.allclose(gradient.full_tensor(), whole.up.weight.grad, atol=1e-5), f"compiled: {compiles}: gradients")

    play(ranks, on_each)


def tensors_in_shards(ranks: int) -> None:
    """DTensor moves shards between dimensions, and to all ranks."""

    def on_each(rank: int, n: int) -> None:
        mesh = init_device_mesh("cpu", (n,))
        whole = torch.arange(float(2 * n * 3 * n)).view(2 * n, 3 * n)
        rows = distribute_tensor(whole, mesh, [Shard(0)])
        columns = rows.redistribute(mesh, [Shard(1)])
        check(torch.equal(columns.to_local(), whole[:, 3 * rank : 3 * rank + 3]), "columns")
        check(torch.equal(columns.redistribute(mesh, [Replicate()]).to_local(), whole), "all")
        uneven = distribute_tensor(torch.arange(2.0 * n + 1), mesh, [Shard(0)])
        check(torch.equal(uneven.full_tensor(), torch.arange(2.0 * n + 1)), "shards of two sizes")
        check(float((rows * 2).sum().full_tensor()) == 2 * float(whole.sum()), "a sum")
        check(isinstance(columns, DTensor), "a DTensor")

    play(ranks, on_each)


def pipelines(ranks: int) -> None:
    """Schedules of torch.distributed.pipelining: gradients of the whole model."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    def layers(n: int) -> list[torch.nn.Module]:
        torch.manual_seed(9)
        return [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(n)]

    def loss(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (y - target).square().mean()

    def on_each(rank: int, n: int) -> None:
        x, target = torch.randn(8, 8, generator=torch.Generator().manual_seed(2)), torch.zeros(8, 8)
        whole = torch.nn.Sequential(*layers(n))
        for one, wanted in zip(x.chunk(4), target.chunk(4)):
            (loss(whole(one), wanted) / 4).backward()
        for schedule in (ScheduleGPipe, Schedule1F1B):
            mine = layers(n)[rank]
            run = schedule(PipelineStage(mine, rank, n, torch.device("cpu")), 4, loss_fn=loss)
            run.step(*([x] if rank == 0 else []), **({"target": target} if rank == n - 1 else {}))
            check(torch.allclose(mine[0].weight.grad, whole[rank][0].weight.grad, atol=1e-6), schedule.__name__)

    play(ranks, on_each)


def functional_collectives(ranks: int) -> None:
    """Eager and compiled."""

    def on_each(rank: int, n: int) -> None:
        group = dist.group.WORLD

        def calls(x: torch.Tensor) -> list[torch.Tensor]:
            return [
                functional.all_reduce(x, "sum", group),
                functional.all_reduce(x, "max", group),
                functional.all_gather_tensor(x, 0, group),
                functional.reduce_scatter_tensor(x, "sum", 0, group),
                functional.all_to_all_single(x, None, None, group),
                functional.broadcast(x, n - 1, group),
                *functional.all_reduce_coalesced([x, x * 2], "sum", group),
                *functional.all_gather_into_tensor_coalesced([x, x + 1], group),
                *functional.reduce_scatter_tensor_coalesced([x, x * 3], "sum", [0, 0], group),
            ]

        parts = [torch.arange(2.0 * n) + 10 * r for r in range(n)]
        total, mine = sum(parts), slice(2 * rank, 2 * rank + 2)
        wanted = [
            total, parts[-1], torch.cat(parts), total[mine], torch.cat([p[mine] for p in parts]), parts[-1],
            total, total * 2, torch.cat(parts), torch.cat(parts) + 1, total[mine], total[mine] * 3,
        ]  # fmt: skip
        for run in (calls, torch.compile(calls, backend="aot_eager", fullgraph=True)):
            for i, (result, right) in enumerate(zip(run(parts[rank]), wanted, strict=True)):
                check(torch.equal(result + 0, right), f"call {i} of {run}: {result} is not {right}")

    play(ranks, on_each)


class Squares(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.tensor(float(i * i))


def data_loaders(ranks: int) -> None:
    """Workers, forked from a rank in a group and spawned, do not disturb it."""

    def on_each(rank: int, n: int) -> None:
        pending = dist.all_reduce(torch.ones(3), async_op=True)
        for context, workers in (("fork", 2), ("spawn", 1)):
            loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=workers, multiprocessing_context=context)
            for batch in loader:
                dist.all_reduce(batch)
                check(float(batch[1] - batch[0]) > 0, "sums of batches")
        pending.wait()

    play(ranks, on_each)


def _spawned(rank: int, ranks: int, folder: str) -> None:
    dist.init_process_group("rankine", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    x = torch.ones(5)
    dist.all_reduce(x)
    check(float(x[0]) == ranks, f"{x[0]} is not {ranks}")
    if rank % 2 == 0:  # the others leave without it
        dist.destroy_process_group()


def spawned_ranks(ranks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_spawned, (ranks, folder), ranks)


PROGRAM = """
import os, torch, torch.distributed as dist
dist.init_process_group("rankine")
x = torch.ones(3)
dist.all_reduce(x)
os.write(1, f"the sum is {x[0].item()}\\n".encode())  # at once: torchrun's ranks share the output
"""


def torchrun(ranks: int) -> None:
    """The shortest program, started by torchrun: no import of rankine."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        text = PROGRAM if hasattr(dist.Backend, "_ensure_backend_registered") else "import rankine.torch" + PROGRAM
        with open(path, "w") as file:
            file.write(text)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), path]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=200)
    check(ended.returncode == 0 and ended.stdout.count(f"the sum is {float(ranks)}") == ranks, ended.stdout + ended.stderr)


if __name__ == "__main__":
    main([fully_sharded, tensor_parallel, tensors_in_shards, pipelines, functional_collectives, data_loaders, spawned_ranks, torchrun])
