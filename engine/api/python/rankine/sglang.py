"""A platform of SGLang: its CPU engine, with process groups of rankine.torch in place of gloo's. SGLang
takes it with SGLANG_USE_CPU_ENGINE=1. Ranks are processes of one machine."""

from __future__ import annotations

import os

from sglang.srt.platforms.cpu import CpuSRTPlatform

import rankine.torch  # registers the backend


class Platform(CpuSRTPlatform):
    def get_torch_distributed_backend_str(self) -> str:
        return "rankine"


def plugin() -> str | None:
    """The entry point: names the platform if SGLang's CPU engine is chosen."""
    return "rankine.sglang.Platform" if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1" else None
