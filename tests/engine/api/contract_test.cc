// The table of errors in DESIGN.md is the contract: it has every code, says of each what status.h
// says, and a communicator that meets the error does what it says.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "numa/system_calls.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

struct Row {
  std::string communicator, buffers;
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return parts;
    from = to + separator.size();
  }
}

// By code, as the table writes it. A row may be for several.
std::map<std::string, Row> table() {
  std::map<std::string, Row> rows;
  std::ifstream design("engine/DESIGN.md");
  bool inside = false;
  for (std::string line; std::getline(design, line);) {
    if (line.starts_with("| code |")) inside = true;
    if (inside && line.empty()) break;
    if (!inside || line.starts_with("| code |") || line.starts_with("|---")) continue;
    const auto cells = split(line, " | ");
    if (cells.size() != 4) {
      ADD_FAILURE() << "four columns are wanted: " << line;
      continue;
    }
    for (const std::string& code : split(cells[0].substr(2), ", ")) {
      EXPECT_TRUE(rows.emplace(code, Row{cells[2], cells[3]}).second) << code << " stands twice";
    }
  }
  return rows;
}

std::string in_table(Code code) {
  std::string name(name_of(code));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::vector<Code> codes() {
  std::vector<Code> all;
  for (int i = 0; i < 256; ++i) {
    if (name_of(static_cast<Code>(i)) != "unknown") all.push_back(static_cast<Code>(i));
  }
  return all;
}

TEST(Contract, TheTableHasEveryCodeAndSaysWhatTheHeaderSays) {
  auto rows = table();
  EXPECT_EQ(codes().size(), static_cast<std::size_t>(Code::forked) + 1) << "the last one";
  for (const Code code : codes()) {
    if (code == Code::ok) continue;
    const auto found = rows.find(in_table(code));
    ASSERT_NE(found, rows.end()) << in_table(code) << " is missing";
    const auto& [communicator, buffers] = found->second;
    EXPECT_EQ(communicator.starts_with("goes on"), goes_on(code)) << communicator;
    EXPECT_EQ(communicator.starts_with("finished"), !goes_on(code)) << communicator;
    EXPECT_NE(buffers.starts_with("untouched"), buffers.starts_with("outputs undefined"))
        << buffers;
    rows.erase(found);
  }
  EXPECT_TRUE(rows.empty()) << rows.begin()->first << " is no code";
}

constexpr int kRanks = 3;
constexpr std::size_t kCount = 6'000;

// What a rank brings, between guards.
struct Guarded {
  static constexpr std::size_t kGuard = 64;
  static constexpr std::uint32_t kMark = 0xdeadbeef;
  std::vector<std::uint32_t> in = std::vector<std::uint32_t>(kCount, 7);
  std::vector<std::uint32_t> whole = std::vector<std::uint32_t>(kCount + 2 * kGuard, kMark);

  Call call() {
    return {.in = in.data(),
            .out = whole.data() + kGuard,
            .count = kCount,
            .type = DataType::u32,
            .options = {.transport = Transport::mailbox}};  // which wants memory of its own
  }
  void expect(const Row& row) const {
    EXPECT_EQ(std::count(in.begin(), in.end(), 7u), static_cast<long>(kCount)) << "inputs";
    const auto marked = [this](std::size_t from, std::size_t count) {
      const auto first = whole.begin() + static_cast<long>(from);
      return std::count(first, first + static_cast<long>(count), kMark) == static_cast<long>(count);
    };
    EXPECT_TRUE(marked(0, kGuard) && marked(kGuard + kCount, kGuard)) << "past an end";
    if (row.buffers.starts_with("untouched")) {
      EXPECT_TRUE(marked(kGuard, kCount)) << "touched";
    }
  }
};

struct Case {
  Code code;
  // What the last rank does instead of the call that all others make.
  Status (*last_rank)(Member&, Ranks&, Guarded&);
};

void PrintTo(const Case& one, std::ostream* out) { *out << name_of(one.code); }

class Kept : public testing::TestWithParam<Case> {};

TEST_P(Kept, ByTheCommunicatorAndItsBuffers) {
  const Code code = GetParam().code;
  const Row row = table()[in_table(code)];
  Ranks all({.ranks = kRanks, .timeout = code == Code::timeout ? 200ms : 60'000ms});
  std::vector<Guarded> buffers(kRanks);
  // In force for all ranks and for as long as they run, since a seam may not move under a thread.
  SystemCalls calls = real_system_calls();
  if (code == Code::out_of_memory) {
    calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
      errno = ENOMEM;
      return MAP_FAILED;
    };
  }
  std::optional<ScopedSystemCalls> scope(calls);
  const auto results = all.run([&](Member& me) {
    Guarded& mine = buffers[static_cast<std::size_t>(me.rank())];
    // Where only the caller is told, the others have nothing to do with it.
    if (me.rank() != kRanks - 1 && goes_on(code)) return Status(code, "");
    if (me.rank() != kRanks - 1) return me.call(mine.call());
    return GetParam().last_rank(me, all, mine);
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(code)) << status.text();
  }
  scope.reset();
  for (const Guarded& mine : buffers) mine.expect(row);

  EXPECT_EQ(all.communicator().health().ok(), row.communicator.starts_with("goes on"));
  const auto next = all.run([](Member& me) { return me.barrier(); });
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (all.members()[r] == nullptr) continue;
    EXPECT_EQ(name_of(next[r].code()), name_of(goes_on(code) ? Code::ok : code)) << next[r].text();
  }
  Ranks fresh({.ranks = kRanks});
  for (const Status& status : fresh.run([](Member& me) { return me.barrier(); })) {
    EXPECT_TRUE(status.ok()) << "a new one: " << status.text();
  }
}

Status when_over(const Communicator& communicator) {
  while (communicator.health().ok()) std::this_thread::yield();
  return communicator.health();
}

INSTANTIATE_TEST_SUITE_P(
    Codes, Kept,
    testing::Values(Case{Code::invalid_argument,
                         [](Member& me, Ranks&, Guarded& mine) {
                           Call call = mine.call();
                           call.options.algorithm = "sorcery";
                           return me.call(call);
                         }},
                    Case{Code::mismatch,
                         [](Member& me, Ranks&, Guarded& mine) {
                           Call call = mine.call();
                           call.op = ReduceOp::max;
                           return me.call(call);
                         }},
                    Case{Code::timeout, [](Member&, Ranks& all,
                                           Guarded&) { return when_over(all.communicator()); }},
                    Case{Code::rank_lost,
                         [](Member& me, Ranks& all, Guarded&) {
                           all.drop(me.rank());
                           return when_over(all.communicator());
                         }},
                    Case{Code::remote_error,
                         [](Member&, Ranks& all, Guarded&) {
                           all.communicator().abort(
                               Status(Code::remote_error, "rank 2 threw: out of luck"));
                           return all.communicator().health();
                         }},
                    Case{Code::aborted,
                         [](Member&, Ranks& all, Guarded&) {
                           all.communicator().abort("enough");
                           return all.communicator().health();
                         }},
                    Case{Code::out_of_memory, [](Member& me, Ranks&, Guarded& mine) {
                           return me.call(mine.call());  // as all others, and nobody gets memory
                         }}));

// Who asks what a call would get, where there is no memory for it, may go on with other calls.
TEST(Contract, AQuestionEndsNothing) {
  Ranks all({.ranks = kRanks});
  std::vector<Guarded> buffers(kRanks);
  const auto ask = [&](Member& me) {
    return me.plan_of(buffers[static_cast<std::size_t>(me.rank())].call()).status();
  };
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
    errno = ENOMEM;
    return MAP_FAILED;
  };
  std::optional<ScopedSystemCalls> scope(calls);
  for (const Status& status : all.run(ask))
    EXPECT_EQ(name_of(status.code()), name_of(Code::out_of_memory)) << status.text();
  EXPECT_TRUE(all.communicator().health().ok());
  scope.reset();
  for (const Status& status : all.run(ask)) EXPECT_TRUE(status.ok()) << status.text();
  for (const Status& status : all.run([&](Member& me) {
         return me.call(buffers[static_cast<std::size_t>(me.rank())].call());
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Contract, AForkedChildIsToldAndItsParentGoesOn) {
  ASSERT_TRUE(table()["forked"].communicator.starts_with("finished in the child"));
  Ranks all({.ranks = 2});
  const pid_t child = fork();
  if (child == 0) {
    Guarded mine;
    const Status status = all.members()[0]->call(mine.call());
    mine.expect(table()["forked"]);
    _exit(status.code() == Code::forked && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const Status& each : all.run([](Member& me) { return me.barrier(); })) {
    EXPECT_TRUE(each.ok()) << each.text();
  }
}

}  // namespace
}  // namespace rankine
