#include "engine/api/active.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/api/split.h"
#include "engine/api/threads.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

constexpr std::size_t kPart = 4096;        // bytes of an input that are added up at once
constexpr std::int64_t kLookNs = 500'000;  // between looks for lost ranks

bool is_by_ranks(Order order) { return order <= Order::size_invariant; }

// The places of blocks, in blocks from the beginning of a buffer, for natural block b.
int place_in_input(Collective c, Block b, int ranks) {
  return c == Collective::all_to_all                              ? b % ranks
         : c == Collective::all_gather || c == Collective::gather ? 0
                                                                  : b;
}
int place_in_output(Collective c, Block b, int ranks) {
  return c == Collective::all_to_all                                   ? b / ranks
         : c == Collective::reduce_scatter || c == Collective::scatter ? 0
                                                                       : b;
}

bool is_from_root(Collective c) {
  return c == Collective::broadcast || c == Collective::scatter || c == Collective::send_recv;
}
// The number of blocks of an input, where there is one.
int input_blocks(Collective c, int ranks) {
  return place_in_input(c, natural_blocks(c, ranks) - 1, ranks) + 1;
}
CollectiveSpec spec_of(const Call& call, int ranks) {
  return {.collective = call.collective,
          .ranks = ranks,
          .blocks = natural_blocks(call.collective, ranks),
          .root = call.root,
          .peer = call.peer};
}

std::size_t words_of(std::size_t bytes) { return (bytes + 7) / 8; }
std::size_t block_bytes(const Call& call) { return call.count * size_of(call.type); }

}  // namespace

struct ActiveRanks::Inside {
  Inside(std::unique_ptr<Member> member, RankControl& all, const ActiveRanksOptions& options)
      : group(std::move(member)),
        rank_control(all),
        rank(group->rank()),
        ranks(all.ranks()),
        wait_ns(saturated_ns(1e3 * static_cast<double>(options.wait.count()))),
        bytes(options.bytes),
        // Each block begins at a word.
        room(8 * (words_of(options.bytes) + static_cast<std::size_t>(ranks))),
        waited(static_cast<std::size_t>(ranks)),
        inputs(waited.size()),
        parts(waited.size() * kPart),
        sources(waited.size()) {
    std::iota(waited.begin(), waited.end(), 0);
  }

  Status check(const Call& call) const;
  Agreement::Verdict judge(Rank q) const;
  // False: interrupted.
  bool wait(Agreement& agreement) const;
  // The place of an input in the memory of rank q.
  Atomic<std::uint64_t>* input_of(Rank q, std::uint64_t step) const;
  void offer(const Call& call, std::uint64_t step) const;
  void collect(const Call& call, std::uint64_t step, std::span<const Rank> from);

  std::unique_ptr<Member> group;
  RankControl& rank_control;  // the group's
  const Rank rank;
  const int ranks;
  const std::int64_t wait_ns;
  const std::size_t bytes, room;
  std::vector<Rank> waited;
  // For collect(), by contributor: its input, a part of it, and the address of that.
  std::vector<const Atomic<std::uint64_t>*> inputs;
  std::vector<std::byte> parts;
  std::vector<const void*> sources;
};

ActiveRanks::ActiveRanks(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
ActiveRanks::~ActiveRanks() = default;
ActiveRanks::ActiveRanks(ActiveRanks&&) noexcept = default;
ActiveRanks& ActiveRanks::operator=(ActiveRanks&&) noexcept = default;
Rank ActiveRanks::rank() const { return inside_->rank; }
int ActiveRanks::ranks() const { return inside_->ranks; }

Result<ActiveRanks> ActiveRanks::create(Member& me, const ActiveRanksOptions& options) try {
  const CommunicatorShared& of = *me.state_->shared;
  if (of.forked()) return forked_status();
  if (options.wait.count() < 0) {
    return invalid_argument("wait is " + std::to_string(options.wait.count()) +
                            " us; allowed are 0 and more");
  }
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (options.bytes < 1 || options.bytes > kMost) {
    return invalid_argument("bytes is " + std::to_string(options.bytes) + "; allowed are 1 to " +
                            std::to_string(kMost));
  }
  if (of.clock != nullptr || of.ports > 0) {
    return invalid_argument(
        "the communicator has a modelled network or ports; allowed for active ranks are neither");
  }
  if (!is_by_ranks(of.order.value_or(Order::coherent))) {
    return invalid_argument("the communicator's order is " + std::string(name_of(*of.order)) +
                            "; allowed for active ranks are coherent to size_invariant");
  }
  auto group = me.shrink({.own_thread = true});
  if (!group.ok()) return group.status();
  CommunicatorShared& shared = *(*group)->state_->shared;
  auto inside = std::make_unique<Inside>(std::move(*group), shared.rank_control, options);
  const Rank self = inside->rank;
  // The memory stays when this rank leaves, because others may still read it.
  std::byte* memory = nullptr;
  if (shared.processes != nullptr) {
    auto taken = shared.processes->payloads(self).allocate(2 * inside->room);
    if (!taken.ok()) return taken.status();
    memory = *taken;
  } else {
    const std::lock_guard lock(shared.mutex);
    memory =
        shared.arenas[static_cast<std::size_t>(self)].allocate_array<std::byte>(2 * inside->room);
    if (memory == nullptr) throw std::bad_alloc();
  }
  // The exchange of this rank's first step publishes it.
  shared.rank_control.entry(self, 0).scratch = memory;
  return ActiveRanks(std::move(inside));
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [&] {
    return "no memory for active ranks with inputs of " + std::to_string(options.bytes) + " bytes";
  });
}

Status ActiveRanks::wait_for(std::span<const Rank> ranks) try {
  for (const Rank r : ranks) {
    if (r >= 0 && r < inside_->ranks) continue;
    return invalid_argument("wait_for: a rank is " + std::to_string(r) + "; allowed are 0 to " +
                            std::to_string(inside_->ranks - 1));
  }
  inside_->waited.assign(ranks.begin(), ranks.end());
  return {};
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [] { return "no memory for a list of ranks"; });
}

Status ActiveRanks::Inside::check(const Call& call) const {
  if (Status status = check_call(call, ranks); !status.ok()) return status;
  Call plain = call;
  plain.peer = 0;
  plain.options.tag = 0;
  plain.options.order.reset();
  if (!is_plain(plain)) {
    return invalid_argument(
        "the call has counts, a factor, an operation of the user, displacements, or options; "
        "allowed for active ranks are the options order and tag");
  }
  if (const Order order = call.options.order.value_or(Order::coherent); !is_by_ranks(order)) {
    return invalid_argument("order is " + std::string(name_of(order)) +
                            "; allowed for active ranks are coherent to size_invariant");
  }
  const std::size_t block = block_bytes(call);
  const std::size_t most = block * static_cast<std::size_t>(input_blocks(call.collective, ranks));
  if (most > bytes) {
    return invalid_argument("a rank's input has " + std::to_string(most) +
                            " bytes; allowed are 0 to " + std::to_string(bytes) +
                            ", `bytes` of ActiveRanksOptions");
  }
  const CollectiveSpec goal = spec_of(call, ranks);
  BufferRule rule;
  if (!is_from_root(call.collective) || call.root == rank) rule.input_bytes = most;
  if (goal.must_hold(rank, goal.blocks > 1 ? rank : 0)) rule.output_bytes = block;
  const bool is_null = (call.in == nullptr && rule.input_bytes > 0) ||
                       (call.out == nullptr && rule.output_bytes > 0);
  return is_null ? misfit(rule, call.in, call.out) : Status();
}

Atomic<std::uint64_t>* ActiveRanks::Inside::input_of(Rank q, std::uint64_t step) const {
  return reinterpret_cast<Atomic<std::uint64_t>*>(rank_control.entry(q, 0).scratch +
                                                  (step & 1) * room);
}

void ActiveRanks::Inside::offer(const Call& call, std::uint64_t step) const {
  if (is_from_root(call.collective) && call.root != rank) return;
  const std::size_t block = block_bytes(call);
  Atomic<std::uint64_t>* to = input_of(rank, step);
  const auto* from = static_cast<const std::byte*>(call.in);
  for (int i = input_blocks(call.collective, ranks); i > 0; --i) {
    store_words(to, from, block);
    to += words_of(block);
    from += block;
  }
}

void ActiveRanks::Inside::collect(const Call& call, std::uint64_t step,
                                  std::span<const Rank> from) {
  const int n = ranks;
  const CollectiveSpec goal = spec_of(call, n);
  const std::size_t block = block_bytes(call);
  const ReduceKernel fold = reduces(call.collective) ? find_reduce(call.type, call.op) : nullptr;
  // With a target each, this rank's blocks are every n-th one.
  const bool is_every_nth = goal.blocks > 1 && place_in_output(call.collective, 1, n) == 0;
  for (Block b = is_every_nth ? rank : 0; b < goal.blocks; b += is_every_nth ? n : 1) {
    if (!goal.must_hold(rank, b)) continue;
    const Run heard = goal.contributors(rank, b);
    const std::size_t place =
        words_of(block) * static_cast<std::size_t>(place_in_input(call.collective, b, n));
    std::size_t found = 0;
    for (const Rank q : from) {
      if (q < heard.first || q >= heard.first + heard.count) continue;
      inputs[found++] = input_of(q, step) + place;
    }
    auto* const out = static_cast<std::byte*>(call.out) +
                      block * static_cast<std::size_t>(place_in_output(call.collective, b, n));
    if (found == 1) load_words(out, inputs.front(), block);
    if (found < 2) continue;
    const int divisor = call.op == ReduceOp::avg ? static_cast<int>(found) : 0;
    for (std::size_t at = 0; at < block; at += kPart) {
      const std::size_t part = std::min(kPart, block - at);
      for (std::size_t i = 0; i < found; ++i) {
        load_words(&parts[i * kPart], inputs[i] + at / 8, part);
        sources[i] = &parts[i * kPart];
      }
      fold(out + at, sources.data(), static_cast<int>(found), part / size_of(call.type), divisor);
    }
  }
}

Agreement::Verdict ActiveRanks::Inside::judge(Rank q) const {
  return rank_control.has_left(q) || rank_control.is_lost(q) ? Agreement::Verdict::lost
                                                             : Agreement::Verdict::late;
}

bool ActiveRanks::Inside::wait(Agreement& agreement) const {
  auto next = waited.begin();
  const auto have_come = [&] {
    while (next != waited.end() && agreement.is_settled(*next)) ++next;
    return next == waited.end();
  };
  if (have_come()) return true;
  const std::int64_t begin_ns = now_ns();
  const std::int64_t until_ns = deadline_after(begin_ns, wait_ns);
  std::int64_t look_ns = 0;
  Idling idling(rank_control.policy());
  for (std::int64_t now = begin_ns; !have_come();) {
    if (now >= until_ns) {
      for (const Rank q : waited) {
        agreement.settle(q, [this](Rank one) { return judge(one); });
      }
      return true;
    }
    if (!idling.once(until_ns - now)) continue;
    now = now_ns();
    if (look_ns == 0) begin_long_wait();
    if (is_interrupted()) return false;
    if (now < look_ns) continue;
    if (look_ns != 0) {
      agreement.settle(*next, [this](Rank q) {
        const Agreement::Verdict verdict = judge(q);
        return verdict == Agreement::Verdict::lost ? verdict : Agreement::Verdict::waits;
      });
    }
    look_ns = deadline_after(now, kLookNs);
  }
  return true;
}

Result<std::vector<Rank>> ActiveRanks::call(const Call& call) try {
  Inside& in = *inside_;
  if (in.group->state_->shared->forked()) return forked_status();
  if (Status status = in.check(call); !status.ok()) return status;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // it sleeps
  std::uint64_t print = mixed(in.room, static_cast<std::uint64_t>(call.collective));
  for (const std::uint64_t one :
       {static_cast<std::uint64_t>(call.type), std::uint64_t{call.count},
        static_cast<std::uint64_t>(reduces(call.collective) ? call.op : ReduceOp::sum),
        std::uint64_t{static_cast<std::uint32_t>(has_root(call.collective) ? call.root : 0)},
        call.options.tag}) {
    print = mixed(print, one);
  }
  Agreement agreement(in.rank_control, in.rank);
  std::vector<Rank> contributors;
  contributors.reserve(static_cast<std::size_t>(in.ranks));
  // From here on no memory is taken, and the step is ended in any case.
  if (!agreement.is_settled(in.rank)) in.offer(call, agreement.step());
  if (!agreement.take_step(Agreement::Use::active, static_cast<std::uint32_t>(print)) &&
      agreement.is_out()) {
    return make_error(Code::rank_lost, [&] {
      return "rank " + std::to_string(in.rank) +
             " is lost: the others have found its process or member ended; make active ranks anew, "
             "on all ranks";
    });
  }
  const bool is_whole = in.wait(agreement);
  agreement.is_complete([](Rank) { return Agreement::Verdict::late; });
  if (!is_whole) {
    return make_error(Code::aborted, [&] {
      return interrupted("rank " + std::to_string(in.rank) + " waited for active ranks in call " +
                         std::to_string(agreement.step()));
    });
  }
  const Agreement::Decision* decision = agreement.decision();
  if (decision == nullptr) return contributors;
  if (!decision->same_value) {
    return make_error(Code::mismatch, [&] {
      return "the ranks " + text_of_set(decision->survivors) +
             " make different calls with number " + std::to_string(agreement.step()) + "; rank " +
             std::to_string(in.rank) + " makes " + std::string(name_of(call.collective)) + " of " +
             std::to_string(call.count) + " " + std::string(name_of(call.type)) +
             "; let all ranks make the same calls in the same order, missed ones too";
    });
  }
  in.collect(call, agreement.step(), decision->survivors);
  if (agreement.decision() == nullptr) return contributors;
  for (const Rank q : decision->survivors) {
    if (!is_from_root(call.collective) || q == call.root) contributors.push_back(q);
  }
  return contributors;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [] { return "no memory for an active call"; });
}

}  // namespace rankine
