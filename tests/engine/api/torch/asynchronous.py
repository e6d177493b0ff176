"""Asynchronous calls: Work and Future report the true state, and calls make progress without a wait."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from processes import backend, check, main, play, refused


def in_order(ranks: int) -> None:
    """Many calls in flight at once, waited for in reverse order, between blocking calls."""

    def on_each(rank: int, n: int) -> None:
        total = n * (n + 1) // 2
        for _ in range(20):
            tensors = [torch.full((size,), float(rank + 1)) for size in (1, 10, 5_000, 200_000, 3)]
            works = [dist.all_reduce(t, async_op=True) for t in tensors]
            last = torch.full((7,), float(rank + 1))
            dist.all_reduce(last)
            for work in reversed(works):
                work.wait()
                check(work.get_future().done(), "a call that was waited for is over")
            for tensor in [*tensors, last]:
                check(bool((tensor == total).all()), f"{tensor[:3]} is not {total}")

    play(ranks, on_each)


def goes_on_by_itself(ranks: int) -> None:
    """Without any wait is_completed() becomes true."""

    def on_each(rank: int, n: int) -> None:
        for _ in range(3):
            tensor = torch.full((100,), float(rank))
            work = backend().allreduce([tensor])
            until = time.monotonic() + 20
            while not work.is_completed():
                check(time.monotonic() < until, "a call that nobody waits for never ends")
                time.sleep(0.001)
            check(float(tensor[0]) == n * (n - 1) / 2, "its result is there")
            time.sleep(0.2)  # the group's thread falls asleep

    play(ranks, on_each)


def not_before_all_have_come(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        dist.barrier()
        if rank == 0:
            time.sleep(0.5)
        else:
            work = backend().allreduce([torch.ones(5)])
            time.sleep(0.1)
            check(not work.is_completed(), "a call is over before rank 0 has come")
            refused("timeout: the call was not over within 0.05 s; it goes on", lambda: work.wait(_seconds(0.05)))
            work.wait(_seconds(20))
            check(work.is_completed() and work.is_success() and work.exception() is None, "it went on")
            return
        dist.all_reduce(torch.ones(5))

    play(ranks, on_each)


def _seconds(seconds: float) -> object:
    import datetime

    return datetime.timedelta(seconds=seconds)


def futures(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        tensor = torch.full((50,), float(rank))
        future = dist.all_reduce(tensor, async_op=True).get_future()
        doubled = future.then(lambda f: f.value()[0] * 2)
        wanted = n * (n - 1) / 2
        check(float(future.wait()[0][0]) == wanted, "the value is the result")
        check(float(doubled.wait()[0]) == 2 * wanted, "what follows is called")
        late = backend().allreduce([tensor])
        late.wait()
        check(late.get_future().done(), "asked for when all is over")
        # A continuation may make calls, on any thread.
        chained = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(_once_more)
        check(float(chained.wait()[0]) == n * n, "a call that follows a call")
        check(len(late.result()) == 1 and torch.equal(late.result()[0], tensor), "result()")

    play(ranks, on_each)


def _once_more(future: torch.futures.Future) -> torch.Tensor:
    tensor = future.value()[0]
    dist.all_reduce(tensor)
    return tensor


def nobody_waits_at_all(ranks: int) -> None:
    """The group ends after its calls."""

    def on_each(rank: int, n: int) -> torch.Tensor:
        tensor = torch.ones(1000)
        dist.all_reduce(tensor, async_op=True)
        return tensor

    # The result is sent after destroy_process_group() has returned on this rank.
    for tensor in play(ranks, on_each):
        check(float(tensor[0]) == ranks, f"{tensor[0]} is not {ranks}")


def several_threads(ranks: int) -> None:
    """One thread waits while others start calls, like DDP and a data loader, on separate groups."""
    import threading

    def on_each(rank: int, n: int) -> None:
        groups = [dist.new_group(list(range(n))) for _ in range(2)]
        wrong: list[str] = []

        def work(group: object) -> None:
            for _ in range(100):
                tensor = torch.ones(64)
                dist.all_reduce(tensor, group=group)
                if float(tensor[0]) != n:
                    wrong.append(f"{tensor[0]}")

        threads = [threading.Thread(target=work, args=(group,)) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(not wrong, f"{wrong}")

    play(ranks, on_each)


def a_callback_lets_go_of_the_group(ranks: int) -> None:
    """The last reference to a group is dropped on the thread of the group's calls."""
    import tempfile
    import threading

    with tempfile.TemporaryDirectory() as tmp:

        def on_each(rank: int, n: int) -> None:
            if rank == 0:
                time.sleep(0.5)  # the others drop the group while their call is in flight
            holds = [dist.distributed_c10d._get_default_group()]
            told = threading.Event()

            def lets_go(future: torch.futures.Future) -> None:
                holds.clear()
                told.set()

            dist.all_reduce(torch.ones(10), async_op=True).get_future().then(lets_go)
            dist.destroy_process_group()
            check(told.wait(20), "the call has ended")
            dist.init_process_group("rankine", init_method=f"file://{tmp}/again", rank=rank, world_size=n)
            dist.barrier()

        play(ranks, on_each)


if __name__ == "__main__":
    main(
        [
            in_order,
            goes_on_by_itself,
            not_before_all_have_come,
            futures,
            nobody_waits_at_all,
            several_threads,
            a_callback_lets_go_of_the_group,
        ]
    )
