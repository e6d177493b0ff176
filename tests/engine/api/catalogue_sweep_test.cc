// The tests execute every algorithm of the catalogue with many numbers of ranks, awkward counts,
// types and operations, on every transport, in place and apart, and with every root if the ranks
// are few. Random calls, random mixtures of calls, and the same bits on all ranks are further
// parts.

#include <list>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/torus.h"
#include "engine/api/check.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/faults/collective_case.h"
#include "tests/budget.h"
#include "tests/engine/api/random_case.h"
#include "tests/testing.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The sample is one of so many cases.
std::uint64_t one_of(int ranks) {
  return (ranks <= 5 ? 3 : ranks <= 9 ? 7 : ranks <= 17 ? 17 : 11) * (kSanitized ? 7 : 1);
}

std::vector<Rank> roots(Collective collective, int ranks) {
  if (!has_root(collective)) return {0};
  std::vector<Rank> all;
  for (Rank r = 0; r < ranks; ++r) {
    if (ranks <= 4 || r == 0 || r == 1 || r == ranks - 1) all.push_back(r);
  }
  return all;
}

std::vector<std::size_t> counts(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> all = {0, 1, 3, n - 1, n, n + 1, 13 * n + 5, 1009};
  if (ranks > 17) all = {0, 1, n + 1, 1009};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// All cases of one algorithm with this number of ranks; kinds of data alternate. Many ranks take
// one of seven combinations of root, count, transport and place: each value occurs, and beyond 17
// ranks no code depends on the number of ranks together with two of these.
void append_cases(const Algorithm& algorithm, int ranks, std::vector<CollectiveCase>& cases) {
  std::vector<CallOptions> variants = {{.algorithm = algorithm.name}};
  if (algorithm.takes("segments")) {
    variants.push_back({.algorithm = algorithm.name, .segments = 3});
  }
  if (algorithm.takes("group")) {
    for (const int group : {1, 2, 3, ranks}) {
      variants.push_back({.algorithm = algorithm.name, .group = group});
    }
  }
  // CallOptions refers to lists that must outlive it.
  static std::list<std::vector<int>> lists;
  if (algorithm.takes("dims")) {
    for (const int dimensions : {2, 3}) {
      lists.push_back(balanced_dims(ranks, dimensions));
      if (lists.back().empty()) continue;
      variants.push_back({.algorithm = algorithm.name, .dims = lists.back()});
    }
  }
  if (algorithm.takes("skips")) {
    for (const char* scheme : {"powers_of_two", "linear", "square_root"}) {
      lists.push_back(read_skips(scheme, ranks).value());
      variants.push_back({.algorithm = algorithm.name, .skips = lists.back()});
    }
  }
  if (algorithm.takes("levels")) {
    for (const std::vector<int>& levels : {std::vector<int>{2}, {3}, {2, 4}}) {
      lists.push_back(levels);
      variants.push_back({.algorithm = algorithm.name, .levels = lists.back()});
    }
  }
  if (algorithm.takes("aggregation")) {
    for (const int blocks : {1, 2}) {
      variants.push_back({.algorithm = algorithm.name, .aggregation = blocks});
    }
  }
  if (algorithm.takes("radix")) {
    for (const int radix : {3, 4, ranks}) {
      if (ranks > 33 && radix != 4) continue;
      variants.push_back({.algorithm = algorithm.name, .radix = radix});
    }
  }
  const std::size_t stride = ranks > 17 ? 7 : 1;
  std::size_t combination = 0;
  for (CallOptions options : variants) {
    Params params = params_of(options, ranks);
    params.segments = std::max(1, params.segments);
    if (algorithm.refusal(params)) continue;
    for (const Rank root : roots(algorithm.collective, ranks)) {
      for (const std::size_t count : counts(ranks)) {
        // An all-to-all moves count * N * N elements.
        if (algorithm.collective == Collective::all_to_all && ranks > 17 && count > 100) continue;
        std::vector<std::optional<Transport>> transports = {Transport::direct, Transport::mailbox};
        if (count < 100) transports.push_back(std::nullopt);  // boards for short vectors
        for (const auto& transport : transports) {
          for (const bool in_place : {false, true}) {
            if (combination++ % stride != 0) continue;
            options.transport = transport;
            const std::size_t number = cases.size();
            cases.push_back(numbered_case(algorithm, ranks, count, number, in_place, options));
            cases.back().root = root;
            cases.back().displaced = number % 5 < 2;  // only of an all-to-all
          }
        }
      }
    }
  }
}

class CatalogueSweep : public testing::TestWithParam<int> {};

// Runs a sample of the cases of the selected collectives on a team with these costs and ports.
void run_cases(const std::function<bool(Collective)>& are_asked, int ranks, const Costs& costs,
               int ports = 0) {
  std::vector<CollectiveCase> all;
  for (const Algorithm& algorithm : catalogue()) {
    if (are_asked(algorithm.collective)) append_cases(algorithm, ranks, all);
  }
  if (ports > 0) {
    std::erase_if(all, [](const CollectiveCase& one) {
      return one.options.transport.value_or(Transport::direct) == Transport::direct;
    });
  }
  std::vector<CollectiveCase> cases;
  const Sample sample("catalogue", one_of(ranks));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (sample.has(i)) cases.push_back(all[i]);
  }
  auto team =
      Team::create(
          {.ranks = ranks, .timeout = std::chrono::minutes(4), .costs = costs, .ports = ports})
          .value();
  std::mutex mutex;
  std::string fault;
  // The cases run in batches with precomputed results. If each rank computed the result, each rank
  // would take as long as one thread now takes for all.
  constexpr std::size_t kAtOnce = 64;
  for (std::size_t first = 0; first < cases.size() && fault.empty(); first += kAtOnce) {
    const std::span<const CollectiveCase> some =
        std::span(cases).subspan(first, std::min(kAtOnce, cases.size() - first));
    std::vector<std::vector<std::byte>> common;
    for (const CollectiveCase& test : some) common.push_back(common_result(test));
    const Status status = team->run([&](Member& me) {
      CaseBuffers buffers;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::string found = run_case(me, some[i], buffers, {}, common[i]);
        if (found.empty()) continue;
        const std::lock_guard lock(mutex);
        if (fault.empty()) fault = found;
        return;
      }
    });
    ASSERT_TRUE(!fault.empty() || status.ok()) << status.text();
  }
  EXPECT_EQ(fault, "");
  std::printf("%d ranks: %zu cases\n", ranks, cases.size());
  for (Rank r = 0; r < ranks; ++r) {
    const PortsInUse used = team->communicator().ports_in_use(r);
    EXPECT_LE(used.most_sent, ports) << "rank " << r;
    EXPECT_LE(used.most_received, ports) << "rank " << r;
    EXPECT_EQ(used.most_sent > 0, ports > 0 && ranks > 1) << "rank " << r;
    EXPECT_EQ(used.most_received > 0, ports > 0 && ranks > 1) << "rank " << r;
  }
}

TEST_P(CatalogueSweep, EveryAlgorithmMeansWhatItSays) {
  run_cases([](Collective collective) { return collective != Collective::barrier; }, GetParam(),
            {});
}

// Staged pieces of 1 to 16 lines, cached and with non-temporal stores. (Among processes all
// collectives are staged; processes_test sweeps them.)
TEST_P(CatalogueSweep, AndSoItDoesWhereOthersReachScratchOnly) {
  const int ranks = GetParam();
  if (ranks > 17) GTEST_SKIP() << "what is staged does not depend on how many read it";
  const auto may_be_staged = [](Collective collective) {
    return collective == Collective::all_reduce || collective == Collective::broadcast;
  };
  Costs costs;
  costs.stage_apart_min_bytes = costs.stage_in_place_min_bytes = 1;
  costs.stage_stream_min_bytes = ranks % 2 == 0 ? 1 : 512;
  costs.stage_piece_max_bytes = std::size_t{64} << ranks % 5;
  costs.stage_turn_max_bytes = 256;
  run_cases(may_be_staged, ranks, costs);
}

// With one port a rank has one message in flight. With two ports, a round with more messages still
// makes messages wait for each other. What waits depends on the messages of a rank: beyond 17 ranks
// every eighth number is enough.
TEST_P(CatalogueSweep, AndSoItDoesWithABudgetOfPorts) {
  const int ranks = GetParam();
  if (ranks > 17 && ranks % 8 != 1 && ranks != 64) GTEST_SKIP() << "every eighth number of ranks";
  const auto moves_data = [](Collective collective) { return collective != Collective::barrier; };
  for (const int ports : {1, 2}) {
    if (ports == 1 || ranks <= 9) run_cases(moves_data, ranks, {}, ports);
  }
}

// No rank may leave a barrier before all ranks have entered it.
TEST_P(CatalogueSweep, EveryBarrierHoldsEverybody) {
  const int ranks = GetParam();
  for (const int ports : {0, 1}) {
    auto team =
        Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4), .ports = ports}).value();
    for (const Algorithm& algorithm : catalogue()) {
      Params params{.ranks = ranks};
      if (algorithm.collective != Collective::barrier || algorithm.refusal(params)) continue;
      for (const Transport transport : {Transport::direct, Transport::mailbox}) {
        if (ports > 0 && transport == Transport::direct) continue;
        std::atomic<int> arrivals{0};
        std::atomic<int> early{0};
        const Status status = team->run([&](Member& me) {
          for (int round = 1; round <= 20; ++round) {
            arrivals.fetch_add(1, std::memory_order_relaxed);
            me.barrier({.algorithm = algorithm.name, .transport = transport}).throw_if_error();
            if (arrivals.load(std::memory_order_relaxed) < round * ranks) early.fetch_add(1);
          }
        });
        EXPECT_TRUE(status.ok()) << algorithm.name << ": " << status.text();
        EXPECT_EQ(early.load(), 0) << algorithm.name << ", " << name_of(transport);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CatalogueSweep, testing::Range(1, kSanitized ? 18 : 64));
INSTANTIATE_TEST_SUITE_P(ManyRanks, CatalogueSweep, testing::Values(kSanitized ? 33 : 64));

// Random calls of every kind in one communicator after the other, while other threads ask every
// permitted question. RANKINE_TEST_CALLS sets the number of calls of all ranks, RANKINE_TEST_SEED
// sets the seed.

// A thread that queries all monitoring data until it is stopped.
class Monitor {
 public:
  explicit Monitor(const Communicator& communicator)
      : thread_([this, &communicator] {
          constexpr int kOneRecordIn = 5000;  // a record lists thousands of calls
          for (int i = 0; !stop_.load(std::memory_order_relaxed); ++i) {
            if (!communicator.health().ok()) return;
            static_cast<void>(communicator.memory_of(i % 9));
            static_cast<void>(communicator.memory_bytes());
            static_cast<void>(communicator.cached_plans());
            if (i % kOneRecordIn == 0) static_cast<void>(communicator.flight_record());
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Monitor() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The calls resemble a server's calls: most are of a few hundred known kinds in any order, and some
// are new.
std::uint64_t case_of(std::uint64_t seed, int round, std::uint64_t call) {
  constexpr std::uint64_t kKnown = 300, kOneNewIn = 200;
  const std::uint64_t dice = splitmix(seed * kSplitMixStep + call);
  const std::uint64_t team = mixed(seed, static_cast<std::uint64_t>(round));
  return dice % kOneNewIn == 0 ? dice : team + dice / kOneNewIn % kKnown;
}

TEST(Mix, RandomCallsBesideMonitors) {
  const std::uint64_t calls = number_of("RANKINE_TEST_CALLS", budgeted(60'000, 400'000));
  const std::uint64_t seed = number_of("RANKINE_TEST_SEED", 1);
  constexpr int kRanks[] = {2, 3, 4, 8};
  constexpr std::uint64_t kPerTeam = 20'000;
  std::uint64_t made = 0, begun = 0;  // by all ranks; by each rank
  for (int round = 0; made < calls; ++round) {
    const int ranks = kRanks[round % std::size(kRanks)];
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t more = std::min(kPerTeam, (calls - made + n - 1) / n);
    auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(2)}).value();
    std::mutex mutex;
    std::string fault;
    Status status;
    {
      const Monitor one(team->communicator()), other(team->communicator());
      status = team->run([&](Member& me) {
        CaseBuffers buffers;
        for (std::uint64_t i = 0; i < more; ++i) {
          const CollectiveCase test = random_case(case_of(seed, round, begun + i), ranks);
          const std::string found = run_case(me, test, buffers);
          if (found.empty()) continue;
          const std::lock_guard lock(mutex);
          if (fault.empty()) fault = to_string(test) + ": " + found;
          return;
        }
      });
    }
    ASSERT_EQ(fault, "");
    ASSERT_TRUE(status.ok()) << status.text();
    made += more * n;
    begun += more;
  }
}

// Random mixtures of all operations of ranks: blocking calls, requests, epilogues, messages and
// group(), on a communicator and on its splits, which the ranks create and destroy.
// RANKINE_TEST_STEPS sets the number of steps of a team, RANKINE_TEST_SEED sets the seed.

using std::chrono_literals::operator""ms;

// A call in flight and its expected result.
struct Job {
  Member* on = nullptr;
  CollectiveCase test;  // for a message: send_recv from root to peer
  bool is_message = false;
  std::unique_ptr<CaseBuffers> buffers = std::make_unique<CaseBuffers>();
  std::unique_ptr<Witness> witness{};
  Request request{};

  void fill() { buffers->fill(test, on->rank()); }
  // Adds an epilogue with rows of one element, or of `count` elements.
  void bring_epilogue(bool long_rows) {
    const bool gathers = test.collective == Collective::all_gather;
    if (!gathers && test.collective != Collective::all_reduce &&
        test.collective != Collective::reduce_scatter) {
      return;
    }
    const std::size_t outputs =
        gathers ? test.count * static_cast<std::size_t>(on->ranks()) : test.count;
    const std::size_t row = long_rows && test.count > 0 ? test.count : 1;
    witness = std::make_unique<Witness>(outputs / row, row, size_of(test.type));
    test.options.epilogue = &witness->epilogue;
  }
  std::string fault() const {
    if (witness != nullptr && !witness->saw_each_once())
      return "a row was finished never, or twice";
    if (witness != nullptr && !witness->saw(buffers->out())) {
      return "a row was finished before it was final";
    }
    return buffers->check();
  }
  Message message() {
    const bool sends = on->rank() == test.root;
    return {sends ? const_cast<void*>(buffers->in()) : buffers->out(), test.count, test.type,
            sends ? test.peer : test.root, sends};
  }
  Status call() { return is_message ? on->submit(message()) : on->call(call_of(test, *buffers)); }
  Status start(bool prepares) {
    Call call = call_of(test, *buffers);
    auto made = is_message ? (prepares ? on->prepare(message()) : on->start(message()))
                           : (prepares ? on->prepare(call) : on->start(call));
    if (!made.ok()) return made.status();
    request = std::move(*made);
    return prepares ? request.start() : Status();
  }
};

// One rank. Random numbers that all ranks must share come from same_, all other numbers from own_.
class Player {
 public:
  Player(Member& whole, std::uint64_t seed)
      : whole_(whole), same_(seed), own_(seed + 1 + static_cast<std::uint64_t>(whole.rank())) {}

  void step() {
    const int what = below(same_, 8);
    if (what == 0) return split();
    if (what == 1 && !groups_.empty()) return drop(below(same_, static_cast<int>(groups_.size())));
    std::vector<Job> jobs = draw(what < 4 ? 1 : 1 + below(same_, 6));
    if (below(same_, 3) == 0) {
      answer(whole_.group([&] {
        for (Job* job : shuffled(jobs)) answer(job->call());
      }));
    } else {
      for (Job* job : shuffled(jobs)) answer(job->start(below(own_, 2) == 0));
      wait(jobs);
    }
    for (Job& job : jobs) {
      const std::string fault = job.fault();
      if (!fault.empty()) fail(to_string(job.test) + ": " + fault);
    }
  }

 private:
  static int below(std::mt19937_64& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::remote_error, "rank " + std::to_string(whole_.rank()) + ": " + what);
  }
  void answer(const Status& status) const {
    if (!status.ok()) fail(status.text());
  }

  // Every rank can compute the colors of all ranks, so all ranks agree on the groups.
  void split() {
    if (groups_.size() == 4) return drop(0);
    const int colors = 1 + below(same_, 3);
    const auto shift = below(same_, 5);
    const bool some_are_out = below(same_, 4) == 0;
    const int color = (whole_.rank() + shift) % (colors + (some_are_out ? 1 : 0));
    auto group = whole_.split(color == colors ? kNoColor : color, below(own_, 100));
    answer(group.status());
    groups_.push_back(std::move(*group));
  }
  void drop(int which) { groups_.erase(groups_.begin() + which); }

  std::vector<Job> draw(int n) {
    std::vector<Job> jobs;
    for (int i = 0; i < n; ++i) {
      const auto seed = same_();
      const int where = below(same_, 2 + static_cast<int>(groups_.size()));
      const bool is_message = below(same_, 3) == 0;
      Job job;
      job.on = where < 2 ? &whole_ : groups_[static_cast<std::size_t>(where - 2)].get();
      if (job.on == nullptr) continue;  // this rank is not in the group
      // Members of different groups draw different cases, which is allowed.
      job.test = random_case(seed, job.on->ranks());
      if (is_message) {
        job.is_message = true;
        job.test.collective = Collective::send_recv;
        job.test.in_place = false;
        job.test.options = {};
        const auto ranks = static_cast<std::uint64_t>(job.on->ranks());
        job.test.root = static_cast<Rank>(seed % ranks);
        job.test.peer = static_cast<Rank>((seed / ranks) % ranks);
        if (job.test.root == job.test.peer) continue;
        if (job.on->rank() != job.test.root && job.on->rank() != job.test.peer) continue;
      }
      if (!is_message && seed % 3 == 0) job.bring_epilogue(seed % 2 == 0);
      job.fill();
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  // Shuffles the jobs per rank, but keeps the order of calls on one communicator, and of messages
  // in one direction between two ranks.
  std::vector<Job*> shuffled(std::vector<Job>& jobs) {
    std::vector<Job*> order;
    for (Job& job : jobs) order.push_back(&job);
    std::shuffle(order.begin(), order.end(), own_);
    const auto lane = [](const Job* job) {
      return std::tuple(job->on, job->is_message, job->is_message ? job->test.root : 0,
                        job->is_message ? job->test.peer : 0);
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t k = i + 1; k < order.size(); ++k) {
        if (lane(order[i]) == lane(order[k]) && order[k] < order[i]) std::swap(order[i], order[k]);
      }
    }
    return order;
  }

  void wait(std::vector<Job>& jobs) {
    std::vector<Job*> left;
    for (Job& job : jobs) left.push_back(&job);
    std::shuffle(left.begin(), left.end(), own_);
    while (!left.empty()) {
      Job& job = *left.back();
      switch (below(own_, 4)) {
        case 0:
          answer(job.request.wait());
          break;
        case 1: {
          const auto over = job.request.wait_for(1ms);
          answer(over.status());
          if (!*over) continue;
          break;
        }
        case 2: {
          const auto over = job.request.test();
          answer(over.status());
          if (!*over) {
            answer(whole_.progress());
            continue;
          }
          answer(job.request.wait());
          break;
        }
        default:
          std::rotate(left.begin(), left.end() - 1, left.end());
          continue;
      }
      left.pop_back();
    }
  }

  Member& whole_;
  std::mt19937_64 same_, own_;
  std::vector<std::unique_ptr<Member>> groups_;
};

TEST(Mixture, GivesWhatItsPartsGive) {
  const std::uint64_t steps = number_of("RANKINE_TEST_STEPS", budgeted(1'200, 6'000));
  const std::uint64_t first = number_of("RANKINE_TEST_SEED", 1);
  constexpr int kRanks[] = {2, 3, 4, 6};
  constexpr std::uint64_t kPerTeam = 300;
  for (std::uint64_t made = 0, seed = first; made < steps; made += kPerTeam, ++seed) {
    const int ranks = kRanks[seed % std::size(kRanks)];
    auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(2)}).value();
    const Status status = team->run([&](Member& me) {
      Player player(me, seed);
      for (std::uint64_t i = 0; i < kPerTeam; ++i) player.step();
    });
    ASSERT_TRUE(status.ok()) << status.text() << "\nreplay with RANKINE_TEST_SEED=" << seed;
  }
}

// Every all-reduce of the catalogue leaves the same bits on every rank, except algorithms with
// other_bits. The sum of the data depends on the order of additions.

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 5;
#else
constexpr int kMostRanks = 33;
#endif

constexpr DataType kFloats[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};
// Odd counts of several lines; the second count is long enough for the algorithms' treatment of
// long vectors.
constexpr std::size_t kCounts[] = {67, 5003};

// Element i of a rank's vector. Neighbouring ranks differ by orders of magnitude and in sign, so
// nearly every other order gives another sum. No sum overflows in 16 bits.
double element(Rank rank, std::size_t i) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15u + i) * 0xbf58476d1ce4e5b9u;
  const std::uint64_t other = (hash ^ hash >> 31) * 0x94d049bb133111ebu;
  const double mantissa = 1.0 + static_cast<double>(hash >> 12) * 0x1p-52;         // 52 random bits
  const double scale = std::bit_cast<double>(((other >> 60) + (1023 - 8)) << 52);  // 2^-8 to 2^7
  return ((other >> 59 & 1) != 0 ? mantissa : -mantissa) * scale;
}

std::vector<std::byte> input_of(Rank rank, DataType type, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element(rank, i);
    const auto put = [&](auto as_type) {
      std::memcpy(bytes.data() + i * sizeof(as_type), &as_type, sizeof(as_type));
    };
    switch (type) {
      case DataType::f64:
        put(value);
        break;
      case DataType::f16:
        put(Half(static_cast<float>(value)));
        break;
      case DataType::bf16:
        put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >>
                                       16));
        break;
      default:
        put(static_cast<float>(value));
    }
  }
  return bytes;
}

struct Case {
  const Algorithm* algorithm;
  std::optional<Transport> transport;
  DataType type;
  std::size_t count;
  bool in_place;

  std::string name(int ranks) const {
    return std::string(algorithm->name) + " N=" + std::to_string(ranks) + " " +
           std::string(name_of(type)) + " x " + std::to_string(count) +
           (in_place ? " in place, " : " apart, ") +
           (transport ? std::string(name_of(*transport)) : "any transport");
  }
};

std::vector<Case> cases_among(int ranks) {
  std::vector<Case> cases;
  for (const Algorithm& entry : catalogue()) {
    Params params{.ranks = ranks};
    if (entry.collective != Collective::all_reduce || entry.refusal(params)) continue;
    std::size_t number = 0;
    for (const std::optional<Transport> transport :
         {std::optional<Transport>(), std::optional(Transport::direct),
          std::optional(Transport::mailbox)}) {
      for (const bool in_place : {false, true}) {
        for (const std::size_t count : kCounts) {
          // Few ranks: every type per case. Many ranks: one type per case, in turn.
          for (std::size_t t = 0; t < std::size(kFloats); ++t) {
            if (ranks > 9 && t != number % std::size(kFloats)) continue;
            cases.push_back({&entry, transport, kFloats[t], count, in_place});
          }
          ++number;
        }
      }
    }
  }
  return cases;
}

class SameBits : public testing::TestWithParam<int> {};

TEST_P(SameBits, EveryAllReduceOnEveryRank) {
  const int ranks = GetParam();
  std::vector<Case> cases;
  const Sample sample("same bits", ranks <= 5 ? 3 : 11);
  for (std::uint64_t number = 0; const Case& one : cases_among(ranks)) {
    if (sample.has(number++)) cases.push_back(one);
  }
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)}).value();
  // The result of each case on each rank.
  std::vector<std::vector<std::vector<std::byte>>> results(
      cases.size(), std::vector<std::vector<std::byte>>(static_cast<std::size_t>(ranks)));
  const Status status = team->run([&](Member& me) {
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const Case& test = cases[c];
      std::vector<std::byte> in = input_of(me.rank(), test.type, test.count);
      std::vector<std::byte> out(test.in_place ? 0 : in.size());
      std::byte* result = test.in_place ? in.data() : out.data();
      CallOptions options;
      options.algorithm = test.algorithm->name;
      options.transport = test.transport;
      options.segments = test.algorithm->takes("segments") ? 3 : 0;
      me.call({.collective = Collective::all_reduce,
               .in = in.data(),
               .out = result,
               .count = test.count,
               .type = test.type,
               .op = c % 5 == 4 ? ReduceOp::avg : ReduceOp::sum,
               .options = options})
          .throw_if_error();
      results[c][static_cast<std::size_t>(me.rank())].assign(result, result + in.size());
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
  for (std::size_t c = 0; c < cases.size(); ++c) {
    if (!cases[c].algorithm->other_bits.empty()) continue;
    for (std::size_t r = 1; r < results[c].size(); ++r) {
      EXPECT_EQ(results[c][r] == results[c][0], true)
          << cases[c].name(ranks) << ": rank " << r << " has other bits than rank 0";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameBits, testing::Range(1, kMostRanks + 1));

// The data detect differences: the algorithms with other_bits differ among 9 ranks, in the types
// that sums move in.
TEST(SameBits, LinesThatSayOtherwiseDiffer) {
  constexpr int kRanks = 9;
  auto team = Team::create({.ranks = kRanks}).value();
  for (const Algorithm& entry : catalogue()) {
    Params params{.ranks = kRanks};
    if (entry.other_bits.empty() || entry.refusal(params)) continue;
    for (const DataType type : {DataType::f32, DataType::f64}) {
      std::vector<std::vector<std::byte>> results(kRanks);
      const Status status = team->run([&](Member& me) {
        std::vector<std::byte> data = input_of(me.rank(), type, kCounts[0]);
        me.call({.collective = Collective::all_reduce,
                 .in = data.data(),
                 .out = data.data(),
                 .count = kCounts[0],
                 .type = type,
                 .options = {.algorithm = entry.name}})
            .throw_if_error();
        results[static_cast<std::size_t>(me.rank())] = data;
      });
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(std::any_of(results.begin(), results.end(),
                              [&](const auto& one) { return one != results[0]; }))
          << entry.name << ", " << name_of(type) << ": says '" << entry.other_bits
          << "', and all ranks have the same bits";
    }
  }
}

// The default algorithm at every size, with the data that showed the fault: one large value, one
// small value, and one value that cancels the large one.
TEST(SameBits, DefaultsOfEverySize) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    auto team = Team::create({.ranks = ranks}).value();
    for (std::size_t count = 1; count <= std::size_t{1} << 18; count *= 4) {
      for (const bool in_place : {false, true}) {
        std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
        const Status status = team->run([&](Member& me) {
          constexpr float kValues[] = {1e8F, 1.0F, -1e8F};
          std::vector<float> in(count, kValues[me.rank() % 3]);
          std::vector<float> out(count);
          const std::span<float> result(in_place ? in : out);
          me.all_reduce(std::span<const float>(in), result).throw_if_error();
          results[static_cast<std::size_t>(me.rank())].assign(result.begin(), result.end());
        });
        ASSERT_TRUE(status.ok()) << status.text();
        for (const auto& one : results) {
          EXPECT_TRUE(std::equal(one.begin(), one.end(), results[0].begin()))
              << ranks << " ranks, " << count << " elements";
        }
      }
    }
  }
}

}  // namespace
}  // namespace rankine
