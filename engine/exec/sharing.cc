#include "engine/exec/sharing.h"

#include <string>

namespace rankine {

std::string to_string(const Buffer& buffer) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (auto value = reinterpret_cast<std::uintptr_t>(buffer.begin); value != 0; value >>= 4) {
    hex.insert(hex.begin(), kDigits[value & 15]);
  }
  return "(0x" + (hex.empty() ? "0" : hex) + ", " + std::to_string(buffer.bytes) + " bytes)";
}

RankBuffers buffers_of(Crossbar& crossbar, const Plan& plan, Rank r) noexcept {
  Entry& entry = crossbar.entry(r);
  const RankPlan& of_rank = plan.rank[static_cast<std::size_t>(r)];
  // Acquire: what keep_apart() looks at next is looked at after these.
  return {{entry.input.load(std::memory_order_acquire), of_rank.input_bytes},
          {entry.output.load(std::memory_order_acquire), of_rank.output_bytes}};
}

void report_sharing(Crossbar& crossbar, Rank rank, const RankBuffers& mine, Rank peer,
                    const RankBuffers& theirs) noexcept {
  crossbar.abort(make_error(Code::mismatch, [&] {
    const auto say = [&](const char* my_name, const Buffer& my_part, const char* their_name,
                         const Buffer& their_part) {
      return std::string(my_name) + " of rank " + std::to_string(rank) + " " +
             to_string(my_part) + " and " + their_name + " of rank " + std::to_string(peer) + " " +
             to_string(their_part) +
             " overlap; what a rank gets must lie apart from all buffers of the others";
    };
    if (overlap(mine.out, theirs.out)) return say("out", mine.out, "out", theirs.out);
    if (overlap(mine.out, theirs.in)) return say("out", mine.out, "in", theirs.in);
    return say("in", mine.in, "out", theirs.out);
  }));
}

bool keep_apart(const Plan& plan, const Waiter& waiter, Rank peer) noexcept {
  Crossbar& crossbar = *waiter.crossbar;
  CallRecord& record = crossbar.record(peer);
  // Sequentially consistent: pairs with the store of all_keep_apart().
  if (!record.inside.load(std::memory_order_seq_cst)) return true;
  // Acquire: pairs with announce(); the entry's addresses are those of that call or a later one.
  if (record.number.load(std::memory_order_acquire) != waiter.call) return true;
  const RankBuffers mine = buffers_of(crossbar, plan, waiter.rank);
  const RankBuffers theirs = buffers_of(crossbar, plan, peer);
  if (!share(mine, theirs)) return true;
  // Both ranks are inside the call now, so that both buffers live. Acquire: pairs with end().
  if (!record.inside.load(std::memory_order_acquire) ||
      record.number.load(std::memory_order_relaxed) != waiter.call) {
    return true;
  }
  report_sharing(crossbar, waiter.rank, mine, peer, theirs);
  return false;
}

bool all_keep_apart(const Plan& plan, const Waiter& waiter) noexcept {
  // Of two ranks that store this and then look at the other's, the later one finds it: pairs with
  // keep_apart().
  waiter.crossbar->record(waiter.rank).inside.store(true, std::memory_order_seq_cst);
  for (Rank q = 0; q < plan.ranks; ++q) {
    if (q != waiter.rank && !keep_apart(plan, waiter, q)) return false;
  }
  return true;
}

}  // namespace rankine
