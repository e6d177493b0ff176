#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>

#include "engine/lab/train/matrix.h"

namespace rankine::tools {
namespace {

std::optional<Blas>& used() {
  static std::optional<Blas> blas;
  return blas;
}

}  // namespace

Result<Blas> Blas::open(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return invalid_argument(fmt::format("{}; Debian has one in libopenblas0", dlerror()));
  }
  const auto multiply = reinterpret_cast<Multiply>(dlsym(opened, "cblas_sgemm"));
  if (multiply == nullptr) {
    const std::string why = dlerror();
    dlclose(opened);
    return invalid_argument(why);
  }
  if (void* const threads = dlsym(opened, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(threads)(1);
  }
  return Blas(multiply);
}

void Blas::add_product(const float* a, const float* b, int rows, int depth, int cols,
                       float* c) const {
  if (rows == 0 || cols == 0 || depth == 0) return;
  constexpr int kRowMajor = 101, kAsItIs = 111;
  multiply_(kRowMajor, kAsItIs, kAsItIs, rows, cols, depth, 1, a, depth, b, cols, 1, c, cols);
}

void use_blas(const Blas& blas) { used() = blas; }
const Blas* blas_in_use() { return used() ? &*used() : nullptr; }

}  // namespace rankine::tools
