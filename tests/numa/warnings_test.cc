#include "numa/refusals.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/numa/captured_warnings.h"

namespace rankine {
namespace {

TEST(Warnings, AKeyIsHeardOnce) {
  CapturedWarnings captured;
  warn_once("a", "first");
  warn_once("a", "second");
  warn_once("b", "third");
  ASSERT_EQ(captured.lines.size(), 2u);
  EXPECT_EQ(captured.lines[0], std::pair(std::string("a"), std::string("first")));
  EXPECT_EQ(captured.lines[1], std::pair(std::string("b"), std::string("third")));
}

TEST(Warnings, ForgottenKeysAreHeardAgain) {
  CapturedWarnings captured;
  warn_once("a", "first");
  forget_warnings();
  warn_once("a", "second");
  EXPECT_EQ(captured.lines.size(), 2u);
}

TEST(Warnings, TextStaysOneLine) {
  CapturedWarnings captured;
  warn_once("a", "one\ntwo\r\nthree");
  ASSERT_EQ(captured.lines.size(), 1u);
  EXPECT_EQ(captured.lines[0].second, "one two  three");
}

TEST(Warnings, DefaultSinkWritesOneLineToStderr) {
  forget_warnings();
  set_warning_sink({});
  testing::internal::CaptureStderr();
  warn_once("a", "something is off");
  warn_once("a", "something is off");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rankine: warning: something is off\n");
}

TEST(Warnings, AThrowingSinkDoesNoHarm) {
  forget_warnings();
  const WarningSink before = set_warning_sink([](auto, auto) { throw std::runtime_error("no"); });
  warn_once("a", "text");
  set_warning_sink(before);
}

TEST(Warnings, ManyThreadsOneLinePerKey) {
  CapturedWarnings captured;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) warn_once("key" + std::to_string(i % 5), "text");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(captured.lines.size(), 5u);
}

}  // namespace
}  // namespace rankine
