"""Every call gives its documented result, on every type of array."""

import array
import threading

import numpy
import pytest
import rankine

RANKS = 4
NUMPY_TYPES = ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


def of(rank, n, dtype=numpy.float32):
    return (numpy.arange(n) % 7 + rank).astype(dtype)


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
@pytest.mark.parametrize("n", [0, 1, 1000, 70000])
def test_all_reduce(team, dtype, n):
    def f(me):
        x, out = of(me.rank, n, dtype), numpy.zeros(n, dtype)
        me.all_reduce(x, out)
        assert (x == of(me.rank, n, dtype)).all()
        me.all_reduce(x)  # in place
        return out, x

    want = sum(of(r, n, dtype) for r in range(RANKS))
    for out, x in team().run(f):
        assert (out == want).all() and (x == want).all()


@pytest.mark.parametrize(
    "op, want", [("sum", 10), ("prod", 24), ("max", 4), ("min", 1), ("bor", 7), ("band", 0), ("bxor", 4)]
)
def test_operations_by_name(team, op, want):
    def f(me):
        x = numpy.full(5, me.rank + 1, numpy.int32)
        me.all_reduce(x, op=op)
        return list(x)

    assert team().run(f) == [[want] * 5] * RANKS


def test_average_and_bool(team):
    def f(me):
        x, any_one = numpy.full(3, me.rank, numpy.float64), numpy.array([me.rank == 2, False])
        me.all_reduce(x, op="avg")
        me.all_reduce(any_one, op="max")
        return list(x), list(any_one)

    assert team().run(f) == [([1.5] * 3, [True, False])] * RANKS


def test_words_that_stand_for_other_types(team):
    def f(me):
        bf16 = numpy.full(3, 0x3F80, numpy.uint16)  # 1.0
        e4m3 = numpy.full(3, 0x38, numpy.uint8)  # 1.0
        f16 = numpy.full(3, 0x3C00, numpy.uint16)  # 1.0
        me.all_reduce(bf16, dtype="bf16")
        me.all_reduce(e4m3, dtype="f8e4m3")
        me.all_reduce(f16, dtype="f16")
        return bf16[0], e4m3[0], f16[0]

    assert team().run(f) == [(0x4080, 0x48, 0x4400)] * RANKS  # 4.0


def test_any_buffer(team):
    def f(me):
        x, out = array.array("d", [1.5, 2.5]), memoryview(bytearray(16)).cast("d")
        me.all_reduce(x, out)
        sent, got = bytes([me.rank]), bytearray(me.ranks)
        me.all_gather(sent, got)  # bytes are read-only, and only read
        return out.tolist(), bytes(got)

    assert team().run(f) == [([6, 10], bytes(range(RANKS)))] * RANKS


class Tensor:
    """An object without the buffer protocol that exports an array by DLPack, by one with versions or an older one."""

    def __init__(self, array, versions):
        self.array, self.versions = array, versions

    def __dlpack__(self, **options):
        if options and not self.versions:
            raise TypeError("max_version")
        return self.array.__dlpack__()


class Interface:
    def __init__(self, array, **changes):
        self.array, self.__array_interface__ = array, {**array.__array_interface__, **changes}


def by_dlpack(array):
    return Tensor(array, True)


def by_old_dlpack(array):
    return Tensor(array, False)


@pytest.mark.parametrize("exported", [by_dlpack, by_old_dlpack, Interface])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "c8", "f2"])
def test_arrays_without_the_buffer_protocol(exported, dtype):
    with rankine.Communicator(1).join(0) as me:
        x, out = of(1, 24, dtype).reshape(2, 3, 4), numpy.zeros((2, 3, 4), dtype)
        me.all_reduce(exported(x), exported(out), op=rankine.PreMulSum(2))
        assert (out == 2 * x).all()
        with rankine.group():
            me.all_reduce(exported(x), op=rankine.PreMulSum(2))
        assert (out == x).all()
        words = numpy.full(3, 0x3F80, numpy.uint16)
        me.all_reduce(exported(words), op=rankine.PreMulSum(2), dtype="bf16")
        assert words[0] == 0x4000
        for gaps in (x[:, ::2], x.transpose(2, 1, 0)):
            with pytest.raises(ValueError, match="x cannot be used: the .* is not C-contiguous"):
                me.all_reduce(exported(gaps))
        with pytest.raises(ValueError, match="x has elements of format"):
            me.all_reduce(exported(numpy.zeros(3, "i2")))


def test_an_interface_may_be_read_only():
    with rankine.Communicator(1).join(0) as me:
        x = numpy.zeros(3, "f4")
        x.flags.writeable = False
        with pytest.raises(ValueError, match="x is read-only"):
            me.all_reduce(Interface(x))
        me.all_reduce(Interface(x), numpy.zeros(3, "f4"))
        with pytest.raises(ValueError, match="x has elements of format"):
            me.all_reduce(Interface(numpy.zeros(3, ">f4")))


@pytest.mark.parametrize("n", [1, 5000])
def test_rooted(team, n):
    def f(me):
        x, out = of(me.rank, n), numpy.zeros(n, numpy.float32)
        me.reduce(x, out if me.rank == 1 else None, root=1)
        b = of(me.rank, n)
        me.broadcast(b, root=2)
        everything = numpy.zeros((RANKS, n), numpy.float32) if me.rank == 3 else None
        me.gather(x, everything, root=3)
        mine = numpy.zeros(n, numpy.float32)
        me.scatter(everything, mine, root=3)
        assert (b == of(2, n)).all() and (mine == x).all()
        if me.rank == 1:
            assert (out == sum(of(r, n) for r in range(RANKS))).all()
        if me.rank == 3:
            assert all((everything[r] == of(r, n)).all() for r in range(RANKS))
        return True

    assert all(team().run(f))


@pytest.mark.parametrize("n", [1, 5000])
def test_blocks(team, n):
    def f(me):
        everything = numpy.zeros((RANKS, n), numpy.float32)
        everything[me.rank] = of(me.rank, n)
        me.all_gather(everything[me.rank], everything)  # in place
        assert all((everything[r] == of(r, n)).all() for r in range(RANKS))
        part = numpy.zeros(n, numpy.float32)
        me.reduce_scatter(everything, part)
        assert (part == RANKS * of(me.rank, n)).all()
        x = numpy.stack([of(10 * me.rank + d, n) for d in range(RANKS)])
        out = numpy.zeros_like(x)
        me.all_to_all(x, out)
        me.all_to_all(x)
        assert (out == x).all() and all((x[s] == of(10 * s + me.rank, n)).all() for s in range(RANKS))
        return True

    assert all(team().run(f))


def test_counts(team):
    counts, pairs = [3, 0, 5, 1], [[(s + 2 * d) % 4 for d in range(RANKS)] for s in range(RANKS)]

    def f(me):
        mine, everything = of(me.rank, counts[me.rank]), numpy.zeros(9, numpy.float32)
        me.all_gather(mine, everything, counts=counts)
        want = numpy.concatenate([of(r, counts[r]) for r in range(RANKS)])
        assert (everything == want).all()
        part = numpy.zeros(counts[me.rank], numpy.float32)
        me.reduce_scatter(everything, part, counts=counts)
        assert (part == RANKS * mine).all()
        got = numpy.zeros(9, numpy.float32) if me.rank == 1 else None
        me.gather(mine, got, 1, counts=counts)
        me.scatter(got, part, 1, counts=counts)
        assert (part == mine).all()
        x = numpy.concatenate([of(me.rank + d, pairs[me.rank][d]) for d in range(RANKS)])
        out = numpy.zeros(sum(pairs[s][me.rank] for s in range(RANKS)), numpy.float32)
        me.all_to_all(x, out, counts=pairs)
        assert (out == numpy.concatenate([of(s + me.rank, pairs[s][me.rank]) for s in range(RANKS)])).all()
        return True

    assert all(team().run(f))


@pytest.mark.parametrize("n", [1, 100000])
def test_messages(team, n):
    def f(me):
        right, left = (me.rank + 1) % RANKS, (me.rank - 1) % RANKS
        x, y, z = of(me.rank, n), numpy.zeros(n, numpy.float32), numpy.zeros(n, numpy.float32)
        me.exchange(x, right, y, left)
        with rankine.group():
            me.send(x, left)
            me.recv(z, right)
        if me.rank == 0:
            me.send(numpy.array([7]), 3)
        if me.rank == 3:
            seven = numpy.zeros(1, numpy.int64)
            me.recv(seven, 0)
            assert seven[0] == 7
        return (y == of(left, n)).all() and (z == of(right, n)).all()

    assert all(team().run(f))


def test_one_thread_plays_all_ranks():
    communicator = rankine.Communicator(RANKS)
    members = [communicator.join(r) for r in range(RANKS)]
    x = [numpy.full(10, r + 1.0) for r in range(RANKS)]
    with rankine.group():
        for me in members:
            me.all_reduce(x[me.rank], op=rankine.PreMulSum(2.0))
        assert all(x[r][0] == r + 1 for r in range(RANKS))  # not before the group ends
    assert all((one == 20).all() for one in x)


@pytest.mark.parametrize("n", [0, 1, 3000])
def test_scans(team, n):
    def f(me):
        x, out = of(me.rank, n, numpy.int64), numpy.full(n, -1, numpy.int64)
        me.exscan(x, out)
        me.scan(x)
        return out, x

    for rank, (before, upto) in enumerate(team().run(f)):
        assert (upto == sum(of(r, n, numpy.int64) for r in range(rank + 1))).all()
        assert (before == (sum(of(r, n, numpy.int64) for r in range(rank)) if rank > 0 else -1)).all()


def test_all_to_all_with_displacements(team):
    def f(me):
        counts = [[1] * me.ranks] * me.ranks
        backwards = [4 * (me.ranks - 1 - r) for r in range(me.ranks)]
        x = (10 * me.rank + numpy.arange(me.ranks)).astype(numpy.int32)
        out = numpy.full(me.ranks + 1, -1, numpy.int32)
        me.all_to_all(x, out, counts=counts, in_displacements=backwards, out_displacements=[4, 8, 12, 16])
        with pytest.raises(ValueError, match="out has 20 bytes; the block of rank 3 ends at byte 24"):
            me.all_to_all(x, out, counts=counts, out_displacements=[4, 8, 12, 20])
        with pytest.raises(ValueError, match="counts is None"):
            me.all_to_all(x, out, in_displacements=backwards)
        with pytest.raises(ValueError, match="may not overlap"):
            me.all_to_all(x, out, counts=counts, out_displacements=[4, 8, 8, 16])
        return list(out)

    assert team().run(f) == [[-1] + [10 * q + RANKS - 1 - r for q in range(RANKS)] for r in range(RANKS)]


def test_split(team):
    def f(me):
        part = me.split(me.rank % 2, key=-me.rank)
        none = me.split(None if me.rank == 0 else 5)
        x = numpy.array([me.rank], numpy.int32)
        part.all_reduce(x)
        part.barrier()
        return part.rank, part.ranks, int(x[0]), none is None or none.ranks

    assert team().run(f) == [(1, 2, 2, True), (1, 2, 4, 3), (0, 2, 2, 3), (0, 2, 4, 3)]


def test_survivors_go_on():
    communicator = rankine.Communicator(3)
    members = [communicator.join(r) for r in range(3)]
    members[1].close()
    passed = threading.Barrier(2)
    found = {}

    def survive(me):
        with pytest.raises(rankine.Error):
            me.barrier()
        value = me.agree(0xFFFF ^ 1 << me.rank)
        with me.shrink() as part:
            x = numpy.array([me.rank], numpy.int32)
            part.all_reduce(x)
            part.barrier()
            passed.wait()
            part.revoke()
            found[me.rank] = value, part.rank, part.ranks, int(x[0]), part.health()

    threads = [threading.Thread(target=survive, args=(members[r],)) for r in (0, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    aborted = rankine.Code.aborted
    assert found == {0: (0xFFFA, 0, 2, 2, aborted), 2: (0xFFFA, 1, 2, 2, aborted)}


def test_active_ranks_go_on_without_a_late_rank(team):
    gate = threading.Barrier(3)

    def f(me):
        with rankine.ActiveRanks(me, wait=3600, bytes=64) as active:
            is_late = me.rank == 2
            x, out = numpy.float32([me.rank + 1, 0, 4]), numpy.full(9, -1, numpy.float32)
            active.wait_for([0, 1])
            if is_late:
                gate.wait()
            got = [active.all_reduce(x[:1], out[:1]), active.all_gather(x, out)]
            assert got == [[] if is_late else [0, 1]] * 2
            assert list(out) == [-1] * 9 if is_late else [1, 0, 4, 2, 0, 4, -1, -1, -1]
            if not is_late:
                gate.wait()
            active.wait_for(range(3))
            assert active.all_reduce(x, op="avg") == [0, 1, 2] and list(x) == [2, 0, 4]
            assert active.reduce_scatter(x, out[:1]) == [0, 1, 2] and out[0] == 3 * x[me.rank]
            x[:] = [0, 1, 2]
            assert active.all_to_all(x) == [0, 1, 2] and list(x) == [me.rank] * 3
            assert active.broadcast(x, 1) == [1] and list(x) == [1, 1, 1]
            for wrong, words in [
                (lambda: active.all_gather(x, x), "x has 12 bytes and out has 12; allowed are 1 and 3 blocks"),
                (lambda: active.all_reduce(numpy.ones(17, "f4")), "a rank's input has 68 bytes; allowed are 0 to 64"),
                (lambda: active.all_reduce(x, op="first"), "op is 'first'; allowed for active ranks are sum"),
                (lambda: active.wait_for([3]), "a rank is 3; allowed are 0 to 2"),
                (lambda: rankine.ActiveRanks(me, wait=-1), "wait is -1 s"),
            ]:
                with pytest.raises(ValueError, match=words):
                    wrong()
            gate.wait()
        with pytest.raises(rankine.Error, match="the active ranks have been closed"):
            active.all_reduce(x)

    team(3).run(f)


def test_pre_multiplied_sums(team):
    def f(me):
        results = []
        for dtype in ("i4", "f2", "f4", "f8", "c16"):
            x = numpy.full(3, 2, dtype)
            me.all_reduce(x, op=rankine.PreMulSum(me.rank + 1))
            results.append(complex(x[1]))
        return results

    assert team().run(f) == [[20] * 5] * RANKS


def test_an_operation_of_numpy_arrays(team):
    affine = numpy.dtype([("a", "i8"), ("b", "i8")])  # x -> a x + b; composition does not commute

    def compose(lower, inout):
        inout["b"] += inout["a"] * lower["b"]
        inout["a"] *= lower["a"]

    op = rankine.Operation(compose, affine, commutative=False)

    def f(me):
        x = numpy.zeros(3000, affine)
        x["a"], x["b"] = me.rank + 2, me.rank
        for _ in range(3):
            y = x.copy()
            me.all_reduce(y, op=op)
        return int(y["a"][0]), int(y["b"][0]), bool((y == y[0]).all())

    a, b = 1, 0
    for r in range(RANKS):
        a, b = (r + 2) * a, (r + 2) * b + r
    assert team().run(f) == [(a, b, True)] * RANKS


def test_an_operation_of_bytes(team):
    def larger(lower, inout):
        for i in range(0, len(inout), 3):
            inout[i : i + 3] = max(bytes(lower[i : i + 3]), bytes(inout[i : i + 3]))

    op = rankine.Operation(larger, 3)

    def f(me):
        x = bytearray(b"abc" + bytes([9 - me.rank, me.rank, 0]))
        me.all_reduce(x, op=op)
        return bytes(x)

    assert team().run(f) == [b"abc\x09\x00\x00"] * RANKS


@pytest.mark.parametrize("sent", ["i8", "f8e4m3"])
def test_quantised_sums_stay_within_their_bound(team, sent):
    xs = [numpy.random.default_rng(r).uniform(-1, 1, 1000).astype("f4") for r in range(RANKS)]

    def f(me):
        x, out = xs[me.rank].copy(), numpy.empty(1000, "f4")
        me.all_reduce_quantised(x, out, sent=sent)
        me.all_reduce_quantised(x, sent=sent, block=1000)
        with pytest.raises(ValueError, match="out has 4 bytes; allowed are 4000"):
            me.all_reduce_quantised(x, out[:1])
        with pytest.raises(ValueError, match="block is 0"):
            me.all_reduce_quantised(x, block=0)
        with pytest.raises(ValueError, match="sent is 'i4'"):
            me.all_reduce_quantised(x, sent="i4")
        return out, x

    bound = rankine.Member.quantised_error([1.0] * RANKS, sent=sent)
    for results in team().run(f):
        for result in results:
            assert bound / 100 < abs(result - sum(x.astype("f8") for x in xs)).max() <= bound


def test_options_and_reports(team):
    def f(me):
        me.set_options(algorithm="ring", timeout=5)
        x = numpy.ones(1000)
        me.all_reduce(x)
        return x[0], me.health(), me.model_time(), '"' in me.flight_record()

    assert team().run(f) == [(RANKS, rankine.Code.success, 0.0, True)] * RANKS


def test_a_modelled_network(team):
    def f(me):
        x = numpy.ones(1000)
        me.all_reduce(x)
        before = me.model_time()
        me.compute(0.5)
        return x[0] == RANKS and before > 0 and me.model_time() >= before + 0.5

    assert all(team(network="scale_out").run(f))


def test_buckets(team):
    def f(me):
        tensors = [numpy.full(n, me.rank + 1.0, numpy.float32) for n in (3, 10, 1000, 0, 5)]
        skipped = numpy.full(4, 99.0, numpy.float32)
        words = numpy.full(2, 0x3F80, numpy.uint16)  # 1.0
        with rankine.Buckets(me, 200) as buckets:
            for tensor in tensors:
                buckets.add(tensor)
            (buckets.add_unused if me.rank == 0 else buckets.add)(skipped, "avg")
            buckets.add(words, dtype="bf16")
            with pytest.raises(ValueError, match="op is 'mean'; allowed are sum"):
                buckets.add(tensors[0], "mean")
            buckets.flush()
            buckets.wait(3)
            assert (tensors[2] == 10).all()
            with pytest.raises(ValueError, match="tensors is 8; allowed are up to 7"):
                buckets.wait(8)
            buckets.wait()
            calls = buckets.calls
            buckets.all_reduce([numpy.ones(3, numpy.int32), numpy.ones(3, numpy.int32)], "max")
            with pytest.raises(ValueError, match="tensors have elements of f32, i32; allowed is one type"):
                buckets.all_reduce([numpy.ones(3, numpy.int32), numpy.ones(3, numpy.float32)])
        with pytest.raises(rankine.Error, match="have been closed"):
            buckets.wait()
        assert all((tensor == 10).all() for tensor in tensors)
        return skipped[0], words[0], calls

    for skipped, word, calls in team().run(f):
        assert skipped == 99.0 * 3 / 4 and word == 0x4080  # 4.0
        assert calls == 5  # calls with 2, 1, 2, 1 and 1 tensors


def test_tensors_of_buckets_are_in_use_until_they_are_waited_for():
    with rankine.Communicator(1).join(0) as me:
        x = bytearray(8)
        buckets = rankine.Buckets(me)
        buckets.add(x)
        with pytest.raises(BufferError):
            x.extend(b"more")
        buckets.wait()
        x.extend(b"more")
        buckets.add(x)
        buckets.close()
        x.extend(b"more")
        assert me.health() == rankine.Code.remote_error
