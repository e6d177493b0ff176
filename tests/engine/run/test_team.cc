#include "tests/engine/run/test_team.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

#include "engine/base/parallel.h"
#include "engine/run/fingerprint.h"
#include "engine/run/mailbox.h"

namespace rankine {
namespace {

constexpr std::byte kPoison{0xdb};

// Delays a rank by a random time, or not at all.
class Dawdler final : public RoundObserver {
 public:
  explicit Dawdler(std::uint64_t seed) : random_(seed) {}

  bool before_round(int) noexcept override {
    dawdle();
    return true;
  }
  void dawdle() {
    switch (random_.below(6)) {
      case 0:
        for (int i = random_.below(4); i >= 0; --i) yield_cpu();
        break;
      case 1:
        for (int i = random_.below(300); i >= 0; --i) pause_cpu();
        break;
      default:
        break;
    }
  }
  Random& random() { return random_; }

 private:
  Random random_;
};

struct alignas(kCacheLine) Line {
  std::byte bytes[kCacheLine];
};

}  // namespace

struct TestTeam::State {
  explicit State(const Options& o)
      : options(o),
        rank_control(o.ranks, o.policy, o.timeout_ns, o.strict),
        ranks(size(o.ranks)),
        credits(ranks.size() * ranks.size()),
        mailboxes(credits.size()),
        boards(ranks.size()) {
    const std::size_t stride = stride_for(options.slot_payload);
    slots.resize(mailboxes.size() * kSlots * stride / kCacheLine);
    for (std::size_t m = 0; m < mailboxes.size(); ++m) {
      std::byte* first = slots[m * kSlots * stride / kCacheLine].bytes;
      mailboxes[m] = {first, static_cast<std::uint32_t>(stride), &credits[m]};
      credits[m].value.store(options.first_count);
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        (new (first + i * stride) PostHeader)->flag.store(options.first_count);
      }
    }
    const std::size_t half = board_stride(kTestBoard);
    halves.resize(2 * boards.size() * half / kCacheLine);
    for (std::size_t r = 0; r < boards.size(); ++r) {
      boards[r] = board_of(options.ranks, r, half, [&](std::size_t of) {
        return halves[2 * of * half / kCacheLine].bytes;
      });
      if (options.one_half) boards[r].halves[1] = boards[r].halves[0];
      for (const std::uint32_t number : {0U, 1U}) {
        (new (&boards[r].half(number)) PostHeader)->flag.store(options.first_count);
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      rank_control.progress(static_cast<Rank>(r)).value.store(options.first_count);
      rank_control.entries(static_cast<Rank>(r)).count_from(options.first_count);
      RankState& state = ranks[r].state;
      state.waiter = {
          .rank_control = &rank_control, .rank = static_cast<Rank>(r), .call = options.first_count};
      state.progress_base = options.first_count;
      state.outbox.resize(ranks.size());
      state.inbox.resize(ranks.size());
      state.memory.resize(ranks.size() * 4);
      state.boards.assign(boards.begin(), boards.end());
      state.posts = options.first_count;
      state.trials = std::make_unique<FormTrials>();
      for (std::size_t q = 0; q < ranks.size(); ++q) {
        state.outbox[q] = {mailboxes[r * ranks.size() + q], options.first_count,
                           options.first_count};
        state.inbox[q] = {mailboxes[q * ranks.size() + r], options.first_count};
      }
    }
  }

  static std::size_t size(int n) { return static_cast<std::size_t>(n); }

  void play(std::size_t r, std::span<const TestCall* const> calls, std::uint64_t seed) {
    Dawdler dawdler(seed + 0x1000 * (r + 1));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto how = static_cast<Walking>(dawdler.random().below(3));
      const auto chosen = options.choose ? options.choose(r, i) : std::optional(i);
      if (!chosen) {
        rank_control.leave(static_cast<Rank>(r));
        return;
      }
      const std::int64_t begin = now_ns();
      const bool done = play(r, *calls[*chosen], *chosen, dawdler, how);
      endings[r].slowest_ns = std::max(endings[r].slowest_ns, now_ns() - begin);
      if (!done) return;
      ++endings[r].calls;
    }
  }

  enum class Walking : std::uint8_t { whole, observed, by_steps };

  bool play(std::size_t r, const TestCall& call, std::size_t index, Dawdler& dawdler, Walking how) {
    dawdler.dawdle();
    if (!begin(r, call, index)) return false;
    RankState& state = ranks[r].state;
    switch (how) {
      case Walking::whole:
        return end(r, call, index, interpret(call.plan, state));
      case Walking::observed:
        return end(r, call, index, interpret(call.plan, state, dawdler));
      case Walking::by_steps:
        break;
    }
    Cursor cursor;
    Walked walked = Walked::waiting;
    for (int i = dawdler.random().below(20); i > 0 && walked == Walked::waiting; --i) {
      walked = interpret_some(call.plan, state, cursor);
      dawdler.dawdle();
    }
    return end(r, call, index,
               walked == Walked::done ||
                   (walked == Walked::waiting && interpret_rest(call.plan, state, cursor)));
  }

  // Plays the ranks `ours` on this thread, by random steps.
  void step(const std::vector<std::size_t>& ours, std::span<const TestCall* const> calls,
            std::uint64_t seed) {
    struct Position {
      std::size_t call = 0;
      bool inside = false;
      Cursor cursor;
    };
    Random random(seed);
    std::vector<Position> places(ranks.size());
    std::vector<std::size_t> busy;
    if (!calls.empty()) busy = ours;
    // After this many steps without progress every rank has had some. If other threads play ranks
    // too, the call's deadline finds a deadlock instead.
    const bool alone = ours.size() == ranks.size();
    const std::size_t most_idle = 100 * ranks.size();
    for (std::size_t idle = 0; !busy.empty(); ++idle) {
      if (!alone && idle == most_idle) {
        yield_cpu();
        idle = 0;
      }
      if (idle == most_idle) {
        note("nobody moves: " + rank_control.describe_waits(static_cast<Rank>(busy.front())));
        return;
      }
      const std::size_t r = random.pick(busy);
      Position& place = places[r];
      const TestCall& call = *calls[place.call];
      if (!place.inside) {
        if (!begin(r, call, place.call)) return;
        place.inside = true;
        place.cursor = {};
        idle = 0;
      }
      const std::size_t before = place.cursor.op;
      const Walked walked = interpret_some(call.plan, ranks[r].state, place.cursor);
      if (place.cursor.op != before) idle = 0;
      if (walked == Walked::waiting) continue;
      if (!end(r, call, place.call, walked == Walked::done)) return;
      idle = 0;
      place.inside = false;
      ++endings[r].calls;
      if (++place.call == calls.size()) std::erase(busy, r);
    }
  }

  bool begin(std::size_t r, const TestCall& call, std::size_t index) {
    Own& mine = ranks[r];
    RankState& state = mine.state;
    const Image& image = call.before[r];
    std::copy(image.bytes.begin(), image.bytes.end(), mine.region.begin());
    ++state.waiter.call;
    state.waiter.deadline_ns = 0;
    state.waiter.fingerprint =
        with_call(make_fingerprint(call.goal.collective, call.type, call.op, false,
                                   call.plan.transport, call.goal.root, 0, index),
                  static_cast<std::uint32_t>(state.waiter.call))
            .bits;
    rank_control.record(state.waiter.rank)
        .announce(state.waiter.call, state.waiter.fingerprint, index, "random", thread_id());
    state.memory_of(r, Memory::input) = mine.region.data() + image.input;
    state.memory_of(r, Memory::output) = mine.region.data() + image.output;
    state.scratch.begin = mine.scratch.data();
    state.memory_of(r, Memory::scratch) = mine.scratch.data();
    if (!rank_control.begin(state.waiter.rank)) {
      endings[r].status = rank_control.reason();
      return false;
    }
    return true;
  }

  bool end(std::size_t r, const TestCall& call, std::size_t index, bool done) {
    Own& mine = ranks[r];
    RankState& state = mine.state;
    rank_control.end(state.waiter.rank);
    if (!done) {
      rank_control.wait_until_quiet(state.waiter.rank);
      endings[r].status = rank_control.reason();
      note("call " + std::to_string(index) + ", rank " + std::to_string(r) + ": " +
           std::string(name_of(rank_control.reason().code())) + ", " +
           rank_control.reason().text());
      return false;
    }
    const Image& wanted = call.after[r];
    if (std::memcmp(mine.region.data(), wanted.bytes.data(), wanted.bytes.size()) != 0) {
      Image got = wanted;
      std::copy_n(mine.region.begin(), got.bytes.size(), got.bytes.begin());
      endings[r].wrong_data = difference_between(got, wanted);
      note("call " + std::to_string(index) + ", rank " + std::to_string(r) + ": " +
           endings[r].wrong_data);
      rank_control.abort({Code::remote_error, "wrong data"});
      return false;
    }
    std::fill(mine.region.begin(), mine.region.end(), kPoison);
    if (state.readers[0].all.empty() && state.readers[1].all.empty())
      std::fill(mine.scratch.begin(), mine.scratch.end(), kPoison);
    return true;
  }

  void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (fault.empty()) fault = what;
  }

  struct Own {
    RankState state;
    std::vector<std::byte> region, scratch;
  };

  const Options options;
  RankControl rank_control;
  std::vector<Own> ranks;
  std::vector<Counter> credits;
  std::vector<Line> slots;
  std::vector<Mailbox> mailboxes;
  std::vector<Line> halves;
  std::vector<Board> boards;
  std::vector<Ending> endings;
  std::mutex mutex;
  std::string fault;
};

TestTeam::TestTeam(const Options& options) : state_(std::make_unique<State>(options)) {}
TestTeam::~TestTeam() = default;
const std::vector<TestTeam::Ending>& TestTeam::endings() const { return state_->endings; }
RankControl& TestTeam::rank_control() { return state_->rank_control; }

void TestTeam::prepare(std::span<const TestCall* const> calls) {
  State& s = *state_;
  // Twice the memory needed: a faulty plan that mixes up two calls still reads our memory.
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    std::size_t bytes = 0, scratch = 0, operands = 0;
    for (const TestCall* call : calls) {
      for (const Image& image : call->before) bytes = std::max(bytes, image.bytes.size());
      for (const RankPlan& plan : call->plan.rank) scratch = std::max(scratch, plan.scratch_bytes);
      operands = std::max(operands, static_cast<std::size_t>(call->plan.most_operands));
    }
    s.ranks[r].region.assign(2 * bytes, kPoison);
    s.ranks[r].scratch.assign(4 * scratch, kPoison);
    s.ranks[r].state.scratch = {.ring_bytes = 4 * scratch};
    for (Readers& readers : s.ranks[r].state.readers) readers.all.reserve(s.ranks.size());
    s.ranks[r].state.operands.assign(operands, nullptr);
  }
  s.fault.clear();
  s.endings.assign(s.ranks.size(), {});
}

std::string TestTeam::step(std::span<const TestCall* const> calls, std::uint64_t seed,
                           std::size_t threads) {
  prepare(calls);
  std::vector<std::vector<std::size_t>> ours(threads);
  for (std::size_t r = 0; r < state_->ranks.size(); ++r) ours[r % threads].push_back(r);
  const auto step = [&](std::size_t t) { state_->step(ours[t], calls, seed + t); };
  on_threads(
      static_cast<int>(threads) - 1, [&](int t) { step(static_cast<std::size_t>(t) + 1); },
      [&] { step(0); });
  return state_->fault;
}

std::string TestTeam::run(std::span<const TestCall* const> calls, std::uint64_t seed) {
  State& s = *state_;
  prepare(calls);
  const auto play = [&](std::size_t r) { s.play(r, calls, seed); };
  if (!s.options.launch) {
    on_threads(s.options.ranks, [&](Rank r) { play(static_cast<std::size_t>(r)); });
    return s.fault;
  }
  std::vector<std::function<void()>> bodies;
  for (std::size_t r = 0; r < s.ranks.size(); ++r) bodies.push_back([play, r] { play(r); });
  s.options.launch(std::move(bodies));
  return s.fault;
}

WaitPolicy random_policy(Random& random) {
  WaitPolicy policy;
  switch (random.below(4)) {
    case 0:
      policy.mode = WaitPolicy::Mode::spin;
      policy.spin_ns = 5'000;
      break;
    case 1:
      policy.mode = WaitPolicy::Mode::park;
      policy.probes = static_cast<std::uint32_t>(random.below(3));
      break;
    default:
      policy.mode = WaitPolicy::Mode::yield;
      policy.probes = 4;
      policy.yield_ns = random.between(0, 10'000);
  }
  return policy;
}

}  // namespace rankine
