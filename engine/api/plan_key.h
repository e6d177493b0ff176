// What distinguishes one plan from another: every field of a call on which its plan depends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/call_parameters.h"
#include "engine/base/splitmix.h"

namespace rankine {

// A view of a call, which it must not outlive. Made for every call: the numbers lie packed side by
// side, and names, lists, an aggregation and a radix, which few calls have, are looked at only
// where there are some. Arguments that a collective does not take make no difference.
class PlanKey {
 public:
  [[gnu::always_inline]] explicit PlanKey(const Call& call) noexcept : call_(&call) {
    const CallOptions& options = call.options;
    const bool knows_in_place =
        call.collective == Collective::all_reduce || call.collective == Collective::all_to_all;
    const bool in_place = knows_in_place && call.in == call.out && call.in != nullptr;
    const bool shared = options.shared_payloads && call.collective != Collective::barrier;
    numbers_[0] = call.count;
    numbers_[1] = numbers_[2] = 0;
    numbers_[3] = static_cast<std::uint64_t>(call.collective) |
                  static_cast<std::uint64_t>(call.type) << 8 |
                  static_cast<std::uint64_t>(call.op) << 16 | std::uint64_t{in_place} << kInPlace |
                  std::uint64_t{shared} << kShared;
    const bool said = options.transport.has_value() | options.order.has_value() |
                      (options.epilogue != nullptr) | (call.user_op != nullptr);
    if ((lists(call) | options.algorithm.size() | pair(call.root, call.peer) |
         pair(options.segments, options.group) | std::uint64_t{said}) != 0) {
      add_what_few_calls_have();
    }
  }

  const Call& call() const noexcept { return *call_; }
  // What has rows to finish has neither root nor peer.
  Rank root() const noexcept { return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] >> 32); }
  Rank peer() const noexcept {
    return has(kRows) ? 0 : static_cast<Rank>(numbers_[1] & 0xffffffff);
  }
  std::size_t row_elements() const noexcept { return has(kRows) ? numbers_[1] : 0; }
  // Where it makes a difference to the plan.
  bool in_place() const noexcept { return has(kInPlace); }

  bool shared_payloads() const noexcept { return has(kShared); }

  [[gnu::always_inline]] bool operator==(const PlanKey& other) const noexcept {
    return ((numbers_[0] ^ other.numbers_[0]) | (numbers_[1] ^ other.numbers_[1]) |
            (numbers_[2] ^ other.numbers_[2]) | (numbers_[3] ^ other.numbers_[3])) == 0 &&
           (!has(kNamed) || call_->options.algorithm == other.call_->options.algorithm) &&
           (!has(kLists) || same_lists(other));
  }
  [[gnu::always_inline]] std::uint64_t hash() const noexcept {
    std::uint64_t h = numbers_[0] * kSplitMixStep ^ numbers_[1] * 0xbf58476d1ce4e5b9u ^
                      numbers_[2] * 0x94d049bb133111ebu ^ numbers_[3] * 0xd6e8feb86659fd93u;
    if (has(kNamed)) h ^= hash_of(call_->options.algorithm);
    if (has(kLists)) h = with_lists(h);
    return h ^ h >> 32;
  }

 private:
  static constexpr int kOrder = 36, kInPlace = 40, kNamed = 41, kLists = 42, kCommutative = 43,
                       kElement = 44, kRows = 57, kShared = 58;

  // Whether there are lists, or numbers that go with them.
  static std::uint64_t lists(const Call& call) noexcept {
    const CallOptions& options = call.options;
    return call.counts.size() | options.dims.size() | options.skips.size() | options.levels.size() |
           static_cast<std::uint32_t>(options.aggregation | options.radix);
  }
  [[gnu::noinline]] void add_what_few_calls_have() noexcept {
    const Call& call = *call_;
    const CallOptions& options = call.options;
    const std::uint64_t transport =
        options.transport ? 1 + static_cast<std::uint64_t>(*options.transport) : 0;
    // Four bits, and no value that there is not shall look like one that there is.
    const std::uint64_t order =
        options.order ? std::min<std::uint64_t>(15, 1 + static_cast<std::uint64_t>(*options.order))
                      : 0;
    numbers_[1] = options.epilogue != nullptr
                      ? options.epilogue->row_elements
                      : pair(call.root != 0 && has_root(call.collective) ? call.root : 0,
                             call.collective == Collective::send_recv ? call.peer : 0);
    numbers_[2] = pair(options.segments, options.group);
    numbers_[3] |= transport << 24 | order << kOrder |
                   std::uint64_t{!options.algorithm.empty()} << kNamed |
                   std::uint64_t{lists(call) != 0} << kLists |
                   std::uint64_t{options.epilogue != nullptr} << kRows;
    if (call.user_op != nullptr) {
      numbers_[3] |= std::uint64_t{call.user_op->commutative} << kCommutative |
                     static_cast<std::uint64_t>(call.user_op->element_bytes) << kElement;
    }
  }

  bool has(int flag) const noexcept { return (numbers_[3] >> flag & 1) != 0; }
  static std::uint64_t pair(int a, int b) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  // Of its length and three of its letters: names differ in these, and where not, comparing tells.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    const auto letter = [name](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(name[i]));
    };
    const std::size_t n = name.size();
    return (n << 24 | letter(0) << 16 | letter(n / 2) << 8 | letter(n - 1)) * kSplitMixStep;
  }
  template <class T>
  static bool same(std::span<const T> a, std::span<const T> b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
  bool same_lists(const PlanKey& other) const noexcept {
    const CallOptions &a = call_->options, &b = other.call_->options;
    return same(call_->counts, other.call_->counts) && same(a.dims, b.dims) &&
           same(a.skips, b.skips) && same(a.levels, b.levels) && a.aggregation == b.aggregation &&
           a.radix == b.radix;
  }
  std::uint64_t with_lists(std::uint64_t h) const noexcept {
    const auto list = [&h](const auto& numbers) {
      h = mixed(h, numbers.size());
      for (const auto n : numbers) h = mixed(h, static_cast<std::uint64_t>(n));
    };
    const CallOptions& options = call_->options;
    list(call_->counts);
    list(options.dims);
    list(options.skips);
    list(options.levels);
    return mixed(h, pair(options.aggregation, options.radix));
  }

  const Call* call_;
  // Count; root and peer, or elements of a row; segments, group; kinds and flags.
  std::uint64_t numbers_[4];
};

// A key of a call of its own, with names and lists of its own.
class OwnedKey {
 public:
  explicit OwnedKey(const PlanKey& key)
      : algorithm_(key.call().options.algorithm),
        counts_(key.call().counts.begin(), key.call().counts.end()),
        lists_(params_of(key.call().options, 0)),
        hash_(key.hash()),
        call_(key.call()),
        view_(key) {
    call_.counts = counts_;
    call_.options.algorithm = algorithm_;
    set_parameters(lists_, call_.options);
    view_ = PlanKey(call_);
    // They need not live so long, and the view knows their sizes.
    call_.user_op = nullptr;
    call_.options.epilogue = nullptr;
  }
  OwnedKey(const OwnedKey&) = delete;
  OwnedKey& operator=(const OwnedKey&) = delete;

  const PlanKey& view() const noexcept { return view_; }
  std::uint64_t hash() const noexcept { return hash_; }
  std::size_t bytes() const noexcept {  // beyond its own size
    std::size_t bytes = algorithm_.capacity() + counts_.capacity() * sizeof(std::size_t);
    for (const CallParameter& option : kCallParameters) {
      if (option.list != nullptr) bytes += (call_.options.*option.list).size_bytes();
    }
    return bytes;
  }

 private:
  const std::string algorithm_;
  const std::vector<std::size_t> counts_;
  const Params lists_;
  const std::uint64_t hash_;
  Call call_;
  PlanKey view_;
};

}  // namespace rankine
