#include "engine/api/mpi/node_mail.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "engine/api/mpi/node_mail.h"

namespace rankine {
namespace {

// What ranks of a node share.
class Shared {
 public:
  explicit Shared(int ranks) : lines_(NodeMail::bytes(ranks) / kCacheLine) {}
  std::byte* begin() { return lines_.front().bytes; }

 private:
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine] = {};
  };
  std::vector<Line> lines_;
};

TEST(NodeMail, AMessageIsThereUntilItHasBeenUsed) {
  Shared shared(3);
  NodeMail one(shared.begin(), 3, 1), two(shared.begin(), 3, 2);
  EXPECT_EQ(two.next(1).data, nullptr);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < NodeMail::kSlots; ++i) {
    std::byte* const room = one.room(2);
    ASSERT_NE(room, nullptr) << i;
    room[0] = static_cast<std::byte>(i);
    number = one.post(2, 100 + i);
  }
  EXPECT_EQ(one.room(2), nullptr) << "all slots are full";
  EXPECT_NE(one.room(0), nullptr) << "of another pair they are not";
  for (std::uint32_t i = 0; i < NodeMail::kSlots; ++i) {
    EXPECT_FALSE(one.is_used(2, number));
    const NodeMail::Message message = two.next(1);
    ASSERT_NE(message.data, nullptr);
    EXPECT_EQ(message.tag, 100 + i);
    EXPECT_EQ(message.data[0], static_cast<std::byte>(i));
    two.used(1);
  }
  EXPECT_TRUE(one.is_used(2, number));
  EXPECT_EQ(two.next(1).data, nullptr);
}

// The receiver reads what the sender's memory has, which the sender changes when it has been used:
// a thread sanitizer sees what is not ordered.
TEST(NodeMail, ThreadsHandMemoryToOneAnother) {
  constexpr std::uint64_t kMessages = 300;
  Shared shared(2);
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    NodeMail mail(shared.begin(), 2, 1);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      NodeMail::Message message = mail.next(0);
      for (; message.data == nullptr; message = mail.next(0)) yield_cpu();
      std::uint64_t with_the_word = 0;
      const std::uint64_t* where = nullptr;
      std::memcpy(&with_the_word, message.data, 8);
      std::memcpy(&where, message.data + 8, 8);
      if (message.tag != static_cast<std::uint32_t>(i) || with_the_word != i || *where != 3 * i) {
        ++wrong;
      }
      mail.used(0);
    }
  });
  NodeMail mail(shared.begin(), 2, 0);
  std::uint64_t data = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    std::byte* room = nullptr;
    while ((room = mail.room(1)) == nullptr) yield_cpu();
    data = 3 * i;
    const std::uint64_t* const where = &data;
    std::memcpy(room, &i, 8);
    std::memcpy(room + 8, &where, 8);
    const std::uint32_t number = mail.post(1, static_cast<std::uint32_t>(i));
    while (!mail.is_used(1, number)) yield_cpu();
  }
  reader.join();
  EXPECT_EQ(wrong, 0U);
}

// Counts up to `what`, a step each time that it is asked.
struct Work {
  int asked = 0, sum = 0;
};
bool go_on(void* of, int what) noexcept {
  Work& work = *static_cast<Work*>(of);
  if (++work.asked < what) return false;
  work.asked = 0;
  work.sum += what;
  return true;
}

TEST(Errands, AreDoneInTurnAndAskedUntilTheyAreOver) {
  const auto errands = std::make_unique<Errands>();
  Work first, second;
  ASSERT_TRUE(errands->post({go_on, &first, 3}));
  const std::uint32_t number = errands->number();
  ASSERT_TRUE(errands->post({go_on, &second, 1}));
  errands->serve();
  errands->serve();
  EXPECT_FALSE(errands->is_done(number));
  EXPECT_EQ(second.sum, 0) << "it waits for the first";
  errands->serve();
  EXPECT_TRUE(errands->is_done(number));
  EXPECT_TRUE(errands->is_done(errands->number()));
  EXPECT_EQ(first.sum, 3);
  EXPECT_EQ(second.sum, 1);
  for (std::uint32_t i = 0; i < Errands::kMost; ++i) ASSERT_TRUE(errands->post({go_on, &first, 1}));
  EXPECT_FALSE(errands->post({go_on, &first, 1})) << "there are enough of them";
}

TEST(Errands, OneThreadDoesAnothers) {
  const auto errands = std::make_unique<Errands>();
  constexpr int kRounds = 100;
  std::atomic<bool> over{false};
  std::thread carrier([&] {
    while (!over.load(std::memory_order_acquire)) {
      errands->serve();
      yield_cpu();
    }
  });
  Work work;
  for (int i = 0; i < kRounds; ++i) {
    while (!errands->post({go_on, &work, 2})) yield_cpu();
    while (!errands->post({go_on, &work, 1})) yield_cpu();
    while (!errands->is_done(errands->number())) yield_cpu();
    ASSERT_EQ(work.sum, 3 * (i + 1));
  }
  over.store(true, std::memory_order_release);
  carrier.join();
}

}  // namespace
}  // namespace rankine
