// An epilogue that copies what it is given: rows that were not final then differ from the output at
// the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/run/user_functions.h"

namespace rankine {

class Witness {
 public:
  Witness(std::size_t rows, std::size_t row_elements, std::size_t element_bytes)
      : epilogue{see, this, row_elements},
        row_bytes_(row_elements * element_bytes),
        seen_(rows * row_bytes_),
        times_(rows) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  const Epilogue epilogue;

  // Whether all rows were what they are in the output now.
  bool saw(const void* out) const {
    return seen_.empty() || std::memcmp(seen_.data(), out, seen_.size()) == 0;
  }
  bool saw_each(int times) const {
    return std::all_of(times_.begin(), times_.end(), [times](int n) { return n == times; });
  }
  bool saw_each_once() const { return saw_each(1); }

 private:
  static void see(const void* rows, std::size_t first, std::size_t count, void* context) {
    Witness& me = *static_cast<Witness*>(context);
    std::memcpy(me.seen_.data() + first * me.row_bytes_, rows, count * me.row_bytes_);
    for (std::size_t i = 0; i < count; ++i) ++me.times_[first + i];
  }

  const std::size_t row_bytes_;
  std::vector<std::byte> seen_;
  std::vector<int> times_;  // by row
};

}  // namespace rankine
