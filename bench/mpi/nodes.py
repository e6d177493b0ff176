"""Makes the nodes of a cluster on one machine: network namespaces on a switch, each with a link up and a link down.

All of them are inside namespaces of the calling process (command_that_enters()). Other processes do not see these
namespaces, and they end with the process in every case: no clean-up is needed, and the machine's own interfaces, mounts
and processes stay untouched. Addresses are 10.77.0.0/24 and have no route to other networks.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

SUBNET = "10.77.0"
DEVICE = "eth0"  # in every node, and the switch
# Bytes of a frame. A bucket of tbf holds one frame: a larger one would pass small messages at once.
MTU = 9000
BURST = MTU + 100
# The queue of a link: longer than TCP's data in flight, so that no frame is dropped.
QUEUE = "16mb"


class Unable(Exception):
    """A right or a program is missing on this machine; the text names it."""


def command_that_enters() -> list[str]:
    """Returns a command prefix that runs a command in its own namespaces. They end with the command, and the command
    ends with its caller."""
    own = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        own += ["--user", "--map-root-user"]
    for program in ("setpriv", "unshare", "ip", "tc"):
        if shutil.which(program) is None:
            raise Unable(f"missing program: {program}")
    tried = subprocess.run([*own, "true"], stderr=subprocess.PIPE, text=True, check=False)
    if tried.returncode != 0:
        raise Unable(f"no right to make namespaces ({tried.stderr.strip()})")
    return own


def _run(*command: str) -> None:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        raise Unable(f"'{' '.join(command)}' failed: {ran.stderr.strip()}")


def _limit(prefix: list[str], device: str, rate: str) -> None:
    _run(*prefix, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", str(BURST),
         "limit", QUEUE)


class Nodes:
    """The nodes. Create them in a process that command_that_enters() has started. `rate`: a link's, each way, in tc's
    format; empty: no limit but the machine's speed of copying. `delay_us`: the time of a frame through the switch, which
    then is the program `relay`."""

    def __init__(self, count: int, rate: str, delay_us: int, relay: pathlib.Path, work: pathlib.Path) -> None:
        self.names = [f"n{i}" for i in range(count)]
        self.work = work
        self.relay: subprocess.Popen[str] | None = None
        _run("mount", "--make-rprivate", "/")
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        hosts = work / "hosts"
        lines = ["127.0.0.1 localhost", f"{SUBNET}.254 switch"]
        lines += [f"{SUBNET}.{i + 1} {name}" for i, name in enumerate(self.names)]
        hosts.write_text("\n".join(lines) + "\n")
        _run("mount", "--bind", str(hosts), "/etc/hosts")
        _run("ip", "link", "set", "lo", "up")
        for name in self.names:
            _run("ip", "netns", "add", name)
        if delay_us > 0:
            self._join_by_relay(relay, delay_us)
        else:
            self._join_by_bridge()
        for i, name in enumerate(self.names):
            inside = ["ip", "netns", "exec", name]
            _run(*inside, "ip", "link", "set", "lo", "up")
            # Keeps the window of a connection while it is idle.
            _run(*inside, "bash", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle")
            _run(*inside, "ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
            _run(*inside, "ip", "addr", "add", f"{SUBNET}.{i + 1}/24", "dev", DEVICE)
            if rate:
                _limit(inside, DEVICE, rate)
                if delay_us == 0:  # a relay has no queue: only links up are limited
                    _limit([], f"to-{name}", rate)

    def _join_by_bridge(self) -> None:
        _run("ip", "link", "add", DEVICE, "type", "bridge")
        for name in self.names:
            _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", DEVICE, "netns", name)
            _run("ip", "link", "set", f"to-{name}", "mtu", str(MTU), "master", DEVICE, "up")
        _run("ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
        _run("ip", "addr", "add", f"{SUBNET}.254/24", "dev", DEVICE)

    def _join_by_relay(self, relay: pathlib.Path, delay_us: int) -> None:
        """Makes a tap in every node and one here; the relay has their other ends."""
        self.relay = subprocess.Popen([str(relay), str(delay_us), DEVICE, "/proc/self/ns/net",
                                       *(f"/run/netns/{name}" for name in self.names)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        assert self.relay.stdout is not None and self.relay.stderr is not None
        if self.relay.stdout.readline() != "ready\n":
            raise Unable(f"the relay did not start: {self.relay.stderr.read().strip()}")
        _run("ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
        _run("ip", "addr", "add", f"{SUBNET}.254/24", "dev", DEVICE)

    def agent(self, apart: bool) -> pathlib.Path:
        """Writes the program that a launcher calls in place of ssh, with a node and a command. `apart`: nodes also see no
        processes and no System V memory of each other, because some MPIs would use these as a short cut."""
        more = " --ipc --pid --fork --kill-child --mount-proc" if apart else ""
        path = self.work / "agent"
        path.write_text('#!/bin/bash\n'
                        'while [[ $1 == -* ]]; do shift; done\n'
                        'node=$1; shift\n'
                        f'exec ip netns exec "$node" unshare --uts{more} bash -c "hostname $node; $*"\n')
        path.chmod(0o755)
        return path
