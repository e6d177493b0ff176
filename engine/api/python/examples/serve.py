"""A toy inference server: processes divide each layer of a decoder (tensor parallelism) and answer
requests together. By default the program sends itself a trace of requests and measures the answers,
with Rankine and with other libraries in turns.

    python3 serve.py                                  Rankine beside pipes, and gloo if torch is there
    python3 serve.py --ranks 4 --rate 20 --json
    python3 serve.py --over rankine --kill-after 4    a rank dies: requests are lost, new ranks begin
    mpirun -n 2 python3 serve.py --over rankine,mpi   beside an MPI, by mpi4py
    python3 serve.py --http 8080                      curl -d '{"prompt": [1, 2], "tokens": 8}' localhost:8080

A step computes the next token of all requests under way. The rest of its room goes to prompts, the
earliest first, in pieces that fit (continuous batching; Yu et al., Orca, 2022). So the number of
tokens changes from step to step. Rank 0 has the scheduler and broadcasts each batch. A layer makes
two all-reduces; Rankine adds the residual and norms the rows inside the call.
"""

import argparse
import http.server
import importlib.util
import json
import multiprocessing
import os
import queue
import signal
import threading
import time
import uuid

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a rank has one core
import numpy
import rankine
from decoder import LIBRARIES, Decoder
from scheduler import LONGEST, PLACES, TOKENS, Request, Scheduler

STOP = -1
world = None  # MPI's processes, under mpirun


def lead(decoder, arrivals, tell):
    """Rank 0: answers the requests of the queue, until it gets None."""
    scheduler, answered, more = Scheduler(), 0, True
    batch = numpy.zeros(1 + 4 * PLACES + TOKENS, numpy.int32)
    try:
        while more or scheduler.waiting or scheduler.running:
            try:
                while more:
                    request = arrivals.get(block=not scheduler.waiting and not scheduler.running)
                    more = request is not None
                    scheduler.waiting.extend([request] if more else [])
            except queue.Empty:
                pass
            pieces, tokens = scheduler.next()
            if pieces:
                batch[0] = len(pieces)
                batch[1 : 1 + 4 * len(pieces)] = numpy.ravel(pieces)
                batch[-len(tokens) :] = tokens
                decoder.library.broadcast(batch)
                answered += scheduler.take(decoder.step(numpy.array(pieces), tokens))
                tell(answered)
        batch[0] = STOP
        decoder.library.broadcast(batch)
    finally:  # after an error, too
        if not more:
            arrivals.put(None)  # for a successor
        for request in [*scheduler.running, *scheduler.waiting]:
            request.lost = True
            request.over.set()


def follow(decoder):
    """The other ranks."""
    batch = numpy.zeros(1 + 4 * PLACES + TOKENS, numpy.int32)
    while True:
        decoder.library.broadcast(batch)
        if batch[0] == STOP:
            return
        pieces = batch[1 : 1 + 4 * batch[0]].reshape(-1, 4)
        decoder.step(pieces, batch[-pieces[:, 2].sum() :])


def play(rank, library, name, options, work=follow):
    """One rank."""
    if rank > 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 ends the others
    connection = LIBRARIES[library](rank, options.ranks, name)
    try:
        work(Decoder(connection, options))
    except rankine.Error:  # another rank died
        if rank == 0:
            raise
    finally:
        connection.close()


def serve(library, arrivals, options):
    """Answers all requests. If a process dies, requests under way are lost, and new processes begin."""
    context, losses = multiprocessing.get_context("spawn"), []
    decoders = []  # of rank 0, with its times
    while True:
        name = f"serve.{uuid.uuid4().hex}"
        others = range(1, options.ranks) if world is None else []  # mpirun has started them
        processes = [context.Process(target=play, args=(rank, library, name, options)) for rank in others]
        if world is not None:
            world.bcast(name)
        for process in processes:
            process.start()

        def tell(answered):
            if not losses and 0 < options.kill_after <= answered:
                processes[-1].kill()

        def work(decoder):
            decoders.append(decoder)
            lead(decoder, arrivals, tell)

        try:
            play(0, library, name, options, work)
            return losses, sum(one.sums for one in decoders) / sum(one.steps for one in decoders)
        except rankine.Error as error:
            losses.append(str(error))
        finally:
            for process in processes:
                process.join()


def turn(library, options):
    """Sends a trace: requests come at random times. Returns what was measured; times in milliseconds."""
    draw, arrivals = numpy.random.default_rng(options.seed), queue.SimpleQueue()
    prompts = [draw.integers(0, options.vocabulary, draw.integers(8, LONGEST // 2)) for _ in range(options.requests)]
    wanted = draw.integers(4, LONGEST // 4, options.requests).tolist()
    gaps, requests = draw.exponential(1 / options.rate, options.requests), []

    def send():
        for prompt, count, gap in zip(prompts, wanted, gaps):
            requests.append(Request(prompt.tolist(), count))
            arrivals.put(requests[-1])
            time.sleep(gap)
        arrivals.put(None)

    sender = threading.Thread(target=send)
    sender.start()
    losses, share = serve(library, arrivals, options)
    sender.join()
    answered = [request for request in requests if not request.lost]
    first = [1e3 * (request.times[0] - request.came) for request in answered]
    each = [1e3 * gap for request in answered for gap in numpy.diff(request.times)]
    seconds = max(request.times[-1] for request in answered) - requests[0].came
    return {
        "library": library,
        "tokens_per_second": sum(len(request.times) for request in answered) / seconds,
        **{f"first_token_p{p}_ms": float(numpy.percentile(first, p)) for p in (50, 99)},
        **{f"token_p{p}_ms": float(numpy.percentile(each, p)) for p in (50, 99)},
        "share_of_sums": share,
        "lost": len(requests) - len(answered),
        "losses": losses,
        "answers": [request.answer() for request in requests],
    }


def listen(port, arrivals, options):
    """Lets clients put requests into the queue, over HTTP."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt, wanted = [int(token) for token in asked["prompt"]], int(asked.get("tokens", 16))
                fits = prompt and 0 < wanted <= LONGEST - len(prompt)
                if not (fits and 0 <= min(prompt) <= max(prompt) < options.vocabulary):
                    raise ValueError(f"at most {LONGEST} tokens, from 0 to {options.vocabulary - 1}")
            except (ValueError, KeyError, TypeError) as error:
                return self.say(400, {"error": str(error)})
            request = Request(prompt, wanted)
            arrivals.put(request)
            request.over.wait()
            if request.lost:
                return self.say(503, {"error": "a rank was lost; ask again"})
            self.say(200, {"tokens": request.answer()})

        def say(self, code, answer):
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode() + b"\n")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)


def main():
    global world
    parser = argparse.ArgumentParser(description="A toy inference server over Rankine and other libraries.")
    numbers = {"ranks": 2, "requests": 16, "rounds": 2, "layers": 2, "width": 256, "heads": 8, "vocabulary": 1024}
    for name, value in {**numbers, "seed": 1, "kill-after": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{value} by default")
    parser.add_argument("--rate", type=float, default=8, metavar="X", help="requests a second; 8 by default")
    parser.add_argument("--over", default="", metavar="LIST", help=f"of {', '.join(LIBRARIES)}")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve on this port; 0: any free one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    gloo = ["gloo"] if importlib.util.find_spec("torch") else []
    over = options.over.split(",") if options.over else ["rankine", "pipes", *gloo]
    if unknown := set(over) - set(LIBRARIES):
        parser.error(f"--over has {', '.join(unknown)}; allowed are {', '.join(LIBRARIES)}")
    if "mpi" in over:
        from mpi4py import MPI

        world, options.ranks = MPI.COMM_WORLD, MPI.COMM_WORLD.size
    for name in ("heads", "vocabulary"):
        if getattr(options, name) % options.ranks:
            parser.error(f"--ranks is {options.ranks}; allowed are divisors of {name}, which is {getattr(options, name)}")
    # In each round another library is first.
    turns = [over[(i + r) % len(over)] for r in range(options.rounds) for i in range(len(over))]
    if options.http is not None:
        arrivals = queue.SimpleQueue()
        signal.signal(signal.SIGINT, lambda *_: arrivals.put(None))
        listen(options.http, arrivals, options)
        serve(over[0], arrivals, options)
        return
    if world is not None and world.rank > 0:
        for library in turns:
            play(world.rank, library, world.bcast(None), options)
        return
    results = [turn(library, options) for library in turns]
    answers = [result.pop("answers") for result in results]
    equal = all(other == answers[0] for other in answers)
    if options.json:
        print(json.dumps({"ranks": options.ranks, "turns": results, "answers": answers[0], "equal_answers": equal}))
        return
    print(f"{options.ranks} ranks, {options.requests} requests, {options.rate:g} a second; milliseconds")
    print("          tokens/s  first token p50     p99  token p50     p99    sums  lost")
    for r in sorted(results, key=lambda result: over.index(result["library"])):
        first, each = (f"{r[name + '_p50_ms']:11.1f} {r[name + '_p99_ms']:7.1f}" for name in ("first_token", "token"))
        print(f"{r['library']:8} {r['tokens_per_second']:9.1f}     {first}{each} {r['share_of_sums']:6.1%} {r['lost']:5}")
        for loss in r["losses"]:
            print("    new ranks after:", loss)
    print("answers of all turns:", "equal" if equal else "different")


if __name__ == "__main__":
    main()
