"""Messages between two ranks, in any order, together with each other and with collectives."""

from __future__ import annotations

import datetime
import os
import signal

import torch
import torch.distributed as dist

from processes import check, main, play, refused

SIZES = (1, 100, 5_000, 500_000)


def around(ranks: int) -> None:
    """A ring: every rank starts its send before its receive."""

    def on_each(rank: int, n: int) -> None:
        right, left = (rank + 1) % n, (rank - 1) % n
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int16, torch.bool):
            for size in SIZES:
                sent, received = torch.full((size,), rank).to(dtype), torch.empty(size, dtype=dtype)
                works = [dist.isend(sent, right), dist.irecv(received, left)]
                for work in works:
                    work.wait()
                check(torch.equal(received, torch.full((size,), left).to(dtype)), f"{dtype} {size}")

    play(ranks, on_each)


def in_batches(ranks: int) -> None:
    """From every rank to every rank, started at once, waited for in reverse order."""

    def on_each(rank: int, n: int) -> None:
        others = [r for r in range(n) if r != rank]
        for size in SIZES:
            received = {r: torch.empty(size) for r in others}
            posts = [dist.P2POp(dist.isend, torch.full((size,), 10.0 * rank + r), r) for r in others]
            posts += [dist.P2POp(dist.irecv, received[r], r) for r in others]
            for work in reversed(dist.batch_isend_irecv(posts)):
                work.wait()
            for r in others:
                check(float(received[r][-1]) == 10 * r + rank, f"{received[r][-1]} from {r}")

    play(ranks, on_each)


def beside_collectives(ranks: int) -> None:
    """Started before a sum, and waited for after it."""

    def on_each(rank: int, n: int) -> None:
        for size in SIZES:
            x = torch.full((size,), float(rank))
            work = dist.irecv(x, 0) if rank == 1 else dist.isend(x, 1) if rank == 0 else None
            total = torch.ones(size)
            dist.all_reduce(total)
            if work is not None:
                work.wait()
                check(float(x[-1]) == 0, "the message")
            check(float(total[-1]) == n, "the sum")

    play(ranks, on_each)


def tags(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group = dist.new_group([0, 1])
        if rank > 1:
            return
        x = torch.full((3,), float(rank))
        for tag in (0, 7, 100_000):
            dist.send(x, 1, group=group, tag=tag) if rank == 0 else dist.recv(x, 0, group=group, tag=tag)
        long = torch.zeros(500_000)
        refused("mismatch", lambda: dist.send(long, 1, group=group, tag=1) if rank == 0 else dist.recv(long, 0, group=group, tag=2))

    play(ranks, on_each)


def from_any_rank(ranks: int) -> None:
    """Without src: each message once, with its sender; receptions match in the order of their start."""

    def on_each(rank: int, n: int) -> None:
        for size in SIZES:
            if rank > 0:
                for i in range(2):
                    dist.send(torch.full((size,), 10.0 * rank + i), 0)
            else:
                senders = []
                for _ in range(2 * n - 2):
                    sender = dist.recv(x := torch.empty(size))
                    check(float(x[-1]) == 10 * sender + senders.count(sender), f"{x[-1]} from {sender}")
                    senders.append(sender)
                check(sorted(senders) == sorted(2 * list(range(1, n))), f"{senders}")
            total = torch.ones(3)
            works = [dist.irecv(y := torch.empty(size)), dist.irecv(z := torch.empty(size), 1)] if rank == 0 else []
            dist.all_reduce(total)  # receptions that wait are not in the way
            if rank == 1:
                works = [dist.isend(torch.full((size,), float(i)), 0) for i in range(2)]
            for work in reversed(works):
                work.wait()
            check(rank > 0 or (float(y[-1]), float(z[-1])) == (0, 1), "the first reception has the first message")

    play(ranks, on_each)


def any_rank_is_missing(ranks: int) -> None:
    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)), timeout=datetime.timedelta(seconds=1))
        if rank == 0:
            refused("no message from any rank came to rank 0 within 1 s", lambda: dist.recv(torch.empty(3), group=group))
        dist.barrier()
        group = dist.new_group(list(range(n)))
        if rank > 0:
            dist.send(torch.full((3,), float(rank)), 0, group=group)
            dist.destroy_process_group(group)
        dist.barrier()
        if rank == 0:  # messages of ranks that have left come first
            check({dist.recv(torch.empty(3), group=group) for _ in range(1, n)} == set(range(1, n)), "the senders")
            refused("has left", lambda: dist.recv(torch.empty(3), group=group))

    play(ranks, on_each)


def from_the_dead(ranks: int) -> None:
    for anyone in (False, True):

        def on_each(rank: int, n: int) -> None:
            dist.barrier()
            if rank == n - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            refused("rank_lost", lambda: dist.recv(torch.empty(3), None if anyone else n - 1))

        play(ranks, on_each, dies=ranks - 1)


def nobody_sends(ranks: int) -> None:
    """The ranks drop a group and it ends, although each waits for a message from the next rank."""

    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)), timeout=datetime.timedelta(minutes=10))
        works = [dist.irecv(torch.empty(size), (rank - 1) % n, group=group) for size in (3, 500_000)]
        dist.destroy_process_group(group)
        del group  # the group lives until here
        for work in works:
            # The first rank to give up ends the group. The other ranks may get that error before they give up themselves.
            refused("the group was destroyed before a message from rank", work.wait)

    play(ranks, on_each)


def nobody_waits(ranks: int) -> None:
    """Sent messages arrive although all ranks drop the group at once."""

    def on_each(rank: int, n: int) -> None:
        group = dist.new_group(list(range(n)))
        received = torch.empty(500_000)
        dist.isend(torch.full((500_000,), float(rank)), (rank + 1) % n, group=group)
        dist.irecv(received, (rank - 1) % n, group=group)
        dist.destroy_process_group(group)
        del group
        check(float(received[-1]) == (rank - 1) % n, "the message")

    play(ranks, on_each)


if __name__ == "__main__":
    main([around, in_batches, beside_collectives, tags, from_any_rank, any_rank_is_missing, from_the_dead, nobody_sends, nobody_waits])
