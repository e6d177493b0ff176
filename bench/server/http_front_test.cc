// Tests the server over HTTP, if cpp-httplib is installed. Not under the thread sanitizer: the
// library's threads share strings by locks that the sanitizer does not see.
#include "bench/server/http_front.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/server/service.h"
#include "bench/server/small_clients.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

class Http : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_http()) GTEST_SKIP() << "cpp-httplib is not installed";
  }
};

TEST_F(Http, AnswersAsTheServiceDoes) {
  Desk desk(threads());
  const HttpFront front(desk, kSmallModel.vocabulary);
  EXPECT_EQ(told_by([&](const Request& request) { return ask_over_http(front.port(), request); }),
            told_by_service());
}

TEST_F(Http, RefusesWhatIsNoRequest) {
  Desk desk(threads());
  const HttpFront front(desk, kSmallModel.vocabulary);
  const auto refusal = [&](const Request& request) -> std::string {
    try {
      ask_over_http(front.port(), request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.wanted = 3}).find("the prompt's length is 0"), std::string::npos);
  EXPECT_NE(refusal({.prompt_tokens = 1}).find("max_tokens is 0; allowed are whole numbers from 1"),
            std::string::npos);
  Request beyond{.wanted = 1, .prompt_tokens = 1};
  beyond.prompt[0] = kSmallModel.vocabulary;
  EXPECT_NE(refusal(beyond).find("a token is 240; allowed are whole numbers from 0 to 239"),
            std::string::npos);
  EXPECT_THROW(HttpFront(desk, kSmallModel.vocabulary, front.port()), Error);  // the port is in use
}

// Without the library the constructor throws.
TEST(HttpFront, SaysWhereThereIsNoLibrary) {
  if (has_http()) GTEST_SKIP() << "cpp-httplib is installed";
  Desk desk(threads());
  EXPECT_THROW(HttpFront(desk, kSmallModel.vocabulary), Error);
}

}  // namespace
}  // namespace rankine::server
