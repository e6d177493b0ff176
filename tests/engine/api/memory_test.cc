// The memory of communicators and teams: on which nodes it lies and how large it is. Payloads of
// Member::allocate() are tested too.

#include <sys/mman.h>

#include "engine/api/member.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "numa/memory.h"
#include "numa/system_calls.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/fixtures.h"
#include "tests/numa/machines.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// --- On which nodes

TEST(MemoryOnNodes, LinesShareNoPageAcrossNodesAndFewWithinOne) {
  ScopedSystemCalls scope(noted_bindings::calls());
  const auto pages_of = [](const Communicator& communicator, int ranks) {
    std::map<std::uintptr_t, std::vector<Rank>> pages;
    for (Rank r = 0; r < ranks; ++r) {
      const MemoryRange lines = communicator.memory_of(r).lines.ranges.front();
      const auto first = reinterpret_cast<std::uintptr_t>(lines.base);
      EXPECT_EQ(first / 4096, (first + lines.bytes - 1) / 4096) << "lines across a page's border";
      pages[first / 4096].push_back(r);
    }
    return pages;
  };
  {
    std::vector<ArenaOptions> spread(64);
    for (std::size_t r = 0; r < spread.size(); ++r) spread[r].node = static_cast<int>(r % 8);
    Ranks ranks({.ranks = 64, .arenas = spread});
    EXPECT_EQ(pages_of(ranks.communicator(), 64).size(), 64U);
  }
  noted_bindings::forget();
  const std::vector<ArenaOptions> one(8, ArenaOptions{.node = 3});
  Ranks together({.ranks = 8, .arenas = one});
  EXPECT_EQ(pages_of(together.communicator(), 8).size(), 1U);
  noted_bindings::expect_on(3, together.communicator().memory_of(7).lines.ranges, "lines");
}

TEST(MemoryOnNodes, RefusedBindingIsReportedFromTheStart) {
  SystemCalls calls = real_system_calls();
  calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                   unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  calls.mlock2 = [](const void*, std::size_t, unsigned) {
    errno = ENOMEM;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  auto team = Team::create({.ranks = 2, .lock_memory = true}).value();
  for (const RankReport& rank : team->report()) {
    EXPECT_FALSE(rank.all_enforced());
    EXPECT_EQ(rank.binding.error, EPERM);
    EXPECT_EQ(rank.locking.error, ENOMEM);
  }
  std::byte* const staged = static_cast<std::byte*>(team->staging().allocate(10'000));
  ASSERT_NE(staged, nullptr);
  staged[9'999] = std::byte{1};
  EXPECT_TRUE(team->staging().binding().refused());
  EXPECT_TRUE(team->staging().locking().refused());
  const Status status = team->run([](Member& me) {
    std::vector<float> x(1000, 1.0F);
    me.all_reduce(std::span(x)).throw_if_error();
    if (x[999] != 2.0F) throw std::runtime_error("wrong sum");
  });
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<std::string> keys;
  for (const auto& [key, text] : captured.lines) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"numa.mbind", "numa.mlock"})) << "one warning each";
}

// A mailbox's slots lie with the reader, which waits for them; the credit lies with the writer.
TEST(MemoryOnNodes, SlotsAreWithTheReaderAndCreditWithTheWriter) {
  Ranks ranks({.ranks = 3});
  expect_ok(ranks.run([](Member& me) {
    std::uint32_t word = 7;
    return me.send_recv(std::span(&word, 1), 0, 1, {.transport = Transport::mailbox});
  }));
  const auto mailboxes = [&](Rank r) { return ranks.communicator().memory_of(r).mailboxes.bytes; };
  EXPECT_EQ(mailboxes(0), 4096U) << "a line of credit, in whole pages";
  EXPECT_GE(mailboxes(1), 16 * 1088U) << "the slots";
  EXPECT_EQ(mailboxes(2), 0U) << "takes no part";
}

// --- How much

TEST(Memory, SixtyFourRanksTakeLessThanEightMebibytes) {
  auto team = Team::create({.ranks = 64}).value();
  Communicator& communicator = team->communicator();
  EXPECT_LT(communicator.memory_bytes(), 2 * kMiB) << "when made";
  for (const Collective collective : all_collectives()) {
    const Status status = team->run([&](Member& me) {
      std::vector<std::uint32_t> in(2 * 64), out(2 * 64);
      const bool one_buffer =
          collective == Collective::broadcast || collective == Collective::send_recv;
      me.call({.collective = collective,
               .in = in.data(),
               .out = one_buffer ? in.data() : out.data(),
               .count = 2,
               .type = DataType::u32,
               .peer = 1})
          .throw_if_error();
    });
    ASSERT_TRUE(status.ok()) << name_of(collective) << ": " << status.text();
  }
  EXPECT_EQ(communicator.cached_plans(), static_cast<std::size_t>(kCollectives));
  EXPECT_EQ(communicator.memory_of(5).senders, 63) << "else the test saw no crowd";
  EXPECT_LT(communicator.memory_bytes(), 8 * kMiB) << "after 8 B of everything";
}

TEST(Memory, TablesByPeerAreForPeersThatThereAre) {
  const auto network = find_call_network("plain");
  ASSERT_TRUE(network.ok());
  const auto communicator =
      Communicator::create({.ranks = Communicator::kMaxOnNetwork, .network = *network}).value();
  const auto tables = [&] { return communicator->shared_memory().tables; };
  const std::size_t alone = tables();
  EXPECT_LT(alone, 16 * kMiB) << "a byte for each pair";
  auto member = communicator->join(7).value();
  EXPECT_LT(tables() - alone, std::size_t{16} << 10) << "four bytes for each peer";
}

TEST(Memory, CountsEveryPart) {
  auto team = Team::create({.ranks = 3}).value();
  Communicator& communicator = team->communicator();
  const std::size_t idle = communicator.memory_bytes();
  EXPECT_EQ(communicator.shared_memory().plans, 0U);
  EXPECT_EQ(communicator.memory_of(1).mailboxes.bytes, 0U);
  const auto call = [&](std::size_t count, Transport transport) {
    const Status status = team->run([&](Member& me) {
      std::vector<float> data(count);
      me.all_reduce(std::span(data), ReduceOp::sum, {.transport = transport}).throw_if_error();
    });
    ASSERT_TRUE(status.ok()) << status.text();
  };
  call(2, Transport::mailbox);
  const SharedMemory shared = communicator.shared_memory();
  EXPECT_GT(shared.plans, 0U);
  std::size_t sum = shared.plans + shared.flight_record + shared.tables;
  for (Rank r = 0; r < 3; ++r) {
    const RankMemory memory = communicator.memory_of(r);
    EXPECT_EQ(memory.senders, 2);
    EXPECT_GE(memory.mailboxes.bytes, 2 * 16 * std::size_t{64});
    sum += memory.lines.bytes + memory.mailboxes.bytes + memory.scratch.bytes;
  }
  EXPECT_EQ(communicator.memory_bytes(), sum);
  EXPECT_GT(sum, idle);
}

// The nodes that a team requests for its ranks and their lines, mailboxes, scratch and payloads, on
// pretended machines with several memory nodes, regular and odd ones.

const PlacementPolicy kCompact{PlacementPolicy::Kind::compact, {}};
const PlacementPolicy kScatter{PlacementPolicy::Kind::scatter, {}};
const PlacementPolicy kOnePerNode{PlacementPolicy::Kind::one_per_node, {}};
const PlacementPolicy kInOrder{PlacementPolicy::Kind::listed,
                               {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

// Two sockets, four nodes per socket, two cores per node: CPUs 2n and 2n + 1 belong to node n.
constexpr char kTwoByFour[] = "pack:2 numa:4 core:2 pu:1";

// Creates a team on the pretended machine; rank r should be on a CPU with memory on node nodes[r].
void expect_memory_on(const std::vector<int>& nodes, const OddMachine& machine,
                      const PlacementPolicy& policy) {
  const PretendedMachine pretended(machine);
  CapturedWarnings captured;
  const int n = static_cast<int>(nodes.size());
  // Ranks sleep while they wait, because the pretended cores share the real ones.
  auto team =
      Team::create(
          {.ranks = n, .placement = policy, .wait = WaitPolicy{.mode = WaitPolicy::Mode::park}})
          .value();
  const Status status = team->run([&](Member& me) {
    const int node = nodes[static_cast<std::size_t>(me.rank())];
    const std::size_t blocks = static_cast<std::size_t>(n) * 16;
    auto in = me.allocate<std::uint32_t>(blocks).value();
    auto out = me.allocate<std::uint32_t>(blocks).value();
    auto large = me.allocate<std::byte>(std::size_t{5} << 20).value();
    noted_bindings::expect_on(node, {in.span().data(), in.span().size_bytes()}, "in");
    noted_bindings::expect_on(node, {out.span().data(), out.span().size_bytes()}, "out");
    noted_bindings::expect_on(node, {large.span().data(), large.span().size()}, "large");
    // Mailboxes of all pairs, and scratch.
    const std::span<const std::uint32_t> data = in.span();
    me.all_to_all(data, out.span(), {.transport = Transport::mailbox}).throw_if_error();
    me.all_reduce(data, out.span(), ReduceOp::sum,
                  {.algorithm = "recursive_doubling", .transport = Transport::direct})
        .throw_if_error();
    const RankMemory memory = team->communicator().memory_of(me.rank());
    EXPECT_EQ(memory.payloads.ranges.size(), 3U);
    noted_bindings::expect_on(node, memory.payloads.ranges, "payloads");
  });
  EXPECT_TRUE(status.ok()) << status.text();
  const std::vector<RankReport> report = team->report();
  std::size_t scratch = 0;
  std::vector<int> used;
  for (Rank r = 0; r < n; ++r) {
    SCOPED_TRACE(r);
    const int node = nodes[static_cast<std::size_t>(r)];
    const RankReport& rank = report[static_cast<std::size_t>(r)];
    EXPECT_EQ(rank.place.node, node);
    EXPECT_TRUE(rank.pin.enforced());
    EXPECT_TRUE(rank.all_enforced()) << to_string(rank);
    const RankMemory memory = team->communicator().memory_of(r);
    EXPECT_TRUE(memory.binding.enforced());
    EXPECT_EQ(memory.senders, n - 1);
    EXPECT_FALSE(memory.mailboxes.ranges.empty());
    noted_bindings::expect_on(node, memory.lines.ranges, "lines");
    noted_bindings::expect_on(node, memory.mailboxes.ranges, "mailboxes");
    noted_bindings::expect_on(node, memory.scratch.ranges, "scratch");
    scratch += memory.scratch.bytes;
    used.push_back(node);
  }
  EXPECT_GT(scratch, 0U) << "else the test saw none";
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  EXPECT_EQ(noted_bindings::nodes_of(team->staging().allocate(1)), used);
  EXPECT_TRUE(captured.lines.empty());
}

TEST(TeamMemory, TwoSocketsOfFourNodes) {
  const OddMachine machine{.text = kTwoByFour};
  expect_memory_on({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, machine, kCompact);
  expect_memory_on({0, 0, 1}, machine, kCompact);
  expect_memory_on({0, 4, 1, 5, 2, 6, 3, 7, 0, 4}, machine, kScatter);
  expect_memory_on({0, 1, 2, 3, 4, 5, 6, 7}, machine, kOnePerNode);
}

TEST(TeamMemory, NodesWithoutCpusHaveNoRanks) {
  const OddMachine machine{.text = kTwoByFour, .without_cpus = {2, 3, 8, 9, 15}};
  expect_memory_on({0, 0, 2, 2, 3, 3, 5, 5, 6, 6, 7}, machine, kCompact);
  expect_memory_on({0, 5, 2, 6, 3, 7}, machine, kScatter);
  expect_memory_on({0, 2, 3, 5, 6, 7}, machine, kOnePerNode);
}

TEST(TeamMemory, RanksOnNodesWithoutMemoryHaveItNearby) {
  const OddMachine machine{.text = kTwoByFour, .without_memory = {1, 2, 7}};
  expect_memory_on({0, 0, 0, 0, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 4, 4}, machine, kInOrder);
}

// The machine of the test above, but the firmware's distances decide: node 1 is next to node 3, and
// node 7 to node 0 of the other socket.
TEST(TeamMemory, NearbyIsWhatTheFirmwareSays) {
  OddMachine machine{.text = kTwoByFour, .without_memory = {1, 2, 7}};
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      const bool same_socket = from / 4 == to / 4;
      const bool linked = (from == 1 && to == 3) || (from == 7 && to == 0);
      machine.distances.push_back(from == to ? 10 : (linked ? 11 : (same_socket ? 12 : 32)));
    }
  }
  expect_memory_on({0, 0, 3, 3, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 0, 0}, machine, kInOrder);
}

// Member::allocate(): calls with payloads, the lifetime of payloads, and refusals.

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

template <class T>
concept CanBeAllocated = requires(Member& me) {
  me.allocate<T>(1);
};
static_assert(CanBeAllocated<float> && CanBeAllocated<BFloat16> && CanBeAllocated<std::byte>);
static_assert(!CanBeAllocated<std::string> && !CanBeAllocated<const float> &&
              !CanBeAllocated<float&> && !CanBeAllocated<void>);
static_assert(!std::is_copy_constructible_v<Payload<float>> &&
              !std::is_copy_assignable_v<Payload<float>>);
static_assert(std::is_nothrow_move_constructible_v<Payload<float>> &&
              std::is_nothrow_move_assignable_v<Payload<float>>);

const std::atomic<std::size_t>& mapped = CountedMappings::bytes;

// --- Calls

TEST(Payload, IsABufferOfCalls) {
  for (const int ranks : {1, 3}) {
    expect_team_succeeds({.ranks = ranks}, [ranks](Member& me) {
      CaseBuffers buffers;
      for (const std::size_t count : {0, 1, 64, 1023, 300'007}) {
        const std::size_t bytes = (static_cast<std::size_t>(ranks) + 1) * sizeof(float) * count;
        auto room = me.allocate<std::byte>(bytes + kMiB).value();
        EXPECT_EQ(std::ranges::count(room.span(), std::byte{0}), std::ssize(room.span()));
        for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
          for (const DataType type : {DataType::f32, DataType::i8}) {
            for (const bool in_place : {false, true}) {
              const CollectiveCase test{.collective = collective,
                                        .ranks = ranks,
                                        .count = count,
                                        .type = type,
                                        .in_place = in_place};
              EXPECT_EQ(run_case(me, test, buffers, room.span()), "");
            }
          }
        }
      }
    });
  }
}

// --- Where and how

TEST(Payload, LinesAndPagesOfItsOwn) {
  Ranks ranks({.ranks = 1});
  Member& me = *ranks.members()[0];
  const std::size_t huge = huge_page_bytes();
  std::vector<Payload<std::byte>> payloads;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, huge - 1, huge,
                                  huge + 1, std::size_t{0}}) {
    payloads.push_back(me.allocate<std::byte>(bytes).value());
    const auto at = reinterpret_cast<std::uintptr_t>(payloads.back().span().data());
    EXPECT_NE(at, 0U);
    EXPECT_EQ(at % (bytes >= huge ? huge : page_bytes()), 0U);
    EXPECT_EQ(payloads.back().span().size(), bytes);
    std::fill(payloads.back().span().begin(), payloads.back().span().end(), std::byte{0x5A});
  }
  std::vector<std::pair<std::uintptr_t, std::size_t>> places;
  for (const auto& payload : payloads) {
    places.emplace_back(reinterpret_cast<std::uintptr_t>(payload.span().data()),
                        std::max<std::size_t>(payload.span().size(), 1));
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    EXPECT_LE(places[i - 1].first + places[i - 1].second, places[i].first) << "overlap";
  }
}

TEST(Payload, IsCounted) {
  Ranks ranks({.ranks = 2});
  const Communicator& communicator = ranks.communicator();
  const std::size_t before = communicator.memory_bytes();
  auto payload = ranks.members()[1]->allocate<double>(1000).value();
  EXPECT_EQ(communicator.memory_of(0).payloads.bytes, 0U);
  const MemoryPart part = communicator.memory_of(1).payloads;
  EXPECT_EQ(part.bytes, 2 * page_bytes());
  ASSERT_EQ(part.ranges.size(), 1U);
  EXPECT_EQ(part.ranges[0].base, payload.span().data());
  EXPECT_EQ(part.ranges[0].bytes, 2 * page_bytes());
  EXPECT_EQ(communicator.memory_bytes(), before + 2 * page_bytes());
  payload = {};
  EXPECT_EQ(communicator.memory_bytes(), before);
}

// --- Lifetime

class PayloadLife : public testing::Test {
 protected:
  PayloadLife() { CountedMappings::bytes = 0; }
  ~PayloadLife() override { EXPECT_EQ(mapped, 0U) << "left behind"; }

  const CountedMappings mappings_;
};

TEST_F(PayloadLife, MovesAndEndsWithItsHandle) {
  Ranks ranks({.ranks = 1});
  Member& me = *ranks.members()[0];
  const std::size_t before = mapped;
  auto a = me.allocate<int>(100).value();
  const std::size_t one = mapped - before;
  EXPECT_GE(one, 400U);
  int* const at = a.span().data();
  a.span()[99] = 7;
  Payload<int> b = std::move(a);
  EXPECT_TRUE(a.span().empty());  // NOLINT: moved from
  EXPECT_EQ(b.span().data(), at);
  Payload<int> c = me.allocate<int>(5).value();
  EXPECT_EQ(mapped, before + 2 * one);
  c = std::move(b);
  EXPECT_EQ(mapped, before + one) << "the payload that c had before";
  Payload<int>& same = c;
  c = std::move(same);
  EXPECT_EQ(c.span().data(), at) << "to itself";
  EXPECT_EQ(c.span()[99], 7);
  c = {};
  EXPECT_EQ(mapped, before);
}

TEST_F(PayloadLife, GoesWithItsMember) {
  Payload<float> outlives;
  {
    Ranks ranks({.ranks = 2});
    outlives = ranks.members()[0]->allocate<float>(1000).value();
    auto other = ranks.members()[1]->allocate<float>(1000).value();
    const std::size_t with_both = mapped;
    ranks.drop(0);
    EXPECT_LT(mapped, with_both);
    EXPECT_TRUE(outlives.span().empty());
    EXPECT_EQ(outlives.span().data(), nullptr);
    EXPECT_EQ(ranks.communicator().memory_of(0).payloads.bytes, 0U);
    EXPECT_EQ(other.span().size(), 1000U) << "another member's";
    other.span()[999] = 1.0F;
  }
  EXPECT_EQ(mapped, 0U) << "the communicator, too";
  EXPECT_TRUE(outlives.span().empty());
  outlives = {};
}

TEST_F(PayloadLife, OutlivesATeam) {
  std::vector<Payload<float>> kept(2);
  {
    auto team = Team::create({.ranks = 2}).value();
    for (int run = 0; run < 2; ++run) {
      const Status status = team->run([&](Member& me) {
        auto& mine = kept[static_cast<std::size_t>(me.rank())];
        if (run == 0) {
          mine = me.allocate<float>(5000).value();
          std::fill(mine.span().begin(), mine.span().end(), 1.0F);
        } else {
          me.all_reduce(mine.span()).throw_if_error();
          EXPECT_EQ(mine.span()[4999], 2.0F) << "between runs it stays";
        }
      });
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
  for (const auto& payload : kept) EXPECT_TRUE(payload.span().empty());
}

// One thread destroys the payloads while another destroys the member: the first one of the two
// frees the memory.
TEST_F(PayloadLife, HandlesAndMembersGoAtOnce) {
  for (int round = 0; round < 200; ++round) {
    Ranks ranks({.ranks = 1});
    std::vector<Payload<int>> payloads;
    for (int i = 0; i < 8; ++i) payloads.push_back(ranks.members()[0]->allocate<int>(10).value());
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
    };
    std::thread handles([&] {
      meet();
      payloads.clear();
    });
    meet();
    ranks.drop(0);
    handles.join();
  }
}

// --- Refusals

TEST(Payload, RefusalsNameTheArgumentAndEndNothing) {
  Ranks ranks({.ranks = 2});
  Member& me = *ranks.members()[1];
  const std::string most = std::to_string(PTRDIFF_MAX / 8);
  for (const std::size_t n : {kMost, kMost / 8 + 1, std::size_t{PTRDIFF_MAX / 8 + 1}}) {
    expect_refused(me.allocate<double>(n).status(), {"n is " + std::to_string(n), "up to " + most});
  }
  const auto expect_no_memory = [&](std::size_t n, const std::vector<std::string>& words) {
    const Status status = me.allocate<double>(n).status();
    EXPECT_EQ(status.code(), Code::out_of_memory);
    expect_words(status, words);
  };
  // More than the address space.
  expect_no_memory(PTRDIFF_MAX / 8, {"n is " + most, "rank 1", "Cannot allocate memory"});
  {
    SystemCalls calls = real_system_calls();
    calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
      errno = EPERM;
      return MAP_FAILED;
    };
    const ScopedSystemCalls scope(calls);
    expect_no_memory(3, {"n is 3;", "24 bytes", "rank 1", "Operation not permitted"});
  }
  expect_ok(ranks.run([](Member& member) {
    auto x = member.allocate<double>(10).value();
    return member.all_reduce(x.span());
  }));
}

TEST(Payload, AfterTheEndOfTheCommunicator) {
  Ranks ranks({.ranks = 2});
  auto payload = ranks.members()[0]->allocate<int>(3).value();
  ranks.communicator().abort("enough");
  payload.span()[2] = 5;
  EXPECT_EQ(payload.span().size(), 3U) << "it is the member's, which is still there";
  EXPECT_TRUE(ranks.members()[0]->allocate<int>(3).ok());
}

TEST(Payload, AForkedChildHasACopy) {
  std::optional<Ranks> ranks(std::in_place, CommunicatorOptions{.ranks = 1});
  Member& me = *ranks->members()[0];
  auto payload = me.allocate<int>(5000).value();
  payload.span()[4999] = 1;
  EXPECT_EQ(testing_processes::run_in_child([&] {
              int* const at = payload.span().data();
              if (payload.span().size() != 5000 || at[4999] != 1) return 1;
              at[4999] = 2;
              if (me.allocate<int>(1).status().code() != Code::forked) return 2;
              payload = {};
              if (at[4999] != 2) return 3;  // the page is still mapped
              ranks.reset();
              return at[4999] == 2 ? 0 : 4;
            }),
            "exit 0");
  EXPECT_EQ(payload.span()[4999], 1) << "a copy";
}

}  // namespace
}  // namespace rankine
