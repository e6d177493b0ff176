// Collectives with one count per rank or pair (the v forms), with zero counts, by every algorithm;
// all-to-all with displacements; tokens that go to experts and return; and barriers that return the
// ranks' words.

#include <sys/mman.h>
#include <unistd.h>

#include <ctime>

#include "algorithms/catalogue.h"
#include "engine/api/experts.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/base/child_process.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using testing_processes::kChildrenMayHaveThreads;
using Elements = std::vector<std::uint32_t>;

// Returns the contribution of rank `from` to element i of natural block b.
std::uint32_t value(Rank from, std::size_t b, std::size_t i) {
  return static_cast<std::uint32_t>(from * 1'000'003) + static_cast<std::uint32_t>(b * 1009 + i);
}

// The blocks of a rank's input, or of its expected output, one after the other.
Elements expected(const CollectiveSpec& natural, Rank r, std::span<const std::size_t> counts,
                  bool output) {
  Elements all;
  for (int b = 0; b < natural.blocks; ++b) {
    const auto block = static_cast<std::size_t>(b);
    if (output ? !natural.must_hold(r, b) : !natural.initially_holds(r, b)) continue;
    for (std::size_t i = 0; i < counts[block]; ++i) {
      std::uint32_t sum = 0;
      for (Rank q = 0; q < natural.ranks; ++q) {
        if (output ? natural.must_include(r, b, q) : q == r) sum += value(q, block, i);
      }
      all.push_back(sum);
    }
  }
  return all;
}

struct Case {
  Collective collective;
  int ranks;
};

class Counts : public testing::TestWithParam<Case> {};

TEST_P(Counts, EveryAlgorithmMovesUnequalBlocks) {
  const auto [collective, ranks] = GetParam();
  const int blocks = natural_blocks(collective, ranks);
  std::vector<std::vector<std::size_t>> shapes(
      3, std::vector<std::size_t>(static_cast<std::size_t>(blocks)));
  for (std::size_t b = 0; b < shapes[0].size(); ++b) shapes[0][b] = b * 5 % 7;
  shapes[1][shapes[1].size() / 2] = 1000;  // all elements in one block
  for (std::size_t b = 0; b < shapes[2].size(); ++b) shapes[2][b] = b % 2 * 300 + 1;
  const auto team = Team::create({.ranks = ranks}).value();
  for (const Algorithm& algorithm : catalogue()) {
    Params params{.ranks = ranks};
    if (algorithm.collective != collective || algorithm.refusal(params)) continue;
    for (const auto& counts : shapes) {
      // The engine's choice, std::nullopt, is boards for short vectors.
      for (const std::optional<Transport> transport :
           {std::optional(Transport::direct), std::optional(Transport::mailbox),
            std::optional<Transport>()}) {
        const Rank root = ranks - 1;
        const CollectiveSpec natural{collective, ranks, blocks, root, 0};
        const Status status = team->run([&](Member& me) {
          const Elements in = expected(natural, me.rank(), counts, false);
          const Elements want = expected(natural, me.rank(), counts, true);
          Elements out(want.size());
          me.with_counts(collective, std::span<const std::uint32_t>(in),
                         std::span<std::uint32_t>(out), counts, root, ReduceOp::sum,
                         {.algorithm = algorithm.name, .transport = transport})
              .throw_if_error();
          EXPECT_EQ(out, want) << algorithm.name << ", "
                               << (transport ? name_of(*transport) : "any transport") << ", rank "
                               << me.rank();
        });
        ASSERT_TRUE(status.ok()) << algorithm.name << ": " << status.text();
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Collective c : {Collective::all_gather, Collective::reduce_scatter,
                             Collective::all_to_all, Collective::gather, Collective::scatter}) {
    for (const int n : {1, 2, 3, 8}) all.push_back({c, n});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllCollectives, Counts, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(name_of(test.param.collective)) + "_" +
                                  std::to_string(test.param.ranks);
                         });

// Corollary 3 of Traff's paper: unequal blocks with any skips; one rank may have all elements.
TEST(Counts, CirculantMovesUnequalBlocksWithAnySkips) {
  constexpr int kRanks = 7;
  const std::vector<std::vector<int>> all_skips = {
      {}, {6, 5, 4, 3, 2, 1}, {1, 2, 4}, {3, 1, 2}, {4, 3, 2, 1}};
  const auto team = Team::create({.ranks = kRanks}).value();
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
    const CollectiveSpec natural{collective, kRanks, kRanks};
    for (const std::vector<int>& skips : all_skips) {
      for (const int owner : {-1, 0, 4}) {  // -1: each rank has a different count
        std::vector<std::size_t> counts(kRanks, 0);
        for (int b = 0; owner < 0 && b < kRanks; ++b) counts[static_cast<std::size_t>(b)] = b * 37u;
        if (owner >= 0) counts[static_cast<std::size_t>(owner)] = 501;
        const Status status = team->run([&](Member& me) {
          const Elements in = expected(natural, me.rank(), counts, false);
          const Elements want = expected(natural, me.rank(), counts, true);
          Elements out(want.size());
          me.with_counts(collective, std::span<const std::uint32_t>(in),
                         std::span<std::uint32_t>(out), counts, 0, ReduceOp::sum,
                         {.algorithm = "circulant", .skips = skips})
              .throw_if_error();
          EXPECT_EQ(out, want) << name_of(collective) << ", rank " << me.rank();
        });
        ASSERT_TRUE(status.ok()) << status.text();
      }
    }
  }
}

// All-to-all with displacements: each rank chooses the offsets of its blocks.

using Bytes = std::vector<std::uint8_t>;
using Sizes = std::vector<std::size_t>;

std::uint8_t byte_between(Rank from, Rank to, std::size_t i) {
  return static_cast<std::uint8_t>(from * 31 + to * 7 + static_cast<int>(i) + 1);
}

// The offsets of a rank's blocks, in random order with gaps, and the number of bytes to the end.
struct Places {
  Sizes at;
  std::size_t end = 0;
};
Places places(const Sizes& sizes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Places out;
  out.at.resize(sizes.size());
  for (const std::size_t i : order) {
    out.end += random() % 5;
    out.at[i] = out.end;
    out.end += sizes[i];
  }
  out.end += 3;
  return out;
}

struct Mine {
  Sizes sent, received;
  Places from, to;
  Bytes in, out, want;

  Mine(Rank me, int ranks, const Sizes& counts, unsigned seed) {
    const auto n = static_cast<std::size_t>(ranks), self = static_cast<std::size_t>(me);
    for (std::size_t q = 0; q < n; ++q) {
      sent.push_back(counts[self * n + q]);
      received.push_back(counts[q * n + self]);
    }
    from = places(sent, seed * 100 + static_cast<unsigned>(me));
    to = places(received, seed * 100 + 50 + static_cast<unsigned>(me));
    in.assign(from.end, 0xee);
    out.assign(to.end, 0x5a);
    want = out;
    for (std::size_t q = 0; q < n; ++q) {
      const auto other = static_cast<Rank>(q);
      for (std::size_t i = 0; i < sent[q]; ++i) in[from.at[q] + i] = byte_between(me, other, i);
      for (std::size_t i = 0; i < received[q]; ++i) want[to.at[q] + i] = byte_between(other, me, i);
    }
  }
};

Sizes counts_of(int ranks, bool few_large) {
  Sizes counts;
  for (int pair = 0; pair < ranks * ranks; ++pair) {
    const int count = few_large ? (pair % 3 == 0 ? 700 : 0) : pair * 5 % 11;
    counts.push_back(static_cast<std::size_t>(count));
  }
  return counts;
}

class Displaced : public testing::TestWithParam<int> {};

// Each rank chooses: both lists, one list, or no list.
TEST_P(Displaced, RanksNeedNotDoAlike) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  for (int turn = 0; turn < 8; ++turn) {
    const Sizes counts = counts_of(ranks, turn >= 4);
    const auto results = all.run([&](Member& me) -> Status {
      const int way = (me.rank() + turn) % 4;
      Mine mine(me.rank(), ranks, counts, 9);
      Bytes dense_in, dense_want;
      for (Rank q = 0; q < ranks; ++q) {
        const auto other = static_cast<std::size_t>(q);
        for (std::size_t i = 0; i < mine.sent[other]; ++i)
          dense_in.push_back(byte_between(me.rank(), q, i));
        for (std::size_t i = 0; i < mine.received[other]; ++i)
          dense_want.push_back(byte_between(q, me.rank(), i));
      }
      Bytes dense_out(dense_want.size());
      const bool in_list = (way & 1) != 0, out_list = (way & 2) != 0;
      Displacements places;
      if (in_list) places.in = mine.from.at;
      if (out_list) places.out = mine.to.at;
      Bytes& in = in_list ? mine.in : dense_in;
      Bytes& out = out_list ? mine.out : dense_out;
      // A started call in front of a blocking call.
      auto first = me.async().all_to_all(in, out, counts, places);
      if (!first.ok()) return first.status();
      Status status = me.all_to_all(in, out, counts, places);
      if (status.ok()) status = first->wait();
      EXPECT_EQ(out, out_list ? mine.want : dense_want) << "rank " << me.rank() << ", way " << way;
      return status;
    });
    expect_ok(results);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Displaced, testing::Values(1, 2, 5, 9));

// The results overwrite the inputs, because all inputs are in flight by then.
TEST(Displacement, InAndOutMayOverlap) {
  Ranks all({.ranks = 3, .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([](Member& me) -> Status {
    std::vector<std::int32_t> data(4, me.rank());
    const Sizes from = {0, 4, 8}, to = {12, 8, 4};  // bytes
    const Sizes counts(9, 1);
    Status status =
        me.all_to_all(std::span<const std::int32_t>(data), std::span(data), counts, {from, to});
    EXPECT_EQ(data, (std::vector<std::int32_t>{me.rank(), 2, 1, 0}));
    // One element goes to all ranks, without one copy per rank.
    const Sizes same = {4, 4, 4};
    std::vector<std::int32_t> out(3);
    if (status.ok()) status = me.all_to_all(data, out, counts, {same, {}});
    EXPECT_EQ(out, (std::vector<std::int32_t>{2, 2, 2}));
    return status;
  }));
}

TEST(Displacement, WhatIsWrongIsNamed) {
  Ranks all({.ranks = 2});
  Member& me = *all.members()[0];
  std::vector<std::int32_t> in(8, 1), out(8);
  const Sizes counts = {2, 2, 2, 2}, good = {0, 8}, three = {0, 8, 16}, overlap = {4, 0},
              far = {0, 28}, huge = {0, std::numeric_limits<std::size_t>::max() - 3};
  for (const auto& [places, words] : std::vector<std::pair<Displacements, std::string>>{
           {{three, good}, "displacements.in has 3 entries"},
           {{good, three}, "displacements.out has 3 entries"},
           {{good, overlap}, "displacements.out[0] is 4"},
           {{far, good}, "in has 32 bytes; the block to rank 1 ends at byte 36"},
           {{good, far}, "out has 32 bytes; the block from rank 1 ends at byte 36"},
           {{huge, good}, "displacements.in[1] is 18446744073709551612; allowed are 0 to"}}) {
    expect_refused(me.all_to_all(in, out, counts, places), {words});
    expect_refused(me.async().all_to_all(in, out, counts, places).status(), {words});
  }
  const Displacements places{good, good};
  Call call{.collective = Collective::all_reduce,
            .in = in.data(),
            .out = out.data(),
            .count = 2,
            .type = DataType::i32,
            .displacements = &places};
  expect_refused(me.call(call), {"displacements are given to all_reduce"});
  expect_refused(me.start(call).status(), {"displacements are given to all_reduce"});
  call.collective = Collective::all_to_all;
  call.in = nullptr;
  expect_refused(me.call(call), {"in is null", "16 bytes"});
  call.in = in.data();
  call.out = nullptr;
  expect_refused(me.call(call), {"out is null", "16 bytes"});
  call.count = 0;
  call.counts = good;
  expect_refused(me.call(call), {"counts has 2 entries", "2 ranks"});
  call.counts = {};
  expect_ok(all.run([&](Member& each) { return each.call(call); }));  // 0 needs no buffer
}

// Tokens that go to experts and return.

// The tokens and choices of all ranks, at random, and what a serial program makes of them.
template <class T, class R = T>
struct Layer {
  ExpertsOptions options;
  std::vector<std::vector<T>> tokens, rows;  // by rank; rows: as they arrive
  std::vector<std::vector<R>> out;
  std::vector<std::vector<std::int32_t>> indices;
  std::vector<std::vector<float>> weights;
  std::vector<Sizes> counts, dropped;

  // `used`: no token chooses an expert from this one on.
  Layer(const ExpertsOptions& asked, int ranks, int used, unsigned seed) : options(asked) {
    options.type = data_type_of<T>;
    options.result_type = data_type_of<R>;
    const auto n = static_cast<std::size_t>(ranks), width = options.row_elements;
    const auto choices = static_cast<std::size_t>(options.choices);
    std::mt19937 random(seed);
    const auto number = [&] { return static_cast<float>(random() % 2001) / 1000.0F - 1.0F; };
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t count = r % 3 == 1 ? 0 : random() % 40;
      tokens.emplace_back();
      for (std::size_t i = 0; i < count * width; ++i) tokens[r].push_back(T(number()));
      indices.emplace_back();
      weights.emplace_back();
      for (std::size_t i = 0; i < count * choices; ++i) {
        indices[r].push_back(static_cast<std::int32_t>(random() % (used + 1U)) - 1);
        weights[r].push_back(number());
      }
      out.emplace_back(count * width);
    }
    rows.resize(n);
    dropped.resize(n);
    std::vector<std::vector<float>> sums;
    for (const auto& one : out) sums.emplace_back(one.size());
    const int here = options.experts / ranks;
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> kept;  // rank and position
    for (int e = 0; e < options.experts; ++e) {
      auto& mine = kept.emplace_back();
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < indices[r].size(); ++i) {
          if (indices[r][i] != e) continue;
          if (options.capacity > 0 && mine.size() == options.capacity) {
            dropped[r].push_back(i);
            indices[r][i] = -2 - e;  // not summed below
          } else {
            mine.push_back({r, i});
          }
        }
      }
      const auto at = static_cast<std::size_t>(e / here);
      counts.resize(at + 1);
      counts[at].push_back(mine.size());
      for (const auto& [r, i] : mine) {
        const T* const token = &tokens[r][i / choices * width];
        rows[at].insert(rows[at].end(), token, token + width);
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      std::ranges::sort(dropped[r]);
      for (std::size_t i = 0; i < indices[r].size(); ++i) {
        if (indices[r][i] < -1) indices[r][i] = -2 - indices[r][i];
        if (indices[r][i] < 0 || std::ranges::binary_search(dropped[r], i)) continue;
        for (std::size_t j = 0; j < width; ++j) {
          const std::size_t k = i / choices * width + j;
          sums[r][k] += weights[r][i] * static_cast<float>(worked(indices[r][i], tokens[r][k]));
        }
      }
      std::ranges::transform(sums[r], out[r].begin(), [](float sum) { return R(sum); });
    }
  }
  static R worked(int expert, T x) {
    return R(static_cast<float>(x) * static_cast<float>(expert + 1));
  }
  // The rank's part: rows arrive, are worked on, in place if the types are equal, and return.
  // Tokens and results change as soon as the calls return. `payloads`: all are payloads.
  Status play(Member& me, Experts& experts, bool payloads = false) const {
    const auto self = static_cast<std::size_t>(me.rank());
    const auto made = [&]<class E>(std::size_t count, std::vector<E>& plain, Payload<E>& payload) {
      if (payloads) payload = me.allocate<E>(count).value();
      plain.resize(payloads ? 0 : count);
      const std::span<E> all = payloads ? payload.span() : std::span<E>(plain);
      std::ranges::fill(all, E(7.0F));
      return all;
    };
    std::vector<T> plain_sent, plain_arrived;
    std::vector<R> plain_results;
    Payload<T> payload_sent, payload_arrived;
    Payload<R> payload_results;
    const std::size_t elements = rows[self].size();
    const auto sent = made(tokens[self].size(), plain_sent, payload_sent);
    auto arrived = made(elements + 3 * options.row_elements, plain_arrived, payload_arrived);
    std::ranges::copy(tokens[self], sent.begin());
    Status status = experts.dispatch(sent, indices[self], arrived);
    if (!status.ok()) return status;
    std::ranges::fill(sent, T(9.0F));
    EXPECT_TRUE(std::ranges::equal(experts.counts(), counts[self]));
    EXPECT_TRUE(std::ranges::equal(experts.dropped(), dropped[self]));
    arrived = arrived.first(elements);
    EXPECT_TRUE(same_bytes(arrived, std::span(rows[self]))) << "rank " << self;
    std::span<R> results;
    if constexpr (std::is_same_v<T, R>) {
      results = arrived;
    } else {
      results = made(elements, plain_results, payload_results);
    }
    std::size_t i = 0;
    int expert = me.rank() * options.experts / me.ranks();
    for (const std::size_t count : counts[self]) {
      for (const std::size_t end = i + count * options.row_elements; i < end; ++i) {
        results[i] = worked(expert, arrived[i]);
      }
      ++expert;
    }
    std::vector<R> returned(out[self].size());
    status = experts.combine(results, weights[self], returned);
    std::ranges::fill(results, R(9.0F));
    EXPECT_TRUE(same_bytes(std::span(returned), std::span(out[self]))) << "rank " << self;
    return status;
  }
  template <class E, class F>
  static bool same_bytes(std::span<E> one, std::span<F> other) {
    return std::ranges::equal(std::as_bytes(one), std::as_bytes(other));
  }
};

// In turns: all experts are in use, some are without rows, one has all rows, and no row moves.
template <class T, class R>
std::vector<Layer<T, R>> layers_of(int ranks, const ExpertsOptions& options, unsigned turns = 8) {
  std::vector<Layer<T, R>> layers;
  for (unsigned turn = 0; turn < turns; ++turn) {
    const int used[] = {options.experts, options.experts / 2 + 1, 1, 0};
    layers.emplace_back(options, ranks, used[turn % 4], turn);
  }
  return layers;
}

template <class T, class R = T>
void expect_experts_work(int ranks, const ExpertsOptions& options) {
  const auto layers = layers_of<T, R>(ranks, options);
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([&](Member& me) -> Status {
    auto experts = Experts::create(me, layers.front().options);
    if (!experts.ok()) return experts.status();
    for (const auto& layer : layers) {
      if (Status status = layer.play(me, *experts); !status.ok()) return status;
    }
    return {};
  }));
}

class ExpertsOf : public testing::TestWithParam<int> {};

TEST_P(ExpertsOf, DoWhatASerialProgramDoes) {
  const int ranks = GetParam();
  for (const int each : {1, 3}) {
    for (const std::size_t capacity : {0, 7}) {
      expect_experts_work<float>(
          ranks, {.experts = each * ranks, .choices = 2, .row_elements = 5, .capacity = capacity});
      expect_experts_work<BFloat16>(
          ranks, {.experts = each * ranks, .row_elements = 130, .capacity = capacity});
      expect_experts_work<Float8E4M3>(
          ranks, {.experts = each * ranks, .choices = 3, .row_elements = 64, .capacity = capacity});
      expect_experts_work<Float8E4M3, BFloat16>(
          ranks, {.experts = each * ranks, .choices = 4, .row_elements = 33, .capacity = capacity});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExpertsOf, testing::Values(1, 2, 3, 8));

// Rows of processes pass through shared memory, in several turns; payloads are read in place.
TEST(Experts, OfProcessesDoWhatASerialProgramDoes) {
  if (!kChildrenMayHaveThreads) GTEST_SKIP() << "children of a process that had threads";
  constexpr int kProcesses = 3;
  const ExpertsOptions options{.experts = 6, .choices = 6, .row_elements = 10'001, .capacity = 20};
  const auto plain = layers_of<float, float>(kProcesses, options, 4);
  const auto mixed = layers_of<Float8E4M3, BFloat16>(kProcesses, options, 4);
  const std::string name = "experts." + std::to_string(getpid());
  const auto rank = [&](Rank r) {
    auto made = Communicator::create(
        {.ranks = kProcesses, .timeout = std::chrono::minutes(2), .rank = r, .name = name});
    const auto me = made.value()->join(r).value();
    const auto play = [&](const auto& layers) {
      auto experts = Experts::create(*me, layers.front().options).value();
      for (const bool payloads : {false, true}) {
        for (const auto& layer : layers) layer.play(*me, experts, payloads).throw_if_error();
      }
    };
    play(plain);
    play(mixed);
    return testing::Test::HasFailure() ? 1 : 0;
  };
  std::vector<ChildProcess> children;
  for (Rank r = 0; r < kProcesses; ++r) {
    children.emplace_back([&, r] {
      testing_processes::is_child = true;
      return rank(r);
    });
  }
  for (ChildProcess& child : children) EXPECT_EQ(describe_end(child.wait()), "exit 0");
}

// The others name the rank that leaves before its dispatch() or combine().
TEST(Experts, ALostRankIsNamed) {
  const Layer<float> layer({.experts = 3, .row_elements = 3}, 3, 3, 1);
  for (const bool dispatches : {false, true}) {
    Ranks all({.ranks = 3, .timeout = std::chrono::minutes(2)});
    all.run([&](Member& me) -> Status {
      const auto self = static_cast<std::size_t>(me.rank());
      std::optional<Experts> experts(Experts::create(me, layer.options).value());
      std::vector<float> rows(layer.rows[self].size()), out(layer.out[self].size());
      const auto dispatch = [&] {
        return experts->dispatch(layer.tokens[self], layer.indices[self], rows);
      };
      Status status;
      if (dispatches || me.rank() != 2) status = dispatch();
      EXPECT_EQ(status.ok(), dispatches || me.rank() == 2) << status.text();
      if (me.rank() == 2) {
        experts.reset();
        all.drop(2);
        return status;
      }
      if (dispatches) status = experts->combine(rows, {}, out);
      EXPECT_EQ(status.code(), Code::rank_lost);
      expect_words(status, {"rank 2"});
      EXPECT_EQ(dispatch().code(), Code::rank_lost);
      return status;
    });
  }
}

// Rank 1 reads rank 0's tokens in a page that it may not read yet; the signal ends the communicator
// first. Rank 0's call returns only when rank 1 has read the page.
std::atomic<Communicator*> to_abort{nullptr};
std::atomic<void*> locked_page{nullptr};
std::atomic<bool> is_read{false};
void abort_and_unlock(int) {
  to_abort.load()->abort();
  const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
  nanosleep(&pause, nullptr);
  is_read = true;
  mprotect(locked_page.load(), 4096, PROT_READ);
}

TEST(Experts, AFailedCallReturnsWhenNoRankReads) {
  const long size = 4096;
  void* const page = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  is_read = false;
  to_abort = &all.communicator();
  locked_page = page;
  struct sigaction unlock {
  }, before{};
  unlock.sa_handler = abort_and_unlock;
  sigaction(SIGSEGV, &unlock, &before);
  const auto results = all.run([&](Member& me) -> Status {
    auto experts =
        Experts::create(me, {.experts = 2, .row_elements = 1024, .type = DataType::f32}).value();
    const std::int32_t to_rank_1[] = {1};
    std::vector<float> rows(1024);
    const Experts::Buffer tokens{me.rank() == 0 ? page : nullptr, me.rank() == 0 ? 1024u : 0,
                                 DataType::f32};
    Status status = experts.dispatch(tokens, std::span(to_rank_1).first(me.rank() == 0 ? 1 : 0),
                                     Experts::Buffer{rows.data(), rows.size(), DataType::f32});
    EXPECT_TRUE(is_read);
    return status;
  });
  sigaction(SIGSEGV, &before, nullptr);
  munmap(page, size);
  // A rank whose call was complete when it looked has not failed.
  for (const Status& status : results) {
    EXPECT_TRUE(status.ok() || status.code() == Code::aborted) << status.text();
  }
}

// A NaN with any payload stays a NaN.
TEST(Experts, AWeightMayBeAnyNaN) {
  expect_ranks_succeed({.ranks = 1}, [](Member& me) -> Status {
    auto experts = Experts::create(me, {.experts = 1, .row_elements = 2}).value();
    std::vector<BFloat16> rows(2), out(2);
    const std::vector<BFloat16> token(2, BFloat16(1.0F));
    Status status = experts.dispatch(token, std::vector<std::int32_t>(1), rows);
    if (status.ok()) {
      status = experts.combine(rows, std::vector{std::bit_cast<float>(0x7fff'ffffU)}, out);
    }
    EXPECT_TRUE(std::isnan(static_cast<float>(out[1])));
    return status;
  });
}

// A modelled network takes time for the rows.
TEST(Experts, RowsTakeTimeOnANetwork) {
  expect_team_succeeds({.ranks = 2, .network = find_call_network("plain").value()}, [](Member& me) {
    auto experts = Experts::create(me, {.experts = 2, .row_elements = 100'000}).value();
    const std::vector<BFloat16> token(100'000, BFloat16(1.0F));
    std::vector<BFloat16> rows(100'000), out(100'000);
    const auto time = [&](std::int32_t expert) {
      const double begin = me.model_time();
      experts.dispatch(token, std::vector{expert}, rows).throw_if_error();
      const double middle = me.model_time();
      rows.resize(expert < 0 ? 0 : rows.size());
      experts.combine(rows, {}, out).throw_if_error();
      return std::pair(middle - begin, me.model_time() - middle);
    };
    const auto moving = time(1 - me.rank()), resting = time(-1);
    EXPECT_GT(moving.first, resting.first);
    EXPECT_GT(moving.second, resting.second);
  });
}

// A rank's invalid argument is an error on all ranks; no row moves, and the next dispatch succeeds.
TEST(Experts, WhatIsWrongIsNamedOnAllRanks) {
  const Layer<float> layer({.experts = 4, .choices = 2, .row_elements = 3}, 2, 4, 1);
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  expect_ok(all.run([&](Member& me) -> Status {
    auto experts = Experts::create(me, layer.options).value();
    const auto self = static_cast<std::size_t>(me.rank());
    std::vector<float> rows(layer.rows[self].size()), out(layer.out[self].size());
    expect_refused(experts.combine(rows, {}, out), {"combine: no rows are out"});
    const auto expect_on_rank_0 = [&](const auto& wrong, const std::string& words) {
      auto tokens = layer.tokens[self];
      auto indices = layer.indices[self];
      if (me.rank() == 0) wrong(tokens, indices, rows);
      expect_refused(experts.dispatch(tokens, indices, rows),
                     {me.rank() == 0 ? words : "rank 0 has refused its arguments"});
      rows.resize(layer.rows[self].size());
    };
    using Tokens = std::vector<float>;
    using Indices = std::vector<std::int32_t>;
    expect_on_rank_0([](Tokens&, Indices& indices, Tokens&) { indices[3] = 4; },
                     "indices[3] is 4; allowed are 0 to 3, and -1 for no expert");
    expect_on_rank_0([](Tokens&, Indices& indices, Tokens&) { indices[0] = -2; },
                     "indices[0] is -2; allowed are 0 to 3, and -1 for no expert");
    expect_on_rank_0([](Tokens&, Indices& indices, Tokens&) { indices.pop_back(); },
                     "elements; allowed are multiples of 2, the experts per token");
    expect_on_rank_0([](Tokens& tokens, Indices&, Tokens&) { tokens.pop_back(); }, "rows of 3");
    std::vector<float> few(me.rank() == 0 ? rows.size() - 1 : rows.size());
    expect_refused(experts.dispatch(layer.tokens[self], layer.indices[self], few),
                   {"rows of rank 0 has room for", "rows arrive: give more room, or all ranks"});
    std::vector<double> other(3);
    expect_refused(experts.dispatch(layer.tokens[self], layer.indices[self], other),
                   {"rows has elements of f64; allowed is f32, as in ExpertsOptions"});
    expect_ok({me.group([&] {
      expect_refused(experts.dispatch(layer.tokens[self], layer.indices[self], rows),
                     {"dispatch: a group() is open"});
    })});
    ChildProcess child([&] {
      const Status status = experts.dispatch(layer.tokens[self], layer.indices[self], rows);
      return status.code() == Code::forked ? 0 : 1;
    });
    EXPECT_EQ(describe_end(child.wait()), "exit 0");
    if (Status status = layer.play(me, experts); !status.ok()) return status;
    if (Status status = experts.dispatch(layer.tokens[self], layer.indices[self], rows);
        !status.ok()) {
      return status;
    }
    expect_on_rank_0([](Tokens& tokens, Indices&, Tokens&) { tokens.pop_back(); }, "rows of 3");
    expect_refused(experts.combine(rows, {}, out), {"combine: no rows are out"});
    if (Status status = experts.dispatch(layer.tokens[self], layer.indices[self], rows);
        !status.ok()) {
      return status;
    }
    expect_refused(experts.combine(rows, std::vector<float>(1), out), {"weights has 1 elements"});
    std::vector<float> one(1);
    expect_refused(experts.combine(one, {}, out), {"results has 1 elements; allowed are"});
    expect_refused(experts.combine(rows, {}, one), {"out has 1 elements; allowed are"});
    Status status = experts.combine(rows, layer.weights[self], out);
    expect_refused(experts.combine(rows, {}, out), {"combine: no rows are out"});
    return status;
  }));
  Member& me = *all.members()[0];
  for (const auto& [options, words] : std::vector<std::pair<ExpertsOptions, std::string>>{
           {{.experts = 3, .row_elements = 1}, "experts is 3; allowed are multiples of 2"},
           {{.experts = 2, .choices = 0, .row_elements = 1}, "choices is 0; allowed are 1"},
           {{.experts = 2}, "row_elements is 0; allowed are 1 to"},
           {{.experts = 2, .row_elements = 1, .type = DataType::f64},
            "type is f64; allowed are f32, f16, bf16, f8e4m3 and f8e5m2"},
           {{.experts = 2, .row_elements = 1, .result_type = DataType::i8},
            "result_type is i8; allowed are f32, f16, bf16, f8e4m3 and f8e5m2"}}) {
    expect_refused(Experts::create(me, options).status(), {words});
  }
}

TEST(Experts, OptionsAreEqualOnAllRanks) {
  using Change = void (*)(ExpertsOptions&);
  for (const Change change :
       {Change([](ExpertsOptions& options) { options.capacity = 2; }),
        Change([](ExpertsOptions& options) { options.row_elements = 2; }),
        Change([](ExpertsOptions& options) { options.experts = 4; }),
        Change([](ExpertsOptions& options) { options.type = DataType::f16; }),
        Change([](ExpertsOptions& options) { options.result_type = DataType::f32; })}) {
    Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
    expect_all(all.run([&](Member& me) {
      ExpertsOptions options{
          .experts = 2, .row_elements = 1, .capacity = 1, .result_type = DataType::bf16};
      if (me.rank() == 1) change(options);
      auto experts = Experts::create(me, options).value();
      return experts.dispatch({nullptr, 0, options.type}, {}, {nullptr, 0, options.type});
    }),
               Code::mismatch, {});
  }
}

// Barriers that return the words of all ranks.

struct Note {
  std::int32_t rank;
  std::array<char, 12> text;
  bool operator==(const Note&) const = default;
};

class Barriers : public testing::TestWithParam<int> {};

TEST_P(Barriers, HoldEverybodyAndTellWhatAllSaid) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  std::atomic<int> arrivals{0}, early{0};
  const auto results = all.run([&](Member& me) -> Status {
    for (int round = 1; round <= 20; ++round) {
      arrivals.fetch_add(1, std::memory_order_relaxed);
      const auto most = me.barrier(me.rank() * round, ReduceOp::max);
      if (!most.ok()) return most.status();
      if (arrivals.load(std::memory_order_relaxed) < (2 * round - 1) * ranks) early.fetch_add(1);
      EXPECT_EQ(*most, (ranks - 1) * round);
      arrivals.fetch_add(1, std::memory_order_relaxed);
      const Note mine{me.rank() + round, {"a note"}};
      std::vector<Note> notes(static_cast<std::size_t>(ranks));
      if (Status status = me.barrier(mine, notes); !status.ok()) return status;
      if (arrivals.load(std::memory_order_relaxed) < 2 * round * ranks) early.fetch_add(1);
      for (Rank r = 0; r < ranks; ++r) {
        EXPECT_EQ(notes[static_cast<std::size_t>(r)], (Note{r + round, {"a note"}}));
      }
    }
    return {};
  });
  expect_ok(results);
  EXPECT_EQ(early.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Barriers, testing::Values(1, 2, 5, 9));

TEST(Barrier, SaysWhatIsWrong) {
  expect_ranks_succeed({.ranks = 2}, [](Member& me) -> Status {
    std::vector<double> three(3);
    expect_refused(me.barrier(1.0, three), {"out has 24 elements"});
    EXPECT_EQ(me.barrier(1.5, ReduceOp::bxor).status().code(), Code::invalid_argument);
    EXPECT_EQ(me.barrier(me.rank() + 1.0, ReduceOp::avg).value(), 1.5);
    return {};
  });
}

}  // namespace
}  // namespace rankine
