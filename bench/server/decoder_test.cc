// Tests that the decoder gives the same tokens on every rank, for every number of ranks and in
// every batch.
#include "bench/server/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "bench/server/decoder.h"
#include "bench/server/small_clients.h"
#include "engine/api/team.h"

namespace rankine::server {
namespace {

constexpr int kLongest = 40;

// Computes the prompt in pieces of `piece` tokens, then the answer token by token.
std::vector<int> answer(Decoder& decoder, const std::vector<int>& prompt, int wanted, int piece,
                        int sequence = 0) {
  std::vector<int> tokens = prompt;
  int done = 0;
  while (tokens.size() < prompt.size() + static_cast<std::size_t>(wanted)) {
    const int now = std::min(piece, static_cast<int>(tokens.size()) - done);
    Batch batch;
    batch.add(
        {.sequence = sequence,
         .position = done,
         .tokens = now,
         .wants_next = done + now == static_cast<int>(tokens.size())},
        std::span(tokens).subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(now)));
    done += now;
    const std::vector<int> next = decoder.step(batch);
    tokens.insert(tokens.end(), next.begin(), next.end());
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

const std::vector<int> kPrompt = {3, 141, 59, 26, 53, 58, 97, 93, 238, 46};

// The answers of all ranks, with Rankine's collectives.
std::vector<std::vector<int>> answers(int ranks, int piece) {
  std::vector<std::vector<int>> all(static_cast<std::size_t>(ranks));
  const auto team = Team::create({.ranks = ranks}).value();
  team->run([&](Member& me) {
        RankineExchange exchange(me);
        Decoder decoder(kSmallModel, kLongest, 7, exchange);
        all[static_cast<std::size_t>(me.rank())] = answer(decoder, kPrompt, 20, piece);
      })
      .throw_if_error();
  return all;
}

TEST(Decoder, GivesTheSameTokensForEveryNumberOfRanks) {
  const std::vector<int> alone = answers(1, 100).front();
  ASSERT_EQ(alone.size(), 20u);
  EXPECT_GT(std::set<int>(alone.begin(), alone.end()).size(), 5u) << "tokens that differ";
  for (const int ranks : {2, 4}) {
    for (const std::vector<int>& tokens : answers(ranks, 100)) EXPECT_EQ(tokens, alone) << ranks;
  }
}

TEST(Decoder, TakesPromptsInPieces) {
  const std::vector<int> alone = answers(1, 100).front();
  for (const int piece : {1, 3, 7}) EXPECT_EQ(answers(2, piece).back(), alone) << piece;
}

TEST(Decoder, TokensDoNotDependOnTheBatch) {
  const std::vector<int> other = {9, 8, 7, 6};
  std::vector<int> alone, apart, first, second;
  const auto team = Team::create({.ranks = 2}).value();
  team->run([&](Member& me) {
        RankineExchange exchange(me);
        Decoder decoder(kSmallModel, kLongest, 7, exchange);
        const std::vector<int> a = answer(decoder, kPrompt, 6, 100, 3);
        const std::vector<int> b = answer(decoder, other, 6, 100, 5);
        std::vector<int> x = kPrompt, y = other;
        std::size_t done_x = 0, done_y = 0;
        for (int i = 0; i < 6; ++i) {
          Batch batch;
          const auto add = [&batch](int sequence, const std::vector<int>& tokens,
                                    std::size_t& done) {
            const std::size_t now = tokens.size() - done;
            batch.add({sequence, static_cast<int>(done), static_cast<int>(now), true},
                      std::span(tokens).last(now));
            done = tokens.size();
          };
          add(1, x, done_x);
          add(0, y, done_y);
          const std::vector<int> next = decoder.step(batch);
          x.push_back(next[0]), y.push_back(next[1]);
        }
        if (me.rank() != 0) return;
        alone = a, apart = b;
        first.assign(x.end() - 6, x.end()), second.assign(y.end() - 6, y.end());
      })
      .throw_if_error();
  EXPECT_EQ(first, alone);
  EXPECT_EQ(second, apart);
  EXPECT_NE(alone, apart);
}

TEST(Decoder, IsTheSameOverABarrier) {
  Barrier barrier(2);
  std::vector<int> tokens;
  const auto team = Team::create({.ranks = 2}).value();
  team->run([&](Member& me) {
        BarrierExchange exchange(barrier, me.rank());
        Decoder decoder(kSmallModel, kLongest, 7, exchange);
        const std::vector<int> mine = answer(decoder, kPrompt, 20, 4);
        if (me.rank() == 1) tokens = mine;
      })
      .throw_if_error();
  EXPECT_EQ(tokens, answers(2, 100).front());
}

TEST(Decoder, SaysWhatCannotBeDivided) {
  EXPECT_TRUE(check_ranks(kSmallModel, 4).ok());
  const Status status = check_ranks(kSmallModel, 3);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.text(), "ranks is 3; it must divide kv_heads, which is 4");
}

}  // namespace
}  // namespace rankine::server
