// The plays: functions by name that a rank of process_rank executes for processes_test. A process
// plays one or several ranks.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/api/communicator.h"

namespace rankine::testing_processes {

struct CallArguments {
  std::string name;
  Rank rank = 0;
  int ranks = 1;
  int at = 0;      // microseconds
  int signal = 9;  // sent at that time
  std::chrono::milliseconds timeout{180'000};

  CommunicatorOptions options() const {
    return {.ranks = ranks, .timeout = timeout, .rank = rank, .name = name};
  }
  bool is_last() const { return rank == ranks - 1; }
};

// Prints the result, for the test to compare; returns the exit code.
int say(const std::string& text);
int say(const Status& status);

// Creates the communicator like Communicator::create(). If this process plays several ranks, each
// on a thread, every thread must call it, and all get one communicator.
Result<std::shared_ptr<Communicator>> meet(const CommunicatorOptions& options);

struct Joined {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
// Meets the other ranks and joins as the given rank; throws an error on failure.
Joined join(const CommunicatorOptions& options);

// Makes all-reduces with checked sums, so a rank that reads wrong data reports it.
Status add_up(Member& me, std::size_t count, int times);

// Calls work with sizes of all kinds until a rank is killed; returns the exit code. This process is
// killed `at` microseconds from now, at any point of its work; 0: never.
int work_until_killed(const CallArguments& given, int at,
                      const std::function<Status(Member&, std::size_t)>& work);

using Play = std::function<int(const CallArguments&)>;
using Plays = std::map<std::string, Play>;
const Plays& message_plays();
const Plays& group_plays();
const Plays& network_plays();

}  // namespace rankine::testing_processes
