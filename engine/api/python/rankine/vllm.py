"""A platform of vLLM: its CPU platform, whose ranks communicate through groups of rankine.torch in place
of gloo and of vLLM's shared memory. vLLM takes it where it would take its CPU platform, unless
VLLM_PLUGINS names other plugins. Ranks are processes of one machine."""

from __future__ import annotations

from vllm.platforms import cpu_platform_plugin
from vllm.platforms.cpu import CpuPlatform

import rankine.torch  # registers the backend


class Platform(CpuPlatform):
    dist_backend = "rankine"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return "rankine._vllm_communicator.Communicator"


def plugin() -> str | None:
    """The entry point: names the platform if this vLLM is for CPUs."""
    return "rankine.vllm.Platform" if cpu_platform_plugin() == "vllm.platforms.cpu.CpuPlatform" else None
