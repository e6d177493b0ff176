// What a rank in a process of its own, or one of several in a process, does for processes_test, as
// its command line says.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/api/communicator.h"

namespace rankine::testing_processes {

struct Given {
  std::string name;
  Rank rank = 0;
  int ranks = 1;
  int at = 0;      // microseconds
  int signal = 9;  // at that time
  std::chrono::milliseconds timeout{180'000};

  CommunicatorOptions options() const {
    return {.ranks = ranks, .timeout = timeout, .rank = rank, .name = name};
  }
  bool is_last() const { return rank == ranks - 1; }
};

// Prints what became of it, for the test to compare; the exit code.
int say(const std::string& text);
int say(const Status& status);

// As Communicator::create(). Where this process plays several ranks, on a thread each, all of them
// ask, and have one.
Result<std::shared_ptr<Communicator>> meet(const CommunicatorOptions& options);

struct Joined {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
// Throws where that fails.
Joined join(const CommunicatorOptions& options);

// Sums with what all ranks bring, so that one that read nonsense shows.
Status add_up(Member& me, std::size_t count, int times);

// This process gets that signal after so many microseconds, wherever it is then.
void be_killed_after(int microseconds, int signal);

using Play = std::function<int(const Given&)>;
using Plays = std::map<std::string, Play>;
const Plays& message_plays();
const Plays& group_plays();
const Plays& network_plays();

}  // namespace rankine::testing_processes
