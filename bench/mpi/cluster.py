#!/usr/bin/env python3
"""Compares the times of algorithms on a cluster with the times that a model of the network predicts.

    third_party/mpi --cluster openmpi --nodes 4 --ranks 2 --rate 200mbit

Nodes are network namespaces of this machine (nodes.py), joined by TCP. Without the right to make namespaces the
program prints a message and makes the nodes up on this host (--made-up). Each round measures the network as
third_party/mpi --tune does, and then calls, by bench/mpi/perf.cc; `rankine simulate` predicts from the measured
network file alone. Times and predictions are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from nodes import DEVICE, SUBNET, Nodes, Unable, command_that_enters

UNABLE = 75  # the exit status of a run inside namespaces that could not make the nodes
LONGEST_RUN = 420  # seconds of one mpirun
LONGEST_END = 10  # seconds until a run ends, after its output is complete
EAGER = str(4 << 20)  # bytes of a message that Open MPI sends without asking
HEAD_START = 8000  # microseconds from the agreement on a moment until a call begins: two turns of a scheduler
MOST_DELAY = 1_000_000  # microseconds (relay.cc)
MOST_RANKS, MOST_ROUNDS = 64, 1000
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def say(text: str) -> None:
    print(f"cluster: {text}", file=sys.stderr, flush=True)


def crossings(sizes: Sequence[int], first: Sequence[float], second: Sequence[float]) -> list[tuple[float, bool]]:
    """Returns the message sizes at which both take equal time, rising, each with True if the first is faster from there on.
    Between two measured sizes it interpolates the logarithms linearly. It ignores sizes with equal times."""
    found = []
    before = 0.0  # log of first over second at the last size where they differ
    at = 0.0
    for size, a, b in zip(sizes, first, second, strict=True):
        now = math.log(a / b)
        if now == 0:
            continue
        if before * now < 0:
            part = before / (before - now)
            found.append((math.exp(math.log(at) + part * (math.log(size) - math.log(at))), now < 0))
        before, at = now, size
    return found


def size_of(text: str) -> int:
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("K", "M") else (text, "")
    if not number.isdigit() or int(number) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; allowed are 8, 4K, 1M, ...")
    return int(number) * UNITS[unit]


def size_text(size: float) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"


def time_text(seconds: float) -> str:
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def seconds_of(text: str) -> float:
    """Seconds of a time in a network file."""
    for unit, name in ((1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps"), (1, "s")):
        if text.endswith(name):
            return float(text[: -len(name)]) * unit
    return float(text)


def rate_of(link: dict[str, object]) -> float:
    """Bytes per second of a link of a network file."""
    if "beta" in link:
        return 1 / float(str(link["beta"]))
    text = str(link["bandwidth"]).removesuffix("B/s")
    powers = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return float(text[:-1]) * powers[text[-1]] if text[-1] in powers else float(text)


def network_text(network: dict[str, object]) -> str:
    def link(of: object) -> str:
        assert isinstance(of, dict)
        return f"{time_text(seconds_of(str(of['alpha'])))}, {rate_of(of) / 1e6:.4g} MB/s"

    if "between" not in network:
        return link(network)
    shared = "a link that its ranks share" if network.get("wiring") == "two_level" else "a link for each rank"
    return f"{link(network)} within nodes; {link(network['between'])} between them, over {shared} of a node"


class Launcher:
    """Starts programs with mpirun, over nodes or over nodes made up on this host."""

    def __init__(self, mpi: str, nodes: Nodes | None, count: int, ranks: int, work: pathlib.Path) -> None:
        self.work = work
        total = ["-n", str(count * ranks)]
        hosts = work / "nodes"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("RANKINE_", "OMPI_", "PMI_", "UCX_"))}
        self.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(work)}
        self.settings: list[str] = []
        if mpi == "openmpi":
            command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                       "--mca", "btl_base_warn_component_unused", "0"]
            if nodes is not None:
                subnet = f"{SUBNET}.0/24"
                hosts.write_text("".join(f"{name} slots={ranks}\n" for name in nodes.names))
                command += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(nodes.agent(apart=False)),
                            "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "pml", "ob1",
                            "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", subnet,
                            "--mca", "oob_tcp_if_include", subnet, "--map-by", "slot",
                            # Otherwise a long message asks its receiver first, and the answer queues behind the
                            # receiver's own message: two ranks that send to each other wait for both messages.
                            "--mca", "btl_tcp_eager_limit", EAGER, "--mca", "btl_tcp_rndv_eager_limit", EAGER,
                            "--hostfile", str(hosts)]
            else:
                self.environment |= {"UCX_TLS": "self,sm", "UCX_WARN_UNUSED_ENV_VARS": "n"}
        else:
            command = ["mpiexec.mpich", "-bind-to", "none"]
            self.settings = ["MPIR_CVAR_POLLS_BEFORE_YIELD=1", "UCX_WARN_UNUSED_ENV_VARS=n"]
            if nodes is not None:
                hosts.write_text("".join(f"{name}:{ranks}\n" for name in nodes.names))
                command += ["-launcher", "ssh", "-launcher-exec", str(nodes.agent(apart=True)), "-iface", DEVICE,
                            "-f", str(hosts)]
                self.settings += ["UCX_TLS=tcp,self,sm", f"UCX_NET_DEVICES={DEVICE}"]
            else:
                self.settings += ["UCX_TLS=self,sm"]
        if count * ranks > len(os.sched_getaffinity(0)):
            self.settings.append("RANKINE_WAIT=yield")  # nodes do not know that they share cores
        if nodes is None:
            self.settings.append(f"RANKINE_MPI_NODES={ranks}")
        self.command = [*command, *total]

    def run(self, *program: str, complete: Callable[[str], bool], settings: list[str] | None = None) -> str:
        """Runs a program and returns its output. If the output is complete but the job does not end (MPI_Finalize of
        Debian's MPICH over TCP now and then does not return), prints a message, ends the job and returns the output.
        Errors: the job failed, or took too long."""
        name = f"{pathlib.Path(program[0]).name} by {self.command[0]}"
        command = [*self.command, "env", *self.settings, *(settings or []), *program]
        out, err = self.work / "out", self.work / "err"
        with out.open("w") as to, err.open("w") as errors:
            job = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=to, stderr=errors,
                                   start_new_session=True)
        began = time.monotonic()
        since = None  # the time at which the output was complete
        try:
            while job.poll() is None:
                time.sleep(0.05)
                now = time.monotonic()
                if since is None and complete(out.read_text()):
                    since = now
                if since is not None and now - since > LONGEST_END:
                    say(f"{name} has printed its complete output but does not end; cluster ends it")
                    return out.read_text()
                if now - began > LONGEST_RUN:
                    raise SystemExit(f"cluster: {name} took more than {LONGEST_RUN} s")
        finally:
            if job.poll() is None:
                end(job)
        text = out.read_text()
        if job.returncode != 0 or not complete(text):
            raise SystemExit(f"cluster: {name} ended with status {job.returncode}:\n{text[-2000:]}{err.read_text()[-4000:]}")
        return text


def end(job: subprocess.Popen[bytes]) -> None:
    """Ends the job and all processes of its session."""
    os.killpg(job.pid, signal.SIGTERM)
    try:
        job.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def predicted(rankine: pathlib.Path, asked: argparse.Namespace, network: pathlib.Path) -> dict[tuple[str, int], float]:
    """The predictions of `rankine simulate`, by algorithm and size. For an algorithm with groups, nodes are groups."""
    questions = []
    for algorithm in asked.algo:
        for size in asked.bytes:
            plain = {"collective": "all_reduce", "algorithm": algorithm, "ranks": asked.nodes * asked.ranks, "bytes": size,
                     "network": str(network), "segments": 1, "fidelity": asked.fidelity}
            questions += [plain, plain | {"params": {"group": asked.ranks}}]
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    ran = subprocess.run([str(rankine), "simulate", "--batch", "-"], input=lines, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    if len(answers) != len(questions):
        raise SystemExit(f"cluster: 'rankine simulate' failed: {ran.stderr.strip()}")
    times: dict[tuple[str, int], float] = {}
    for plain, grouped in zip(answers[::2], answers[1::2], strict=True):
        answer = grouped if "time" in grouped else plain
        if "time" not in answer:
            raise SystemExit(f"cluster: {plain['algorithm']} cannot be predicted: {plain['error']}")
        times[plain["algorithm"], plain["bytes"]] = answer["time"]
    return times


def measured(launcher: Launcher, program: pathlib.Path, asked: argparse.Namespace,
             network: pathlib.Path) -> dict[tuple[str, int], float]:
    rows = len(asked.algo) + 2  # plus the MPI's own and the engine's choice
    out = launcher.run(str(program), "all_reduce", "--algo", ",".join(asked.algo), "--segments", "1", "--lines",
                       "--moment", str(HEAD_START),
                       "--bytes", ",".join(str(size) for size in asked.bytes), settings=[f"RANKINE_NETWORK={network}"],
                       complete=lambda text: text.count("\n") == rows * len(asked.bytes))
    times = {}
    for line in out.splitlines():
        name, size, seconds = line.split("\t")
        times[name, int(size)] = float(seconds)
    return times


def report(asked: argparse.Namespace, where: str, networks: list[dict[str, object]],
           taken: list[dict[tuple[str, int], float]], said: list[dict[tuple[str, int], float]]) -> None:
    def middle(runs: list[dict[tuple[str, int], float]], name: str) -> list[float]:
        return [statistics.median(run[name, size] for run in runs) for size in asked.bytes]

    print(f"all_reduce, {asked.mpi}, {asked.nodes} nodes of {asked.ranks} ranks, {where}; medians of {asked.rounds} rounds")
    for network in networks:
        print("network: " + network_text(network))
    beside = list(dict.fromkeys(name for name, _ in taken[0] if name not in asked.algo))  # MPI's own and the engine's choice
    print(f"{'':>9}" + "".join(f"  {name:>30}" for name in asked.algo) + "".join(f"  {name:>18}" for name in beside))
    print(f"{'bytes':>9}" + f"  {'measured':>10}{'predicted':>11}{'ratio':>9}" * len(asked.algo) + f"  {'measured':>18}" * len(beside))
    times = {name: (middle(taken, name), middle(said, name)) for name in asked.algo}
    for i, size in enumerate(asked.bytes):
        row = f"{size_text(size):>9}"
        for name in asked.algo:
            is_now, was_said = (of[i] for of in times[name])
            row += f"  {time_text(is_now):>10}{time_text(was_said):>11}{is_now / was_said:>9.2f}"
        print(row + "".join(f"  {time_text(middle(taken, name)[i]):>18}" for name in beside))
    first = asked.algo[0]
    for other in asked.algo[1:]:
        for word, which in (("measured", 0), ("predicted", 1)):
            a, b = times[first][which], times[other][which]
            found = crossings(asked.bytes, a, b)
            text = ", ".join(f"{first if of_first else other} is the quicker from {size_text(at)} on" for at, of_first in found)
            always = first if a[-1] < b[-1] else other
            print(f"{first} and {other}, {word}: {text or f'no crossover, {always} is the quicker at every size'}")


def compare(asked: argparse.Namespace, nodes: Nodes | None, work: pathlib.Path, where: str) -> None:
    programs = asked.programs
    launcher = Launcher(asked.mpi, nodes, asked.nodes, asked.ranks, work)
    launcher.settings += asked.set
    networks, taken, said = [], [], []
    for turn in range(asked.rounds):
        say(f"round {turn + 1} of {asked.rounds}")
        network = work / f"network{turn}.json"
        network.write_text(launcher.run(str(programs / f"bench/mpi/perf_{asked.mpi}"), "--network",
                                        complete=lambda text: text.endswith("\n}\n")))
        networks.append(json.loads(network.read_text()))
        if asked.keep:
            shutil.copy(network, asked.keep)
        said.append(predicted(programs / "engine/cli/rankine", asked, network))
        taken.append(measured(launcher, programs / f"bench/mpi/perf_{asked.mpi}", asked, network))
    report(asked, where, networks, taken, said)


def in_namespaces(asked: argparse.Namespace, work: pathlib.Path) -> None:
    links = f"TCP over network namespaces, {asked.rate or 'no limit of rate'}"
    if asked.delay:
        links += f", {asked.delay} us through the switch"
    try:
        nodes = Nodes(asked.nodes, asked.rate, asked.delay, asked.programs / "bench/mpi/relay", work)
    except Unable as why:
        say(str(why))
        sys.exit(UNABLE)
    compare(asked, nodes, work, links)


def made_up(asked: argparse.Namespace, work: pathlib.Path) -> None:
    compare(asked, None, work, "made up on this host, messages through its memory")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the built programs (bazel-bin)")
    parser.add_argument("--nodes", type=int, choices=(2, 3, 4), default=4)
    parser.add_argument("--ranks", type=int, default=2, help="ranks per node")
    parser.add_argument("--rate", default="200mbit", help="rate of a node's link each way, in tc's format; none: no limit")
    parser.add_argument("--delay", type=int, default=0, metavar="US", help="microseconds through the switch")
    parser.add_argument("--algo", type=lambda text: text.split(","), default=["ring", "hierarchical", "two_level"],
                        help="algorithms of all_reduce; crossovers are between the first and each other one")
    parser.add_argument("--bytes", type=lambda text: sorted({size_of(one) for one in text.split(",")}),
                        default=[1 << k for k in range(8, 21)])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fidelity", choices=("eq1", "flow"), default="flow", help="fidelity of the simulator")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="environment variable of the ranks, such as OMPI_MCA_btl_tcp_sndbuf=65536")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="folder for the network files")
    parser.add_argument("--made-up", action="store_true", help="nodes made up on this host")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)  # set inside namespaces: the folder of the files
    asked = parser.parse_args()
    for setting in asked.set:
        if "=" not in setting:
            parser.error(f"--set is '{setting}'; allowed are NAME=VALUE")
    if asked.keep and not asked.keep.is_dir():
        parser.error(f"--keep is '{asked.keep}'; allowed is an existing folder")
    # Checked here, because an error of tc would look like a missing right.
    if not re.fullmatch(r"none|(?!0+(\.0*)?[a-z])\d+(\.\d+)?[kmgt]?bit", asked.rate):
        parser.error(f"--rate is '{asked.rate}'; allowed are 200mbit, 1gbit, ..., and none")
    asked.rate = "" if asked.rate == "none" else asked.rate
    for name, least, most in (("ranks", 1, MOST_RANKS), ("rounds", 1, MOST_ROUNDS), ("delay", 0, MOST_DELAY)):
        if not least <= getattr(asked, name) <= most:
            parser.error(f"--{name} is {getattr(asked, name)}; allowed are {least} to {most}")
    return asked


def enter(asked: argparse.Namespace, work: pathlib.Path) -> int:
    """Runs this program again inside its own namespaces. Returns its exit status, or UNABLE."""
    try:
        command = command_that_enters()
    except Unable as why:
        say(str(why))
        return UNABLE
    with subprocess.Popen([*command, sys.executable, *sys.argv, "--inside", str(work)]) as run:
        try:
            return run.wait()
        finally:
            run.kill()  # ends all processes in the namespaces, too


def main() -> int:
    asked = parsed()
    # SIGTERM acts as an interruption: jobs end and files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if asked.inside:
        in_namespaces(asked, asked.inside)
        return 0
    work = pathlib.Path(tempfile.mkdtemp(prefix="rankine-cluster-"))
    try:
        status = UNABLE if asked.made_up else enter(asked, work)
        if status == UNABLE:
            say("nodes are made up on this host")
            made_up(asked, work)
            return 0
        return status
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
