"""Wrong arguments are reported before any effect, and failing calls are reported on all ranks."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time

import torch
import torch.distributed as dist

from processes import backend, check, main, play, refused


def arguments(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        x = torch.ones(4, 4)
        refused("contiguous", lambda: dist.all_reduce(x.t()))
        refused("tensors[0] has gaps", lambda: dist.all_reduce(x[:, 1]))
        refused("allowed are dense tensors", lambda: dist.all_reduce(torch.eye(3).to_sparse()))
        refused("input is on meta; allowed are tensors on the CPU", lambda: backend()._allgather_base(torch.empty(n), torch.empty(1, device="meta")))
        refused("is of torch.int16; reduced are torch.float32", lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)))
        refused("operation is band on type f32", lambda: dist.all_reduce(x, dist.ReduceOp.BAND))
        refused("operation is avg on type b8", lambda: dist.all_reduce(torch.ones(3).bool(), dist.ReduceOp.AVG))
        refused("the root is", lambda: backend().broadcast([x], _root(dist.BroadcastOptions(), n)))
        refused(f"dst is {n}; allowed are 0 to {n - 1}", lambda: dist.send(x, n))
        refused(f"src is {n}; allowed are 0 to {n - 1}", lambda: dist.recv(x, n))
        outputs = [torch.empty(4, 4) for _ in range(n)]
        refused("outputs[0] has", lambda: dist.all_gather(outputs[:-1], x))
        refused("elements of this rank's; its own tensor has 16", lambda: dist.all_gather([torch.empty(3) for _ in range(n)], x))
        refused("output has 16 elements; input has 16", lambda: dist.all_gather_into_tensor(torch.empty(16), x))
        refused("rows and no sizes", lambda: dist.all_to_all_single(torch.empty(n + 1), torch.empty(n + 1)))
        refused("sizes of", lambda: dist.all_to_all_single(torch.empty(n), torch.empty(n), [1] * n, [2] * n))
        group = dist.distributed_c10d._get_default_group()
        refused("tensors has 2 tensors; allowed is one", lambda: group.allreduce([x, x]))
        if rank != 0:
            refused("not the root", lambda: group.gather([outputs], [x], _root(dist.GatherOptions(), 0)))
        options = dist.AllreduceOptions()
        options.timeout = datetime.timedelta(seconds=0)
        refused("timeout is 0 ms; allowed are 1 and more", lambda: group.allreduce([x], options))
        # The group still works.
        dist.all_reduce(x)
        check(float(x[0, 0]) == n, "goes on")

    play(ranks, on_each)


def older_versions(ranks: int) -> None:
    """An old PyTorch is refused with the name of what it lacks."""
    program = "import torch._C._distributed_c10d as c10d; del c10d.AllreduceOptions.asyncOp; import rankine.torch"
    ended = subprocess.run([sys.executable, "-c", f"import torch; {program}"], capture_output=True, text=True, timeout=200)
    check("has no AllreduceOptions.asyncOp, which rankine.torch needs; install PyTorch 2.10 or newer" in ended.stderr, ended.stderr)


def _root(options: object, root: int) -> object:
    options.rootRank = root  # type: ignore[attr-defined]
    return options


def sizes_that_disagree(ranks: int) -> None:
    """The arguments of each rank alone are valid: all ranks get the error, and go on."""

    def on_each(rank: int, n: int) -> None:
        inputs, outputs = [1] * n, [1] * n
        if rank == 0:
            inputs[1] = 3
        out, given = torch.empty(sum(outputs)), torch.empty(sum(inputs))
        refused("rank 0 sends 3 elements to rank 1, which receives 1", lambda: dist.all_to_all_single(out, given, outputs, inputs))
        dist.barrier()

    play(ranks, on_each)


def other_calls(ranks: int) -> None:
    """Ranks that make different calls all get an error; a new group works."""

    def on_each(rank: int, n: int) -> None:
        x = torch.ones(100)
        group = dist.new_group(list(range(n)))
        whole = torch.empty(100 * n)
        gather, reduce = lambda: dist.all_gather_into_tensor(whole, x, group=group), lambda: dist.all_reduce(x, group=group)
        refused("mismatch", gather if rank == 0 else reduce)
        refused("mismatch", lambda: dist.barrier(group))
        y = torch.ones(100)
        dist.all_reduce(y)
        check(float(y[0]) == n, "the other group goes on")

    play(ranks, on_each)


def timeouts(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)), timeout=datetime.timedelta(seconds=1))
        began = time.monotonic()
        if rank == 0:
            time.sleep(2.5)
            refused("timeout", lambda: dist.all_reduce(torch.ones(3), group=group))
        else:
            refused("waits for rank 0", lambda: dist.all_reduce(torch.ones(3), group=group))
            took = time.monotonic() - began
            check(0.9 <= took < 2.4, f"a timeout of 1 s took {took} s")
        work = backend(group).allreduce([torch.ones(3)])
        refused("timeout", work.wait)
        check(not work.is_success(), "it has failed")
        check(dist.all_reduce(torch.ones(3), async_op=True).wait(), "the other group goes on")

    play(ranks, on_each)


def futures_that_fail(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)), timeout=datetime.timedelta(seconds=1))
        dist.barrier()
        if rank != 0:
            future = dist.all_reduce(torch.ones(3), group=group, async_op=True).get_future()
            refused("waits for rank 0", future.wait)
        dist.barrier()

    play(ranks, on_each)


def monitored(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        options = dist.BarrierOptions()
        backend().monitored_barrier(options)
        options.timeout = datetime.timedelta(seconds=1)
        if rank != 0:
            refused("waits for rank 0", lambda: backend().monitored_barrier(options))
        else:
            time.sleep(2)

    play(ranks, on_each)


if __name__ == "__main__":
    main([arguments, older_versions, sizes_that_disagree, other_calls, timeouts, futures_that_fail, monitored])
