"""Nodes of a cluster on one machine: network namespaces on a switch, each with a link up and a link down.

Everything is made inside namespaces of the calling process (`enter`), which nobody else sees and which end
with it, whichever way it ends: nothing has to be taken down, and no interface, mount or process of the
machine's own is touched. Addresses are 10.77.0.0/24, and lead nowhere else.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

SUBNET = "10.77.0"
DEVICE = "eth0"  # in every node, and the switch
# Bytes of a frame. A bucket of tbf's holds one: with more, messages that fit into it would pass at once.
MTU = 9000
BURST = MTU + 100
# What waits at a link: more than TCP ever has under way, so that nothing is dropped.
QUEUE = "16mb"


class Unable(Exception):
    """This machine gives no such rights, or lacks a program; says which."""


def command_that_enters() -> list[str]:
    """What runs a command in namespaces of its own, which end with it, and it with its caller."""
    own = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        own += ["--user", "--map-root-user"]
    for program in ("setpriv", "unshare", "ip", "tc"):
        if shutil.which(program) is None:
            raise Unable(f"there is no {program}")
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
    """To be made by a process that command_that_enters() has started. `rate` as tc reads it, of a link each
    way; empty: as fast as the machine copies. `delay_us`: so long a frame takes through the switch, which
    then is `relay`, a program."""

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
            # A connection that was idle for a while keeps the window it had.
            _run(*inside, "bash", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle")
            _run(*inside, "ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
            _run(*inside, "ip", "addr", "add", f"{SUBNET}.{i + 1}/24", "dev", DEVICE)
            if rate:
                _limit(inside, DEVICE, rate)
                if delay_us == 0:  # a relay has no queue of its own: links up alone are limited
                    _limit([], f"to-{name}", rate)

    def _join_by_bridge(self) -> None:
        _run("ip", "link", "add", DEVICE, "type", "bridge")
        for name in self.names:
            _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", DEVICE, "netns", name)
            _run("ip", "link", "set", f"to-{name}", "mtu", str(MTU), "master", DEVICE, "up")
        _run("ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
        _run("ip", "addr", "add", f"{SUBNET}.254/24", "dev", DEVICE)

    def _join_by_relay(self, relay: pathlib.Path, delay_us: int) -> None:
        """A tap in every node and one here, whose other ends the relay has."""
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
        """What a launcher calls in the place of ssh: a node, and a command. `apart`: nodes also see no
        processes and no System V memory of each other, for MPIs that would find a short cut there."""
        more = " --ipc --pid --fork --kill-child --mount-proc" if apart else ""
        path = self.work / "agent"
        path.write_text('#!/bin/bash\n'
                        'while [[ $1 == -* ]]; do shift; done\n'
                        'node=$1; shift\n'
                        f'exec ip netns exec "$node" unshare --uts{more} bash -c "hostname $node; $*"\n')
        path.chmod(0o755)
        return path
