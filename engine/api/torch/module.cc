// The Python extension module rankine._torch. rankine/torch.py imports it after torch.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "engine/api/torch/process_group.h"

// NOLINTNEXTLINE: the macro's parameter is not used under every name
PYBIND11_MODULE(_torch, module) {
  using rankine::torch_backend::GroupBase;
  using rankine::torch_backend::ProcessGroup;
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
         std::chrono::milliseconds timeout) -> c10::intrusive_ptr<GroupBase> {
        return c10::make_intrusive<ProcessGroup>(*store, rank, size, timeout);
      },
      pybind11::call_guard<pybind11::gil_scoped_release>(), pybind11::arg("store"),
      pybind11::arg("rank"), pybind11::arg("size"), pybind11::arg("timeout"));
  // The PyTorch version that the module was compiled for.
  module.attr("torch_version") = TORCH_VERSION;
}
