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
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/api/member.h"
#include "engine/api/typed_calls.h"
#include "engine/base/status.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// All but `choices` must be equal on all ranks.
struct ExpertsOptions {
  // In all; a multiple of the number of ranks. Rank r has experts / ranks neighbouring experts.
  int experts = 0;
  int choices = 1;  // experts per token
  std::size_t row_elements = 0;
  DataType type = DataType::bf16;  // of tokens and their rows: a float of at most 32 bits
  // The most rows of an expert, from all ranks. Rows beyond it are dropped: of the highest ranks,
  // and there of the last tokens. 0: no limit.
  std::size_t capacity = 0;
  // Of results and their sums, as `type`: f8e4m3 tokens may return as bf16. nullopt: `type`.
  std::optional<DataType> result_type{};
};

// An Experts belongs to one rank and is used by the rank's thread; all ranks make the same calls in
// the same order, outside of groups. The member outlives it. The caller owns all buffers. A rank
// reads the others' tokens and results in place, once; among processes it does so if they lie in
// payloads (Member::allocate), and other rows pass through some MiB of shared memory, in turns. The
// object keeps lists of the choices of its largest dispatch(): later ones plan nothing and allocate
// nothing, whatever their counts.
class Experts {
 public:
  // Errors: invalid_argument names the invalid option; out_of_memory.
  static Result<Experts> create(Member& me, const ExpertsOptions& options);

  // tokens: a row per token. indices[t * choices + c]: the expert of choice c of token t; -1: none.
  // rows: room for the rows that arrive. They lie without gaps in the order of this rank's experts,
  // for one expert in the order of ranks, tokens and choices; counts() has their numbers. `rows`
  // overlaps no rank's tokens.
  //
  // Makes an all-gather of the counts and a barrier, on a modelled network also an all-to-all of
  // the rows, for their time. Errors: those of calls. If a rank's
  // arguments are invalid, or its room is too small, all ranks get invalid_argument, no row moves,
  // and the communicator stays usable.
  template <Contiguous In, Writable Out>
  Status dispatch(const In& tokens, std::span<const std::int32_t> indices, Out&& rows) {
    return dispatch(buffer_of(input_of(tokens)), indices, buffer_of(output_of(rows)));
  }
  // out: row t = the sum over c of weights[t * choices + c] times the result of choice c of token
  // t, in this order, in f32, rounded once; choices without an expert and dropped choices add
  // nothing. weights: empty (all are 1), or as many as indices. results: a row for each row of the
  // latest dispatch(), at its place; once for each dispatch(). `out` overlaps no rank's results.
  // Makes two barriers, on a modelled network also an all-to-all. Errors: those of calls; buffers
  // of other sizes are refused on this rank only.
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
  std::size_t tokens() const { return places_.size() / choices_; }

 private:
  Experts(Member& me, const ExpertsOptions& options);

  template <class T>
  static Buffer buffer_of(std::span<T> range) {
    return {const_cast<std::remove_const_t<T>*>(range.data()), range.size(), data_type_of<T>};
  }
  Status check(std::string_view name, const Buffer& buffer, DataType type, std::size_t rows) const;
  Status check_dispatch(const Buffer& tokens, std::span<const std::int32_t> indices,
                        const Buffer& rows) const;
  void number_choices(std::span<const std::int32_t> indices);
  Status exchange_counts(std::size_t room, bool is_wrong);
  Status limit_rows();
  void place();
  Status show_tokens(std::size_t turn, const std::byte* tokens);
  Status show_results(std::size_t turn, const std::byte* results);
  void gather(std::size_t turn, std::byte* rows);
  void add_up(std::size_t turn, std::span<const float> weights, std::byte* out);
  Status make(const Call& call, RoundObserver* observer = nullptr);
  Status meet();
  template <class Work>
  Status meet(const Work& work);
  Status take_time(bool back);
  bool is_in_reach(const std::byte* from, std::size_t bytes) const;
  Status make_room(Payload<std::byte>& memory, std::size_t bytes);
  Status may_run(std::string_view call) const;
  Status no_memory() const;

  // What a rank shows the others, in its `shown_`.
  struct Shown {
    std::uintptr_t* tokens;  // address of the row of the turn's first token
    // [rank * here + expert]: address of the first result of that rank; only those of the turn are
    // there.
    std::uintptr_t* results;
    std::uint32_t* first;   // by expert: the turn's first choice in `chosen`; then the end
    std::uint32_t* chosen;  // tokens by expert, counted from the turn's first one
  };
  Shown shown_at(std::uintptr_t address) const;

  // Rows from a rank for an expert; behind them: room for arriving rows, turns, address of Shown.
  std::size_t& rows_of(std::size_t rank, std::size_t expert) {
    return table_[rank * (experts_ + 3) + expert];
  }

  struct Place {
    std::int32_t expert;   // -1: none, or dropped
    std::uint32_t number;  // among this rank's rows for the expert
  };

  Member* me_;
  ExpertsOptions options_;
  std::size_t self_, ranks_, experts_, here_, choices_, row_bytes_, result_bytes_;
  std::size_t turn_tokens_;    // of this rank in a turn
  bool stages_;                // ranks are processes
  std::uint64_t fingerprint_;  // of the options
  WeightedKernel sum_;
  std::size_t turns_ = 0;
  std::vector<std::size_t> table_;   // by rank: see rows_of()
  std::vector<std::size_t> starts_;  // [rank * here + expert]: first row there of arriving rows
  std::vector<std::size_t> taken_;   // as starts_, by turn: rows that have arrived before
  std::vector<std::size_t> counts_;  // by expert of this rank
  std::vector<std::size_t> dropped_;
  std::vector<Place> places_;  // by choice
  std::vector<std::uint32_t> next_;
  std::vector<Shown> all_shown_;      // by rank
  std::vector<const void*> sources_;  // of a token's sum, with their weights
  std::vector<float> weights_;
  Payload<std::byte> shown_, staged_;
  bool is_open_ = false;  // a dispatch() has succeeded
};

}  // namespace rankine
