// Ranks that throw, leave, never come or call something else: everybody returns, with the right code
// and a text that says who waits for whom, and the process can go on with new ranks.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using namespace std::chrono_literals;
using testing::Values;

constexpr auto kLong = 120'000ms;   // for failures that must not need a deadline
constexpr auto kShort = 1'000ms;    // for those that do

struct Setting {
  int ranks;
  std::size_t count;  // small: mailboxes; large: direct
  WaitPolicy::Mode mode;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.ranks << " ranks, " << s.count << " elements, mode " << static_cast<int>(s.mode);
}

class Failure : public testing::TestWithParam<Setting> {
 protected:
  CommunicatorOptions options(std::chrono::milliseconds timeout) const {
    return {.ranks = GetParam().ranks, .timeout = timeout,
            .wait = WaitPolicy{.mode = GetParam().mode, .probes = 4}};
  }
  Call all_reduce(std::vector<std::uint32_t>& in, std::vector<std::uint32_t>& out) const {
    return {.in = in.data(), .out = out.data(), .count = in.size(), .type = DataType::u32};
  }
  std::size_t count() const { return GetParam().count; }
  int ranks() const { return GetParam().ranks; }
  Rank last() const { return GetParam().ranks - 1; }

  // New ranks in the same process reduce as if nothing had happened.
  void expect_a_new_start() {
    Ranks fresh(options(kLong));
    const auto results = fresh.run([&](Member& me) {
      std::vector<std::uint32_t> data(count(), static_cast<std::uint32_t>(me.rank() + 1));
      Status status = me.all_reduce(std::span(data));
      const auto all = static_cast<std::uint32_t>(ranks() * (ranks() + 1) / 2);
      for (const std::uint32_t x : data) EXPECT_EQ(x, all);
      return status;
    });
    for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  }

  static void expect_all(const std::vector<Status>& results, Code code,
                         const std::vector<std::string>& words) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      EXPECT_EQ(name_of(results[r].code()), name_of(code)) << "rank " << r << ": "
                                                           << results[r].text();
      EXPECT_EQ(results[r].text(), results[0].text());
    }
    for (const std::string& word : words) {
      EXPECT_NE(results[0].text().find(word), std::string::npos)
          << "'" << word << "' is not in: " << results[0].text();
    }
  }
};

TEST_P(Failure, ARankThatThrowsEndsAllOthers) {
  auto team = Team::create({.ranks = ranks(), .timeout = kLong,
                            .wait = WaitPolicy{.mode = GetParam().mode, .probes = 4}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  std::vector<Status> results(static_cast<std::size_t>(last()));
  const Status status = (*team)->run([&](Member& me) {
    if (me.rank() == last()) throw std::runtime_error("out of luck");
    std::vector<std::uint32_t> in(count()), out(count());
    results[static_cast<std::size_t>(me.rank())] = me.call(all_reduce(in, out));
  });
  EXPECT_EQ(name_of(status.code()), "remote_error");
  EXPECT_NE(status.text().find("rank " + std::to_string(last()) + " threw: out of luck"),
            std::string::npos)
      << status.text();
  expect_all(results, Code::remote_error, {"out of luck"});
  ASSERT_TRUE((*team)->thrown());
  EXPECT_THROW(std::rethrow_exception((*team)->thrown()), std::runtime_error);
  // The team is finished and says why; its threads are not.
  EXPECT_EQ((*team)->run([](Member&) {}).text(), status.text());
  expect_a_new_start();
}

TEST_P(Failure, ARankThatNeverComesIsNamedAtTheDeadline) {
  Ranks all(options(kShort));
  const auto results = all.run([&](Member& me) {
    std::vector<std::uint32_t> in(count()), out(count());
    if (me.rank() != last()) return me.call(all_reduce(in, out));
    // Inside no call until the others have given up; then told why as well.
    while (all.communicator().health().ok()) std::this_thread::sleep_for(1ms);
    return me.call(all_reduce(in, out));
  });
  const std::string late = "rank " + std::to_string(last());
  expect_all(results, Code::timeout,
             {"within 1000 ms", "waits for " + late, "all_reduce u32 sum",
              "count " + std::to_string(count()), late + " is in no collective"});
  expect_a_new_start();
}

TEST_P(Failure, ARankThatHasLeftIsNamedAtOnce) {
  Ranks all(options(kLong));
  all.drop(last());
  std::vector<Status> results(static_cast<std::size_t>(last()));
  auto& communicator = all.communicator();
  (void)communicator;
  Ranks* ranks_ptr = &all;
  results = ranks_ptr->run([&](Member& me) {
    if (&me == nullptr) return Status();
    std::vector<std::uint32_t> in(count()), out(count());
    return me.call(all_reduce(in, out));
  });
  expect_a_new_start();
}

}  // namespace
}  // namespace rankine
