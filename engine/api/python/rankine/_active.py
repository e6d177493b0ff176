"""Active ranks: collectives that go on without late or lost ranks."""

from __future__ import annotations

from typing import Any, Sequence

from rankine import _engine
from rankine._engine import OPERATIONS, Buffer
from rankine._errors import Owner, ints, refuse, whole
from rankine._member import Member


class ActiveRanks(Owner):
    """Collectives that go on without late or lost ranks; each returns the ranks that have contributed.

        active = rankine.ActiveRanks(me, wait=0.002, bytes=1 << 20)
        for batch in batches:
            partial = work(batch)
            ranks = active.all_reduce(partial, total)
            if not ranks:
                continue                   # this rank came too late; the others have gone on
            use(total / len(ranks))        # the sum of exactly these ranks
            if len(ranks) < active.ranks:
                print("without", set(range(active.ranks)) - set(ranks))

    All ranks of ``member`` make it, as Member.shrink(); the communicator may then end. ``wait``: the
    longest time that a call waits for other ranks, in seconds. ``bytes``: the largest input of a
    rank, equal on all ranks. Every rank with a result gets the same list, ascending, and sums over
    exactly these ranks. An empty list: this rank has no result. Calls are matched by their number: a
    late rank makes the missed calls too; they return [] at once until the rank has caught up. A rank
    is out if its process ends or its object is closed. No error ends the object; a refused call must
    be made again.
    """

    _closed = "the active ranks have been closed"
    _destroy = _engine.rkActiveDestroy

    def __init__(self, member: Member, wait: float = 0.002, bytes: int = 65536) -> None:
        if not 0 <= wait <= 1e9:
            refuse(f"wait is {wait} s; allowed are 0 to 1e9")
        self._owned = _engine.rkActiveCreate(
            round(wait * 1e6), whole("bytes", bytes, 1, 2**31 - 1), member._handle
        )
        self._rank, self._ranks = _engine.rkActiveGetRank(self._owned)

    def __enter__(self) -> ActiveRanks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def rank(self) -> int:
        """This rank; as the member's, unless ranks were lost before."""
        return self._rank

    @property
    def ranks(self) -> int:
        """The number of ranks, lost ones included."""
        return self._ranks

    def wait_for(self, ranks: Sequence[int]) -> None:
        """From now on this rank's calls wait for these ranks only; at first for all. Others
        contribute if they have come by then."""
        listed = ints("ranks", ranks)
        _engine.rkActiveWaitFor(self._handle, listed, len(listed) // 4)

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum", *, dtype: str | None = None) -> list[int]:
        """out = x of the contributing ranks, reduced in rank order; "avg" divides by their number. In
        place without ``out``."""
        return self._call(0, x, out, op, 0, dtype, 1, 1)

    def broadcast(self, x: Any, root: int = 0, *, dtype: str | None = None) -> list[int]:
        """x = the root's x. Returns [root], or [] if the root or this rank has not come."""
        return self._call(1, x, None, "sum", root, dtype, 1, 1)

    def all_gather(self, x: Any, out: Any, *, dtype: str | None = None) -> list[int]:
        """out has a block per rank; the blocks of ranks that have not come stay as they are."""
        return self._call(2, x, out, "sum", 0, dtype, 1, self._ranks)

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", *, dtype: str | None = None) -> list[int]:
        """out = this rank's block of the contributing ranks' x, reduced; x has a block per rank."""
        return self._call(3, x, out, op, 0, dtype, self._ranks, 1)

    def all_to_all(self, x: Any, out: Any = None, *, dtype: str | None = None) -> list[int]:
        """Block d of x goes to rank d, which stores it at the sender's block of out. Blocks of ranks
        that have not come stay as they are."""
        return self._call(4, x, out, "sum", 0, dtype, self._ranks, self._ranks)

    def close(self) -> None:
        """The others go on without this rank. A second call has no effect."""
        super().close()

    def _call(
        self, collective: int, x: Any, out: Any, op: str, root: int, dtype: str | None, x_blocks: int, out_blocks: int
    ) -> list[int]:
        if op not in OPERATIONS:
            refuse(f"op is {op!r}; allowed for active ranks are {', '.join(OPERATIONS)}")
        given = Buffer("x", x, out is None)
        result = given if out is None else Buffer("out", out, True)
        number = given.type(dtype)
        if result.type(dtype) != number:
            refuse("out has elements of another type than x; allowed are equal types")
        count, odd = divmod(given.bytes // given.item_bytes, x_blocks)
        if odd or result.bytes != count * out_blocks * given.item_bytes:
            refuse(
                f"x has {given.bytes} bytes and out has {result.bytes}; allowed are {x_blocks} and {out_blocks} blocks"
                " of one size"
            )
        address, found = _engine.rkActiveCall(
            self._handle, collective, given.address, result.address, count, number, OPERATIONS[op],
            whole("root", root, 0, self._ranks - 1),
        )  # fmt: skip
        return _engine.memory(address, 4 * found).cast("i").tolist() if found > 0 else []
