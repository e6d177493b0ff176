#include "bench/rivals/exchange.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

namespace rankine::rivals {
namespace {

constexpr std::size_t kRanks = 3;

// What a rank tells in an exchange: bytes that are another's in no other place.
std::byte byte_of(std::size_t exchange, std::size_t rank, std::size_t i) {
  return static_cast<std::byte>(exchange * 31 + rank * 7 + i);
}

// Of lengths that change, begun without waiting for those who are behind.
TEST(Exchange, GivesEveryRankWhatAllHaveTold) {
  const ExchangeSeats seats(kRanks);
  std::vector<std::size_t> wrong(kRanks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Exchange exchange(seats, rank);
      for (std::size_t number = 0; number < 500; ++number) {
        const std::size_t bytes = number % 7 == 0 ? ExchangeSeat::kMost : number % 5 * 100;
        std::vector<std::byte> own(bytes), all(kRanks * bytes);
        for (std::size_t i = 0; i < bytes; ++i) own[i] = byte_of(number, rank, i);
        if (!exchange.begin(own.data(), all.data(), bytes)) ++wrong[rank];
        own.assign(bytes, std::byte{});  // it has been read
        while (!exchange.ended()) continue;
        for (std::size_t at = 0; at < all.size(); ++at)
          wrong[rank] += all[at] != byte_of(number, at / bytes, at % bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<std::size_t>(kRanks));
}

TEST(Exchange, HasNotEndedWhileARankHasNotBegun) {
  const ExchangeSeats seats(2);
  Exchange first(seats, 0);
  Exchange second(seats, 1);
  EXPECT_TRUE(first.ended());
  const int own[] = {5, 6};
  int all[2][2] = {};
  EXPECT_TRUE(first.begin(&own[0], all[0], sizeof(int)));
  EXPECT_FALSE(first.ended());
  EXPECT_EQ(all[0][0], 0);
  EXPECT_TRUE(second.begin(&own[1], all[1], sizeof(int)));
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(all[0][0], 5);
  EXPECT_EQ(all[0][1], 6);
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(all[1][1], 6);
}

TEST(Exchange, RefusesMoreThanThereIsRoomFor) {
  const ExchangeSeats seats(1);
  Exchange exchange(seats, 0);
  const std::vector<std::byte> own(ExchangeSeat::kMost + 1);
  std::vector<std::byte> all(own.size());
  EXPECT_FALSE(exchange.begin(own.data(), all.data(), own.size()));
  EXPECT_TRUE(exchange.ended());
  EXPECT_TRUE(exchange.begin(own.data(), all.data(), ExchangeSeat::kMost));
  EXPECT_TRUE(exchange.ended());
}

}  // namespace
}  // namespace rankine::rivals
