#include "tests/engine/api/ranks.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <thread>

namespace rankine {

void expect_ok(const std::vector<Status>& results, const std::string& what) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    EXPECT_TRUE(results[r].ok()) << what << " rank " << r << ": " << results[r].text();
  }
}

void expect_words(const Status& status, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(status.text().find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.text();
  }
}

void expect_all(const std::vector<Status>& results, Code code,
                const std::vector<std::string>& words) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    EXPECT_EQ(name_of(results[r].code()), name_of(code))
        << "rank " << r << ": " << results[r].text();
    EXPECT_EQ(results[r].text(), results[0].text());
  }
  expect_words(results[0], words);
}

void expect_refused(const Status& status, const std::vector<std::string>& words) {
  EXPECT_EQ(name_of(status.code()), name_of(Code::invalid_argument)) << status.text();
  expect_words(status, words);
}

void expect_ranks_succeed(const CommunicatorOptions& options,
                          const std::function<Status(Member&)>& f) {
  Ranks all(options);
  expect_ok(all.run(f));
}

void expect_team_succeeds(const TeamOptions& options, const std::function<void(Member&)>& f) {
  const auto team = Team::create(options).value();
  const Status status = team->run(f);
  EXPECT_TRUE(status.ok()) << status.text();
}

void wait_until_waiting(const Communicator& communicator, Rank r) {
  for (;;) {
    const auto record = nlohmann::json::parse(communicator.flight_record());
    const std::string state = record["ranks"][static_cast<std::size_t>(r)]["state"];
    if (state.find("waits for rank") != std::string::npos) return;
    std::this_thread::yield();
  }
}

Status when_over(const Communicator& communicator) {
  while (communicator.health().ok()) std::this_thread::yield();
  return communicator.health();
}

}  // namespace rankine
