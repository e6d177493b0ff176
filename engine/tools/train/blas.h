// Products by a BLAS that is found when the program asks for it. Nothing is linked, and nothing
// need be installed.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace rankine::tools {

class Blas {
 public:
  // A shared library with the C interface (cblas_sgemm), which stays open. What Debian calls
  // libblas.so.3 is the BLAS that is installed. One that has threads is told to have one: the ranks
  // are threads already. Errors: invalid_argument, which says what the loader does.
  static Result<Blas> open(const std::string& library);

  // c += a b, row-major: a has rows x depth elements, b depth x cols. In an order of its own.
  void add_product(const float* a, const float* b, int rows, int depth, int cols, float* c) const;

 private:
  using Multiply = void (*)(int order, int turned_a, int turned_b, int rows, int cols, int depth,
                            float factor, const float* a, int width_a, const float* b, int width_b,
                            float kept, float* c, int width_c);
  explicit Blas(Multiply multiply) : multiply_(multiply) {}
  Multiply multiply_;
};

// From now on products of f32 (matrix.h) are its. Before there are threads that multiply.
void use_blas(const Blas& blas);
const Blas* blas_in_use();  // or nullptr: loops of ours

}  // namespace rankine::tools
