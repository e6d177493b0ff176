"""Epilogues: the further processing of the rows of a result."""

import pickle

import numpy
import pytest

import rankine

WIDTH, ROWS, RANKS = 20, 6, 3


def brought(rank: int) -> numpy.ndarray:
    return (numpy.arange(WIDTH * ROWS, dtype=numpy.float32) * 7 % 31 - 15 + rank).astype(numpy.float32)


def test_steps_follow_the_sum() -> None:
    def play(me: rankine.Member) -> None:
        x = brought(me.rank)
        plain = x.copy()
        me.all_reduce(plain)
        residual = numpy.full((ROWS, WIDTH), 0.5, numpy.float32)
        gain = numpy.linspace(0.5, 1.5, WIDTH, dtype=numpy.float32)
        out, scales = numpy.zeros((ROWS, WIDTH), numpy.int8), numpy.zeros(ROWS, numpy.float32)
        norm = rankine.RowEpilogue(
            WIDTH, "f32", residual=residual, norm="rms", weight=gain, epsilon=1e-6, out=out, out_dtype="i8", scales=scales
        )
        me.all_reduce(x, epilogue=norm)
        assert (x == plain).all()
        stream = plain.reshape(ROWS, WIDTH) + 0.5
        assert (residual == stream).all()
        normed = stream / numpy.sqrt((stream**2).mean(1, keepdims=True) + 1e-6) * gain
        assert (abs(out * scales[:, None] - normed) <= 0.51 * scales[:, None]).all()

        first = out.copy()
        residual[:] = 0.5
        out[:] = 0
        norm.apply(x)
        assert (out == first).all()

    rankine.Team(RANKS).run(play)


def test_of_parts_and_of_the_whole_and_started() -> None:
    def play(me: rankine.Member) -> None:
        x = brought(me.rank)
        part, out = numpy.zeros(WIDTH * ROWS // RANKS, numpy.float32), numpy.zeros(WIDTH * ROWS // RANKS, numpy.float32)
        relu = rankine.RowEpilogue(WIDTH, "f32", activation="relu", out=out)
        me.reduce_scatter(x, part, epilogue=relu)
        assert (out == numpy.maximum(part, 0)).all()

        seen = numpy.zeros(ROWS * RANKS, int)
        whole = numpy.zeros(WIDTH * ROWS * RANKS, numpy.float32)

        def look(rows: numpy.ndarray, first: int) -> None:
            assert rows.shape[1] == WIDTH
            assert (rows.ravel() == whole[first * WIDTH :][: rows.size]).all()
            seen[first : first + len(rows)] += 1

        looking = rankine.FunctionEpilogue(look, WIDTH, numpy.float32)
        request = rankine.prepare(me.all_gather, x, whole, epilogue=looking)
        looking.close()
        for _ in range(2):
            request.start()
            request.wait()
        assert (seen == 2).all()

    rankine.Team(RANKS).run(play)


def test_bytes_without_numpy() -> None:
    def play(me: rankine.Member) -> None:
        rows_seen = []
        epilogue = rankine.FunctionEpilogue(lambda rows, first: rows_seen.append((first, bytes(rows))), 4, 1)
        data = bytearray([me.rank + 1] * 8)
        me.all_reduce(data, epilogue=epilogue)
        assert b"".join(piece for _, piece in sorted(rows_seen)) == bytes([3] * 8)

    rankine.Team(2).run(play)


def test_what_a_function_raises_is_the_cause() -> None:
    class Odd(Exception):
        pass

    def play(me: rankine.Member) -> None:
        def fail(rows: object, first: int) -> None:
            if me.rank == 1:
                raise Odd("row")

        epilogue = rankine.FunctionEpilogue(fail, WIDTH, numpy.float32)
        if me.rank == 1:
            with pytest.raises(rankine.Error) as caught:
                me.all_reduce(brought(1), epilogue=epilogue)
            assert caught.value.code is rankine.Code.remote_error
            assert isinstance(caught.value.__cause__, Odd)
        else:
            with pytest.raises(rankine.Error):
                me.all_reduce(brought(me.rank), epilogue=epilogue)
                me.barrier()

    communicator = rankine.Communicator(2)

    import threading

    failed = []

    def on_thread(rank: int) -> None:
        try:
            with communicator.join(rank) as me:
                play(me)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=on_thread, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


ROW = numpy.zeros(WIDTH, numpy.float32)
REFUSED = {
    "dtype is 'f31'": lambda: rankine.RowEpilogue(WIDTH, "f31", out=ROW),
    "type is i32; allowed are f32": lambda: rankine.RowEpilogue(WIDTH, "i32", out=ROW.astype(numpy.int32)),
    "norm is 'max'; allowed are None, 'rms', 'layer'": lambda: rankine.RowEpilogue(WIDTH, "f32", norm="max", out=ROW),
    "activation is 'tanh'": lambda: rankine.RowEpilogue(WIDTH, "f32", activation="tanh", out=ROW),
    "row_elements is 0": lambda: rankine.RowEpilogue(0, "f32", out=ROW),
    "out has 20 elements; allowed are rows of 7": lambda: rankine.RowEpilogue(7, "f32", out=ROW),
    "bias has 20 elements; allowed are 1 x 10": lambda: rankine.RowEpilogue(10, "f32", bias=ROW, out=ROW),
    "scales has 2 elements; allowed are 1 x 1": lambda: rankine.RowEpilogue(
        WIDTH, "f32", out=ROW.astype(numpy.int8), out_dtype="i8", scales=ROW[:2]
    ),
    "out and residual are null": lambda: rankine.RowEpilogue(WIDTH, "f32"),
    "out has elements of format 'd'": lambda: rankine.RowEpilogue(WIDTH, "f32", out=ROW.astype(float)),
    "element has 0 bytes": lambda: rankine.FunctionEpilogue(print, WIDTH, 0),
    "rows has 4 bytes; allowed are multiples of 80": lambda: rankine.RowEpilogue(WIDTH, "f32", out=ROW).apply(ROW[:1]),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        REFUSED[text]()


def test_calls_refuse_what_does_not_fit() -> None:
    me = rankine.Communicator(1).join(0)
    epilogue = rankine.RowEpilogue(WIDTH, "f32", out=numpy.zeros(WIDTH, numpy.float32))
    with pytest.raises(ValueError, match="epilogue has places for 1 rows of 80 bytes; the result has 160 bytes"):
        me.all_reduce(numpy.zeros(2 * WIDTH, numpy.float32), epilogue=epilogue)
    with pytest.raises(ValueError, match="type is i32; allowed is f32"):
        me.all_reduce(numpy.zeros(WIDTH, numpy.int32), epilogue=epilogue)
    with pytest.raises(ValueError, match="counts are given"):
        me.all_gather(ROW, numpy.zeros(WIDTH, numpy.float32), counts=[WIDTH], epilogue=epilogue)
    with pytest.raises(TypeError, match="epilogue is a int"):
        me.all_reduce(numpy.zeros(WIDTH, numpy.float32), epilogue=3)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(epilogue)
    epilogue.close()
    with pytest.raises(rankine.Error, match="the epilogue has been closed"):
        me.all_reduce(numpy.zeros(WIDTH, numpy.float32), epilogue=epilogue)
