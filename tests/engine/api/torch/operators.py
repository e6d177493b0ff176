"""torch.ops.rankine: values, shapes, errors, and that torch.compile keeps the operators."""

from __future__ import annotations

import os
import signal
import threading
import time

import rankine
import torch
import torch.distributed as dist

from processes import check, main, play, refused

OPS = torch.ops.rankine


def calls(x: torch.Tensor, group: str) -> list[torch.Tensor]:
    one, other = x * 1, x * 2
    OPS.all_reduce_(one, "sum", group)
    OPS.broadcast_(other, 1, group)
    return [
        one, other, OPS.all_reduce(x, "max", group), OPS.all_gather(x, group), OPS.reduce_scatter(x, "sum", group),
        OPS.all_to_all(x, group),
    ]  # fmt: skip


def values(ranks: int) -> None:
    """Eager and compiled: the values of a loop over ranks, for several types."""

    def on_each(rank: int, n: int) -> None:
        group = dist.group.WORLD.group_name
        graphs: list[torch.fx.GraphModule] = []

        def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
            graphs.append(graph)
            return graph

        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            parts = [torch.arange(2 * n * 3).view(2 * n, 3).to(dtype) + 2 * r for r in range(n)]
            total, mine = sum(parts), slice(2 * rank, 2 * rank + 2)
            wanted = [total, parts[1] * 2, parts[-1], torch.cat(parts), total[mine], torch.cat([p[mine] for p in parts])]
            for name in ("eager", "aot_eager", backend):
                torch._dynamo.reset()
                run = calls if name == "eager" else torch.compile(calls, backend=name, fullgraph=True)
                for i, (result, right) in enumerate(zip(run(parts[rank], group), wanted, strict=True)):
                    check(torch.equal(result, right), f"{name} {dtype} call {i}: {result} is not {right}")
        kept = {str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"}
        for name in ("all_reduce_", "broadcast_", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            check(any(f"rankine.{name}" in target for target in kept), f"{name} is not among {kept}")

    play(ranks, on_each)


def shapes(ranks: int) -> None:
    """The fake kernels have the shapes and types of the others."""

    def on_each(rank: int, n: int) -> None:
        group = dist.group.WORLD.group_name
        x = torch.ones(2 * n, 3)
        for call in (
            lambda: OPS.all_reduce(x, "sum", group),
            lambda: OPS.all_gather(x, group),
            lambda: OPS.reduce_scatter(x, "sum", group),
            lambda: OPS.all_to_all(x, group),
        ):
            with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                fake = call()
            real = call()
            check((fake.shape, fake.dtype) == (real.shape, real.dtype), f"{fake} is not as {real}")

    play(ranks, on_each)


def wrong(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group, x = dist.group.WORLD.group_name, torch.ones(4)
        refused("group is 'nobody'; allowed are the group_name of rankine groups: '", lambda: OPS.all_reduce_(x, "sum", "nobody"))
        refused("op is 'add'; allowed are sum, prod", lambda: OPS.all_reduce_(x, "add", group))
        refused("has gaps or another order", lambda: OPS.all_reduce_(torch.ones(4, 4).t(), "sum", group))
        refused("x has 7 rows; allowed are multiples of" if n != 7 else "", lambda: OPS.reduce_scatter(torch.ones(7), "sum", group))
        refused(f"the root is {n}; allowed are 0 to {n - 1}", lambda: OPS.broadcast_(x, n, group))
        refused("x has 1 rows; allowed are multiples of", lambda: OPS.all_to_all(torch.tensor(3.0), group))
        refused("x is of torch.int16; reduced are torch.float32", lambda: OPS.all_reduce(x.to(torch.int16), "sum", group))
        refused("invalid_argument: rkAllReduce: operation is band on type f32", lambda: OPS.all_reduce(x, "band", group))
        OPS.all_reduce_(x, "sum", group)
        check(float(x[0]) == n, "goes on")
        dist.destroy_process_group(other := dist.new_group(list(range(n))))
        try:
            OPS.all_reduce_(x, "sum", other.group_name)
        except rankine.Error as error:
            check(isinstance(error, rankine.InvalidArgument) or error.code == rankine.Code.invalid_usage, repr(error))
        else:
            raise AssertionError("a destroyed group made a call")

    play(ranks, on_each)


def any_form(ranks: int) -> None:
    """Tensors in another order are copied, types that the engine lacks are moved, and scalars are gathered."""

    def on_each(rank: int, n: int) -> None:
        group, x = dist.group.WORLD.group_name, torch.arange(8.0).view(2, 4).t() + rank
        check(torch.equal(OPS.all_reduce(x, "max", group), x - rank + n - 1), "another order")
        check(torch.equal(OPS.all_gather(torch.tensor(rank, dtype=torch.int16), group), torch.arange(n, dtype=torch.int16)), "scalars of i16")
        check(OPS.all_gather(torch.empty(0, 3), group).shape == (0, 3), "nothing")

    play(ranks, on_each)


def in_order(ranks: int) -> None:
    """An operator waits for the calls that its thread has submitted before."""

    def on_each(rank: int, n: int) -> None:
        group, x, y = dist.group.WORLD.group_name, torch.ones(1000), torch.ones(3)
        for _ in range(20):
            work = [dist.all_reduce(x.fill_(1), async_op=True), dist.all_reduce(y.fill_(1), async_op=True)]
            OPS.all_reduce_(x, "sum", group)
            check(float(x[0]) == n * n, f"{x[0]} is not {n * n}")
            for one in work:
                one.wait()
        pair = dist.new_group([0, 1])
        if rank < 2:  # the messages leave another tag on each rank
            messages = [dist.isend(y, 1 - rank, pair, tag=3 + rank), dist.irecv(torch.empty(3), 1 - rank, pair, tag=4 - rank)]
            for message in messages:
                message.wait()
            OPS.all_reduce_(y.fill_(1), "sum", pair.group_name)
            check(float(y[0]) == 2, "after messages with tags")

    play(ranks, on_each)


def interrupts(ranks: int) -> None:
    """A signal handler's exception ends the wait, as does a deadline, with the exceptions of Rankine."""

    def on_each(rank: int, n: int) -> None:
        pair = dist.new_group([0, 1])
        if rank == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                OPS.all_reduce_(torch.ones(3), "sum", pair.group_name)
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError("no interrupt")
        elif rank == 1:
            time.sleep(1)
            try:
                OPS.all_reduce_(torch.ones(3), "sum", pair.group_name)
            except rankine.Error as error:
                check(error.code != rankine.Code.invalid_argument, repr(error))
            else:
                raise AssertionError("a call without rank 0 succeeded")

    play(ranks, on_each)


if __name__ == "__main__":
    main([values, shapes, wrong, any_form, in_order, interrupts])
