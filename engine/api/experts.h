// Experts moves the tokens of a mixture-of-experts layer: dispatch() sends each token's row to the
// experts that the router has chosen, on any rank, and combine() brings their results back.
//
//   auto experts =
//       Experts::create(me, {.experts = 64, .choices = 8, .row_elements = 4096}).value();
//   ...
//   experts.dispatch(tokens, indices, rows).throw_if_error();  // rows: room, filled by expert
//   BFloat16* row = rows.data();
//   for (std::size_t e = 0; e < experts.counts().size(); ++e) {
//     work(e, row, experts.counts()[e]);  // results in the places of the rows
//     row += experts.counts()[e] * 4096;
//   }
//   experts.combine(rows, weights, out).throw_if_error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/api/member.h"
#include "engine/api/typed_calls.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// All but `choices` must be equal on all ranks.
struct ExpertsOptions {
  // In all; a multiple of the number of ranks. Rank r has experts / ranks neighbouring experts.
  int experts = 0;
  int choices = 1;  // experts per token
  std::size_t row_elements = 0;
  DataType type = DataType::bf16;  // of tokens and results: a float of at most 32 bits
  // The most rows of an expert, from all ranks. Rows beyond it are dropped: of the highest ranks,
  // and there of the last tokens. 0: no limit.
  std::size_t capacity = 0;
};

// An Experts belongs to one rank and is used by the rank's thread; all ranks make the same calls in
// the same order, outside of groups. The member outlives it. The caller owns all buffers; the
// object keeps memory for the rows sent and received by its largest dispatch().
class Experts {
 public:
  // Errors: invalid_argument names the invalid option; out_of_memory.
  static Result<Experts> create(Member& me, const ExpertsOptions& options);

  // tokens: a row per token. indices[t * choices + c]: the expert of choice c of token t; -1: none.
  // rows: room for the rows that arrive. They lie without gaps in the order of this rank's experts,
  // for one expert in the order of ranks, tokens and choices; counts() has their numbers.
  //
  // Makes an all-gather of the counts, and an all-to-all. Errors: those of calls. If a rank's
  // arguments are invalid, or its room is too small, all ranks get invalid_argument, no row moves,
  // and the communicator stays usable.
  template <Contiguous In, Writable Out>
  Status dispatch(const In& tokens, std::span<const std::int32_t> indices, Out&& rows) {
    return dispatch(buffer_of(input_of(tokens)), indices, buffer_of(output_of(rows)));
  }
  // out: row t = the sum over c of weights[t * choices + c] times the result of choice c of token
  // t, in this order, in f32, rounded once; choices without an expert and dropped choices add
  // nothing. weights: empty (all are 1), or as many as indices. results: a row for each row of the
  // latest dispatch(), at its place; once for each dispatch(). Makes an all-to-all. Errors: those
  // of calls; buffers of other sizes are refused on this rank only.
  template <Contiguous In, Writable Out>
  Status combine(const In& results, std::span<const float> weights, Out&& out) {
    return combine(buffer_of(input_of(results)), weights, buffer_of(output_of(out)));
  }

  // Untyped forms; tokens and results are only read.
  struct Buffer {
    void* elements = nullptr;
    std::size_t count = 0;
    DataType type = DataType::bf16;
  };
  Status dispatch(const Buffer& tokens, std::span<const std::int32_t> indices, const Buffer& rows);
  Status combine(const Buffer& results, std::span<const float> weights, const Buffer& out);

  // Of the latest dispatch(): the number of rows of each of this rank's experts, the positions in
  // `indices` whose rows were dropped, in ascending order, and the number of this rank's tokens.
  // Valid until the next dispatch().
  std::span<const std::size_t> counts() const { return counts_; }
  std::span<const std::size_t> dropped() const { return dropped_; }
  std::size_t tokens() const { return places_.size() / static_cast<std::size_t>(options_.choices); }

 private:
  Experts(Member& me, const ExpertsOptions& options);

  template <class T>
  static Buffer buffer_of(std::span<T> range) {
    return {const_cast<std::remove_const_t<T>*>(range.data()), range.size(), data_type_of<T>};
  }
  Status check(std::string_view name, const Buffer& buffer, std::size_t rows) const;
  Status check_dispatch(const Buffer& tokens, std::span<const std::int32_t> indices,
                        const Buffer& rows) const;
  Status exchange_counts(std::span<const std::int32_t> indices, std::size_t room, bool is_wrong);
  Status limit_rows();
  void place(std::span<const std::int32_t> indices);
  void regroup(const std::byte* from, std::byte* to, bool back) const;
  Status exchange(const std::byte* from, std::byte* to);
  void add_up_choices(const std::byte* here, std::span<const float> weights, std::byte* out) const;
  Status may_run(std::string_view call) const;
  Status no_memory() const;

  // Rows from a rank for an expert.
  std::size_t& rows_of(std::size_t rank, std::size_t expert) {
    return table_[rank * (experts_ + 1) + expert];
  }
  std::size_t rows_of(std::size_t rank, std::size_t expert) const {
    return table_[rank * (experts_ + 1) + expert];
  }

  Member* me_;
  ExpertsOptions options_;
  std::size_t ranks_, experts_, here_, row_bytes_;
  std::vector<std::size_t> table_;   // per rank: rows for each expert, and room for arriving rows
  std::vector<std::size_t> pairs_;   // elements between ranks, [from * ranks + to]
  std::vector<std::size_t> counts_;  // by expert of this rank
  std::vector<std::size_t> dropped_;
  std::vector<std::size_t> places_;  // by choice: see place()
  std::size_t sent_ = 0;             // rows for experts of other ranks
  std::vector<std::byte> by_rank_;   // rows from other ranks, in the order of ranks
  std::vector<std::byte> at_home_;   // rows for other ranks, in the order of experts
  bool is_open_ = false;             // a dispatch() has succeeded
};

}  // namespace rankine
