#include "engine/papers/execute.h"

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"

namespace rankine::claims {

void Turns::run(int ranks, const std::function<void(Rank)>& part,
                const std::function<void()>& stuck) {
  ended_.assign(static_cast<std::size_t>(ranks), false);
  awaited_.assign(static_cast<std::size_t>(ranks), {});  // an empty wait: each rank can begin
  left_ = ranks;
  in_vain_ = 0;
  stuck_ = &stuck;
  std::vector<std::function<void()>> bodies;
  for (Rank r = 0; r < ranks; ++r) {
    bodies.emplace_back([this, &part, r] {
      part(r);
      ended_[static_cast<std::size_t>(r)] = true;
      --left_;
      in_vain_ = 0;
    });
  }
  // A call disables cancellation of its thread and restores the state from before. Here calls end
  // in any order, so all of them must find the same state.
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  fibers_.run(std::move(bodies), 0, [this] { return next(); });
  pthread_setcancelstate(before, nullptr);
}

void Turns::wait_for(const WaitTarget& awaited) noexcept {
  awaited_[static_cast<std::size_t>(fibers_.current())] = awaited;
}

void Turns::give_way(int turn) noexcept {
  if (turn == 0) {  // a new wait: this rank has made progress
    in_vain_ = 0;
  } else if (++in_vain_ > left_ && stuck_ != nullptr) {
    (*std::exchange(stuck_, nullptr))();
  }
  fibers_.go_to(next());
}

int Turns::next() const {
  const int ranks = static_cast<int>(ended_.size());
  int waits = -1;
  for (int i = 1; i <= ranks; ++i) {
    const int rank =
        fibers_.current() + i < ranks ? fibers_.current() + i : fibers_.current() + i - ranks;
    if (ended_[static_cast<std::size_t>(rank)]) continue;
    if (awaited_[static_cast<std::size_t>(rank)].is_reached()) return rank;
    if (waits < 0) waits = rank;
  }
  return waits;
}

namespace {

constexpr std::size_t kPerBlock = 16;  // elements: a cache line, so that no block is empty

// Input of rank r for element e of natural block b; sums of thousands of them fit in 32 bits.
std::uint32_t contribution(Rank r, Block b, std::size_t e) {
  std::uint32_t x = static_cast<std::uint32_t>(r) * 2654435761U ^
                    static_cast<std::uint32_t>(b) * 40503U ^ static_cast<std::uint32_t>(e) * 97U;
  x ^= x >> 15;
  return x % 65521U;
}

// The expected outputs. The sums continue those of the previous call of of(), so that a scan costs
// one addition per rank, and ranks that need the same sum share it.
class Expected {
 public:
  explicit Expected(const CollectiveSpec& goal)
      : goal_(goal), of_(static_cast<std::size_t>(goal.blocks)) {}

  // The expected elements of block b at rank `at`; valid until the next call.
  std::span<const std::uint32_t> of(Rank at, Block b, std::size_t elements) {
    const Run heard = goal_.contributors(at, b);
    Sums& s = of_[static_cast<std::size_t>(b)];
    if (s.first != heard.first || s.count > heard.count || s.elements.size() != elements) {
      s.first = heard.first;
      s.count = 0;
      s.elements.assign(elements, 0);
    }
    for (; s.count < heard.count; ++s.count) {
      for (std::size_t e = 0; e < elements; ++e) {
        s.elements[e] += contribution(s.first + s.count, b, e);
      }
    }
    return s.elements;
  }

 private:
  struct Sums {
    Rank first = 0;
    int count = 0;
    std::vector<std::uint32_t> elements;
  };
  const CollectiveSpec& goal_;
  std::vector<Sums> of_;
};

// One rank's buffers, with the call's natural blocks.
struct RankData {
  std::vector<std::uint32_t> input, output;

  void fill(const CollectiveSpec& goal, const Layout& layout, Rank r) {
    const BufferRule rule = buffer_rule(layout, goal, r);
    input.resize(rule.input_bytes / 4);
    output.resize(rule.output_bytes / 4);
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.initially_holds(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      for (std::size_t e = 0; e < home.bytes / 4; ++e) {
        input[home.input / 4 + e] = contribution(r, b, e);
      }
    }
  }
  std::string wrong(const CollectiveSpec& goal, const Layout& layout, Rank r,
                    Expected& expected) const {
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.must_hold(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      const auto right = expected.of(r, b, home.bytes / 4);
      for (std::size_t e = 0; e < right.size(); ++e) {
        if (output[home.output / 4 + e] != right[e]) {
          return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ", element " +
                 std::to_string(e) + " is wrong";
        }
      }
    }
    return {};
  }
};

Call call_of(const Algorithm& algorithm, const Params& params, int blocks_per_natural) {
  Call call{.collective = algorithm.collective,
            .count = static_cast<std::size_t>(blocks_per_natural) * kPerBlock,
            .type = DataType::u32,
            .root = params.root,
            .peer = params.peer,
            .options = {.algorithm = algorithm.name}};
  // A barrier may combine a rank's input twice; "or" allows that.
  if (is_idempotent(call.collective)) call.op = ReduceOp::bor;
  set_parameters(params, call.options);
  return call;
}

// Scales the costs per byte: a call of `real` bytes then costs as much as one of `modelled` bytes.
Fabric stretched(Fabric fabric, std::uint64_t modelled, std::uint64_t real) {
  const Rational times(static_cast<Int128>(modelled), static_cast<Int128>(real));
  for (Rational* per_byte : {&fabric.link.beta, &fabric.between.beta, &fabric.gamma}) {
    *per_byte = *per_byte * times;
  }
  return fabric;
}

}  // namespace

Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower) {
  const Schedule schedule = algorithm.make(params);
  const int natural = natural_blocks(algorithm.collective, params.ranks);
  const Call call = call_of(algorithm, params, schedule.blocks / natural);
  const CollectiveSpec goal{call.collective, params.ranks, natural, call.root, call.peer};
  const Layout layout =
      make_layout(goal, natural_counts(call, params.ranks), size_of(call.type), Borders::plain);
  const auto real = static_cast<std::uint64_t>(blocks_per_m(goal_of(algorithm, params, schedule))) *
                    kPerBlock * size_of(call.type);

  auto network = std::make_shared<CallNetwork>();
  network->fabric = stretched(fabric, bytes, real);
  network->sync = sync;
  network->lower = lower;
  CommunicatorOptions options{.ranks = params.ranks, .timeout = std::chrono::minutes(10)};
  options.plan_bytes = std::size_t{16} << 30;  // plans of a thousand ranks are large
  options.tuned = false;
  options.network = std::move(network);
  // Probing is useless: data arrive only when another rank has had its turn.
  options.wait = WaitPolicy{.mode = WaitPolicy::Mode::yield, .probes = 0};
  const auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();

  const auto n = static_cast<std::size_t>(params.ranks);
  std::vector<RankData> data(n);
  Turns turns;
  std::vector<std::unique_ptr<Member>> members;
  for (Rank r : ranks(params.ranks)) {
    auto member = (*communicator)->join(r);
    if (!member.ok()) return member.status();
    (*member)->set_yield_callback(&turns);
    members.push_back(std::move(*member));
  }
  std::vector<Status> ended(n);
  const auto part = [&](Rank rank) {
    const auto r = static_cast<std::size_t>(rank);
    // Allocates when the rank's turn has come, after the first rank has planned: planning takes
    // most of the memory.
    try {
      data[r].fill(goal, layout, rank);
    } catch (const std::bad_alloc&) {
      (*communicator)->abort({Code::out_of_memory, "the data of rank " + std::to_string(rank)});
    }
    Call mine = call;
    mine.in = data[r].input.data();
    mine.out = data[r].output.data();
    ended[r] = members[r]->call(mine);
  };
  turns.run(params.ranks, part, [&] { (*communicator)->abort("all ranks wait for each other"); });
  Expected expected(goal);
  for (std::size_t r = 0; r < n; ++r) {
    if (!ended[r].ok()) return ended[r];
    if (call.collective == Collective::barrier) continue;  // no output to check
    const std::string wrong = data[r].wrong(goal, layout, static_cast<Rank>(r), expected);
    if (!wrong.empty()) return Status(Code::remote_error, wrong);
  }
  return (*communicator)->network_report().seconds;
}

}  // namespace rankine::claims
