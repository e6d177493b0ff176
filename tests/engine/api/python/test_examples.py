"""The examples of training and of a server: equal losses in every way of splitting, correct gradients, and traces that add up."""

import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import numpy
import pytest
import rankine
from test_processes import processes  # noqa: F401

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "engine/api/python/examples"
sys.path.insert(0, str(EXAMPLES))
import row_parallel  # noqa: E402
import scheduler  # noqa: E402
import transformer  # noqa: E402

SMALL = ["--steps", "3", "--width", "16", "--length", "8"]
SERVER = ["--layers", "1", "--width", "64", "--vocabulary", "64", "--requests", "6", "--rate", "100", "--rounds", "1", "--json"]


LAYER = "5f9d8815ef43c1c8"  # the hash of row_parallel.py's answers, on any machine


def run(program, *arguments, code=0):
    ended = subprocess.run([sys.executable, EXAMPLES / program, *arguments], capture_output=True, text=True, timeout=300)
    assert ended.returncode == code, ended.stderr
    return ended


def results(program, *arguments):
    return json.loads(run(program, *arguments, "--json").stdout)


@pytest.mark.parametrize("program, ways", [("train.py", 10), ("experts.py", 6)])
def test_every_way_has_the_losses_of_one_rank(program, ways):
    all_ways = results(program, *SMALL)
    assert len(all_ways) == ways
    losses = all_ways[0]["losses"]
    assert len(losses) == 3 and losses[-1] < losses[0] < 1.5 * math.log(27)
    for way in all_ways:
        assert way["losses"] == losses and way["equal"], way["way"]


@pytest.mark.parametrize("program", ["train.py", "experts.py"])
def test_bf16_has_equal_bits_and_nearly_the_losses_of_f32(program):
    split = ["--dp", "2", "--tp", "2", "--pp", "2", "--zero", "3"]
    alone, parts = results(program, *SMALL, *split, "--type", "bf16")
    assert alone["losses"] == parts["losses"]
    f32 = results(program, *SMALL, *split)[0]["losses"]
    assert alone["losses"] != f32
    numpy.testing.assert_allclose(alone["losses"], f32, rtol=0.02)


def test_bf16_is_the_nearest():
    x = numpy.float32([1, 1 + 2**-9, 1 + 3 * 2**-8, 1 + 2**-8, -(1 + 3 * 2**-8), 3.1])
    assert transformer.bf16(x).tolist() == [1, 1, 1 + 2**-6, 1, -(1 + 2**-6), 3.09375]
    kept = transformer.bf16(x)
    assert transformer.with_lower_half(transformer.upper_half(kept)).tolist() == kept.tolist()


def test_one_way_beside_one_rank():
    alone, split = results("train.py", *SMALL, "--tp", "4", "--dp", "2", "--zero", "1", "--seed", "2")
    assert [alone["way"], split["way"]] == ["one rank", "tp 4, dp 2, zero 1"]
    assert alone["losses"] == split["losses"] != results("train.py", *SMALL, "--dp", "2")[0]["losses"]
    text = run("train.py", *SMALL, "--pp", "2").stdout
    assert text.count("equal bits") == 2 and "OTHER" not in text


def test_on_a_modelled_network_the_calls_take_its_time():
    alone, split = results("train.py", *SMALL, "--dp", "2", "--network", "scale_out")
    assert alone["model_seconds"] == 0 < split["model_seconds"]
    assert alone["losses"] == split["losses"]


def test_it_learns():
    assert results("train.py", "--steps", "30", "--dp", "2")[1]["losses"][-1] < 0.7 * math.log(27)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--tp", "3"], "tp is 3; allowed are divisors of 4"),
        (["--dp", "0"], "ep * dp is 0; allowed are divisors of 8"),
        (["--pp", "4"], "pp is 4; allowed are divisors of 2"),
        (["--dp", "2", "--zero", "2"], "zero is 2; allowed are 0, 1 and 3"),
        (["--dp", "2", "--network", "nowhere"], "nowhere"),
    ],
)
def test_refusals(arguments, says):
    assert says in run("train.py", *arguments, code=2).stderr


def test_experts_are_divided_evenly():
    assert "ep is 4; allowed are divisors of 6" in run("experts.py", "--experts", "6", "--ep", "4", code=2).stderr


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_a_row_parallel_layer_has_the_same_bits(team, processes, ranks):  # noqa: F811
    def f(me):
        found = [row_parallel.answers(me, fused=fused, transport=way) for fused in (True, False) for way in (None, "direct", "mailbox")]
        for parts in (range(12), (slice(5), slice(5, 12))):  # tokens one by one, and two batches
            tokens = [[part] if isinstance(part, int) else range(12)[part] for part in parts]
            found.append(numpy.concatenate([row_parallel.answers(me, some) for some in tokens]))
        return {row_parallel.hash_of(rows) for rows in found}

    assert set().union(*team(ranks).run(f)) == {LAYER}
    assert {row_parallel.hash_of(rows) for rows in processes(ranks, row_parallel.answers).values()} == {LAYER}


def test_a_row_parallel_layer_refuses_what_would_change_its_bits(team):
    def f(me):
        me.set_options(order="tp_invariant")
        with pytest.raises(rankine.InvalidArgument, match="ranks are 3; allowed are 1, 2, 4 and 8"):
            me.all_reduce(numpy.ones(4, numpy.float32))

    team(3).run(f)
    assert run("row_parallel.py").stdout == "".join(f"{ranks} ranks: {LAYER}\n" for ranks in (1, 2, 4, 8))


def numerical(f, x, by):
    """The derivative of the sum of by * f(x) by each element of x."""
    result = numpy.empty_like(x)
    for i in numpy.ndindex(x.shape):
        before, ends = x[i], []
        for step in (1e-5, -1e-5):
            x[i] = before + step
            ends.append((by * f()).sum())
        x[i], result[i] = before, (ends[0] - ends[1]) / 2e-5
    return result


@pytest.mark.parametrize("part", ["attention", "feed", "norm"])
def test_gradients(part):
    draw = numpy.random.default_rng(1).standard_normal
    x, by = draw((6, 4)), draw((6, 4))
    if part == "norm":
        y, scale = transformer.norm(x)
        numpy.testing.assert_allclose(transformer.norm_back(by, y, scale), numerical(lambda: transformer.norm(x)[0], x, by), atol=1e-6)
        return
    shapes = {"attention": {"qkv": (4, 6), "out": (2, 4)}, "feed": {"up": (4, 5), "down": (5, 4)}}[part]
    w = {name: draw(shape) for name, shape in shapes.items()}
    length = [3] if part == "attention" else []
    work, back = getattr(transformer, part), getattr(transformer, part + "_back")
    by_x, gradients = back(by, work(x, w, *length)[1], w)
    for values, gradient in [(x, by_x), *((w[name], gradients[name]) for name in w)]:
        numpy.testing.assert_allclose(gradient, numerical(lambda: work(x, w, *length)[0], values, by), atol=1e-6)


def test_the_server_measures_its_trace():
    answer = json.loads(run("serve.py", "--over", "rankine,pipes", *SERVER).stdout)
    assert answer["equal_answers"] and [turn["library"] for turn in answer["turns"]] == ["rankine", "pipes"]
    for turn in answer["turns"]:
        assert turn["lost"] == 0 and turn["tokens_per_second"] > 0 and 0 < turn["share_of_sums"] < 1
        assert 0 < turn["token_p50_ms"] <= turn["token_p99_ms"] and 0 < turn["first_token_p50_ms"] <= turn["first_token_p99_ms"]
    alone = json.loads(run("serve.py", "--over", "rankine", "--ranks", "1", *SERVER).stdout)
    assert alone["answers"] == answer["answers"] and len(alone["answers"]) == 6


def test_the_server_begins_anew_after_a_death():
    (turn,) = json.loads(run("serve.py", "--over", "rankine", "--kill-after", "1", *SERVER).stdout)["turns"]
    assert 1 <= turn["lost"] <= 5 and len(turn["losses"]) == 1
    assert "rank 1 is still needed" in turn["losses"][0]


def test_the_server_over_http():
    with subprocess.Popen([sys.executable, EXAMPLES / "serve.py", "--http", "0", *SERVER], stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()

        def ask(body):
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60) as answer:
                return json.load(answer)

        try:
            first = ask({"prompt": [1, 2, 3], "tokens": 8})
            assert len(first["tokens"]) == 8 and first == ask({"prompt": [1, 2, 3], "tokens": 8})
            for wrong in ({}, {"prompt": [64]}, {"prompt": [1], "tokens": 128}, {"prompt": []}, 7):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    ask(wrong)
                assert refused.value.code == 400
        finally:
            os.kill(server.pid, signal.SIGINT)
        assert server.wait(60) == 0


def test_the_server_refuses():
    assert "--over has nothing" in run("serve.py", "--over", "nothing", code=2).stderr
    assert "--ranks is 3; allowed are divisors of heads, which is 8" in run("serve.py", "--ranks", "3", code=2).stderr


@pytest.mark.parametrize("seed", range(5))
def test_the_scheduler_serves_everybody(seed):
    """Each request is computed from position 0 without a gap, in a place that no other one uses, and gets its number of tokens."""
    draw = random.Random(seed)
    desk = scheduler.Scheduler()
    waiting = [scheduler.Request([0] * draw.randint(1, 100), draw.randint(1, 20)) for _ in range(60)]
    everyone, positions = list(waiting), {}
    while waiting or desk.waiting or desk.running:
        for _ in range(min(draw.randint(0, 5), len(waiting))):
            desk.waiting.append(waiting.pop())
        pieces, tokens = desk.next()
        assert len(tokens) == sum(count for _, _, count, _ in pieces) <= scheduler.TOKENS
        assert len({place for place, *_ in pieces}) == len(pieces)
        for request in desk.running:
            for place, position, count, _ in pieces:
                if place == request.place:
                    assert position == positions.get(request, 0)
                    positions[request] = position + count
        desk.take([1] * sum(wants for *_, wants in pieces))
    for request in everyone:
        assert request.over.is_set() and len(request.answer()) == request.wanted
        assert positions[request] == len(request.tokens) - 1


def test_the_scheduler_lets_answers_go_before_prompts():
    desk = scheduler.Scheduler()
    early, late = scheduler.Request([0] * 10, 3), scheduler.Request([0] * 200, 1)
    desk.waiting.extend([early, late])
    assert [piece[1:] for piece in desk.next()[0]] == [(0, 10, True), (0, 118, False)]
    desk.take([5])
    assert [piece[1:] for piece in desk.next()[0]] == [(10, 1, True), (118, 82, True)]
    assert desk.take([6, 7]) == 1 and late.over.is_set() and early.answer() == [5, 6]


def test_sums_overlap_with_the_matrix_multiply():
    """The modelled times are exact: they are those of the engine's simulator, on any machine."""
    text = run("overlap.py", "--network", "scale_out", "--tokens", "128", "--width", "64", "--gflops", "50", "--blocks", "1", "4",
               "--timeline", "4").stdout  # fmt: skip
    rows = [line.split() for line in text.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["1", "4"] and float(rows[1][1]) < float(rows[0][1])
    assert text.splitlines()[3] == "same bits"
    multiply, sums, after = text.splitlines()[-3:]
    assert "0123" in "".join(dict.fromkeys(multiply)) and sums.startswith("sum") and after.startswith("next layer")
