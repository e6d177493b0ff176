// One collective call as data: the input of each rank, and its expected output, computed element by
// element from the definition of the collective, without any schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
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
  // All-to-all with displacements: blocks in reverse order, with gaps between.
  bool displaced = false;
};

std::string to_string(const CollectiveCase& test);

// The case with this number of a sweep: type, operation, root, peer and alignment change from
// number to number.
CollectiveCase numbered_case(const Algorithm& algorithm, int ranks, std::size_t count,
                             std::size_t number, bool in_place, const CallOptions& options);

// The output of a broadcast, an all-reduce or an all-gather, computed once because all ranks have
// equal outputs. Empty for the other collectives.
std::vector<std::byte> common_result(const CollectiveCase& test);

// A rank's buffers, with guards around them, filled for a case. Reused from case to case.
class CaseBuffers {
 public:
  // `common`: common_result() of the case; if empty, fill() computes the output.
  void fill(const CollectiveCase& test, Rank rank, std::span<const std::byte> common = {});
  const void* in() const { return bytes_.data() + in_; }
  void* out() { return bytes_.data() + out_; }
  std::span<std::byte> bytes() { return bytes_; }  // with the guards
  // The displacements of the case, or nullptr.
  const Displacements* displacements() const {
    return in_places_.empty() ? nullptr : &displacements_;
  }
  // Check after a success. Empty, or the first wrong byte: checks the output, the input (unless the
  // output replaces it) and the bytes around them.
  std::string check() const;
  // Check after a refused call: no byte may have changed.
  std::string check_untouched() const;
  // Check after a failed call: no byte outside the output may have changed.
  std::string check_around() const;

 private:
  std::string difference_to(const std::vector<std::byte>& wanted, bool but_output) const;

  std::vector<std::byte> bytes_, before_, wanted_;
  std::size_t in_ = 0, out_ = 0, out_bytes_ = 0;
  std::vector<std::size_t> in_places_, out_places_;
  Displacements displacements_;
};

Call call_of(const CollectiveCase& test, CaseBuffers& buffers);

// Fills the buffers, makes the call and checks the result. Empty, or the fault as text. `room`: if
// not empty, memory for the buffers and guards of the call. `common` as in fill().
std::string run_case(Member& me, const CollectiveCase& test, CaseBuffers& buffers,
                     std::span<std::byte> room = {}, std::span<const std::byte> common = {});

}  // namespace rankine
