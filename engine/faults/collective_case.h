// One collective call as data: what every rank brings, and what it must end with, worked out
// element by element from the meaning of the collective alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/communicator.h"

namespace rankine {

struct CollectiveCase {
  Collective collective = Collective::all_reduce;
  int ranks = 2;
  std::size_t count = 0;  // as in Call
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  Rank root = 0, peer = 0;
  bool in_place = false;
  std::size_t skew = 0;  // bytes by which the buffers miss a multiple of 64
  std::uint64_t seed = 0;
  CallOptions options{};
  // An all-to-all apart: the last block first, with gaps between.
  bool displaced = false;
};

std::string to_string(const CollectiveCase& test);

// What every rank ends with alike, worked out once for all of them: of a broadcast, an all-reduce
// or an all-gather. Empty for the others, of which each has its own.
std::vector<std::byte> common_result(const CollectiveCase& test);

// A rank's buffers, with guards around them, filled for a case. Reused from case to case.
class CaseBuffers {
 public:
  // `common`: common_result() of the case, or empty; then it is worked out here.
  void fill(const CollectiveCase& test, Rank rank, std::span<const std::byte> common = {});
  const void* in() const { return bytes_.data() + in_; }
  void* out() { return bytes_.data() + out_; }
  std::span<std::byte> bytes() { return bytes_; }  // with the guards
  // Of the case, or nullptr.
  const Displacements* displacements() const {
    return in_places_.empty() ? nullptr : &displacements_;
  }
  // Empty, or which byte is not as it must be: the output, all that lies around it, and the input
  // (where it is not the output).
  std::string check() const;
  // The same for a call that was refused: all is as it was before.
  std::string check_untouched() const;
  // The same for a call that failed: all but the output is as it was before.
  std::string check_around() const;

 private:
  std::string difference_to(const std::vector<std::byte>& wanted, bool but_output) const;

  std::vector<std::byte> bytes_, before_, wanted_;
  std::size_t in_ = 0, out_ = 0, out_bytes_ = 0;
  std::vector<std::size_t> in_places_, out_places_;
  Displacements displacements_;
};

Call call_of(const CollectiveCase& test, CaseBuffers& buffers);

// Fills, calls and checks. Empty, or what went wrong. `room`, where not empty, is where the buffers
// of the call lie, and what is around them. `common` as in fill().
std::string run_case(Member& me, const CollectiveCase& test, CaseBuffers& buffers,
                     std::span<std::byte> room = {}, std::span<const std::byte> common = {});

}  // namespace rankine
