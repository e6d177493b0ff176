#include "engine/run/sharing.h"

#include <string>

namespace rankine {
namespace {

RankBuffers buffers_of(const Plan& plan, const Waiter& waiter, Rank r) noexcept {
  const Entry& offered = waiter.rank_control->entry(r, waiter.call);
  const RankPlan& sizes = plan.rank[static_cast<std::size_t>(r)];
  // Acquire: pairs with offer_buffers().
  return {{offered.input.load(std::memory_order_acquire), sizes.input_bytes},
          {offered.output.load(std::memory_order_acquire), sizes.output_bytes}};
}

// True if a rank is in our call.
bool is_in_same_call(const Waiter& waiter, Rank peer) noexcept {
  CallRecord& record = waiter.rank_control->record(peer);
  // Sequentially consistent: pairs with the store of check_no_alias_of_all(). Acquire: pairs with
  // announce().
  return record.inside.load(std::memory_order_seq_cst) &&
         record.number.load(std::memory_order_acquire) == waiter.call;
}

// True if a rank's offer for our call is still in its entry.
bool still_offers(const Waiter& waiter, Rank peer) noexcept {
  // Acquire: pairs with announce().
  return waiter.rank_control->record(peer).number.load(std::memory_order_acquire) - waiter.call <=
         1;
}

}  // namespace

std::string to_string(const Buffer& buffer) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (auto value = reinterpret_cast<std::uintptr_t>(buffer.begin); value != 0; value >>= 4) {
    hex.insert(hex.begin(), kDigits[value & 15]);
  }
  return "(0x" + (hex.empty() ? "0" : hex) + ", " + std::to_string(buffer.bytes) + " bytes)";
}

void report_sharing(RankControl& rank_control, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept {
  rank_control.abort(make_error(Code::mismatch, [&] {
    const auto say = [&](const char* my_name, const Buffer& my_part, const char* their_name,
                         const Buffer& their_part) {
      return std::string(my_name) + " of " + rank_control.name(rank) + " " + to_string(my_part) +
             " and " + their_name + " of " + rank_control.name(peer) + " " + to_string(their_part) +
             " overlap; an out buffer must not overlap any buffer of another rank";
    };
    if (overlap(mine.out, theirs.out)) return say("out", mine.out, "out", theirs.out);
    if (overlap(mine.out, theirs.in)) return say("out", mine.out, "in", theirs.in);
    return say("in", mine.in, "out", theirs.out);
  }));
}

bool check_no_alias(const Plan& plan, const Waiter& waiter, Rank peer) noexcept {
  RankControl& rank_control = *waiter.rank_control;
  // True if both ranks are or were inside the call at once, and the peer's offer is known.
  const auto meets_us = [&] {
    return plan.all_meet ? still_offers(waiter, peer) : is_in_same_call(waiter, peer);
  };
  if (meets_us()) {
    const RankBuffers mine = buffers_of(plan, waiter, waiter.rank);
    const RankBuffers theirs = buffers_of(plan, waiter, peer);
    if (!share(mine, theirs)) return true;
    if (meets_us()) {
      report_sharing(rank_control, waiter.rank, mine, peer, theirs);
      return false;
    }
  }
  // The peer may have left because it detected the sharing itself.
  return !rank_control.aborted();
}

bool check_no_alias_of_all(const Plan& plan, const Waiter& waiter) noexcept {
  // If two ranks each store this and then look at the other, the later one finds the store: pairs
  // with is_in_same_call().
  waiter.rank_control->record(waiter.rank).inside.store(true, std::memory_order_seq_cst);
  for (Rank q = 0; q < plan.ranks; ++q) {
    if (q != waiter.rank && is_in_same_call(waiter, q) && !check_no_alias(plan, waiter, q))
      return false;
  }
  return true;
}

}  // namespace rankine
