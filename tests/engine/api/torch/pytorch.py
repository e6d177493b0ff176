"""PyTorch's own tests of a backend, DistributedTest: rankine passes those that gloo passes, except _DIFFERENT, and MPI's of all-to-all."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest

import torch
import torch.testing._internal.common_distributed as common

import rankine.torch

_DIFFERENT = {
    "test_barrier_timeout_full_group": "gloo's text of a timeout",
    "test_ddp_logging_data_cpu": "PyTorch calls each backend in Python 'custom'",
    "test_irecv": "is_completed()",
    "test_isend": "is_completed()",
    "test_isend_autograd_profiler": "is_completed()",
    "test_isend_torch_profiler": "is_completed()",
    "test_monitored_barrier_gloo": "gloo's text of a timeout",
    "test_monitored_barrier_gloo_rank_0_timeout": "gloo's text of a timeout",
    "test_monitored_barrier_gloo_subgroup": "gloo's text of a timeout",
    "test_sparse_all_reduce_sum": "sparse tensors",
}


def tests(folder: str) -> unittest.TestSuite:
    """The tests of PyTorch's module, with rankine for gloo."""
    os.environ.update(BACKEND="rankine", WORLD_SIZE=sys.argv[1], TEMP_DIR=folder)
    (pathlib.Path(folder) / "barrier").mkdir()
    common.DistTestCases.backend_feature["plugin"].add("rankine")
    for name in ("ddp", "subgroup"):
        common.DistTestCases.backend_feature[name].add("rankine")
    common.skip_if_no_gpu = unittest.skip("it needs GPUs")
    spec = importlib.util.find_spec("torch.testing._internal.distributed.distributed_test")
    text = pathlib.Path(spec.origin).read_text()
    text = re.sub(r'BACKEND (!=|==) "(?:gloo|mpi)"', r'BACKEND \1 "rankine"', text).replace('available({"gloo"})', 'available({"rankine"})')
    sys.modules[spec.name] = module = types.ModuleType(spec.name)
    exec(compile(text, spec.origin, "exec", dont_inherit=True), module.__dict__)

    class Test(module.TestDistBackend, module.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return unittest.defaultTestLoader.loadTestsFromTestCase(Test)


class Result(unittest.TextTestResult):
    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        passed.append(test._testMethodName)


passed: list[str] = []
with tempfile.TemporaryDirectory() as folder:
    result = unittest.TextTestRunner(resultclass=Result).run(tests(folder))
failed = {test._testMethodName: text for test, text in result.failures + result.errors}
for name, text in failed.items():
    print(name, text if name not in _DIFFERENT else _DIFFERENT[name])
print(len(passed), "passed", len(failed), "failed", len(result.skipped), "skipped")
sys.exit(set(failed) != set(_DIFFERENT) or len(passed) < 80)
