// All ranks of a communicator in C, each on a thread when they run, and expectations about results.
#pragma once

#include "engine/api/c/rankine.h"
#include "engine/base/parallel.h"
#include "tests/testing.h"

namespace rankine::testing_c {

inline std::string last_error() { return rkGetLastError(nullptr); }

// The call failed with `result`, and its error has these words.
inline void expect_error(rkResult_t result, rkResult_t expected, const std::string& words) {
  EXPECT_EQ(result, expected) << words;
  EXPECT_NE(last_error().find(words), std::string::npos)
      << "'" << words << "' is not in: " << last_error();
}
inline void expect_refused(rkResult_t result, const std::string& words) {
  expect_error(result, rkInvalidArgument, words);
}

inline void expect_all(const std::vector<rkResult_t>& results, rkResult_t expected) {
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r], expected) << "rank " << r;
}

class Comms {
 public:
  explicit Comms(int ranks, rkConfig_t config = RK_CONFIG_INITIALIZER)
      : comms_(static_cast<std::size_t>(ranks)) {
    EXPECT_EQ(rkCommInitAllConfig(comms_.data(), ranks, &config), rkSuccess) << last_error();
  }
  ~Comms() {
    for (rkComm_t comm : comms_) EXPECT_EQ(rkCommDestroy(comm), rkSuccess) << last_error();
  }
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  // A test that destroys a rank's handle sets it to nullptr.
  rkComm_t& operator[](std::size_t rank) { return comms_[rank]; }

  // Returns the result of f for each rank.
  std::vector<rkResult_t> run(const std::function<rkResult_t(int, rkComm_t)>& f) {
    std::vector<rkResult_t> results(comms_.size());
    on_threads(static_cast<int>(comms_.size()), [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      results[r] = f(rank, comms_[r]);
    });
    return results;
  }
  void each(const std::function<void(int, rkComm_t)>& f) {
    static_cast<void>(run([&](int rank, rkComm_t comm) {
      f(rank, comm);
      return rkSuccess;
    }));
  }

 private:
  std::vector<rkComm_t> comms_;
};

}  // namespace rankine::testing_c
