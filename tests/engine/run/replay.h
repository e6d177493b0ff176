// Replay executes plans on one thread, rank by rank, in any order that their waits allow: an
// abstract machine with the words, slots and counters of the real one. A missing wait shows
// regardless of the machine's timing, because the next rank is drawn at random and ranks often run
// far ahead.
//
// Between calls a rank uses the freedom of a caller: its buffers and its scratch are overwritten as
// soon as its call returns, and the next call's data appears just before the rank enters.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/lower.h"
#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"

namespace rankine {

struct ReplayOptions {
  int ranks = 2;
  std::uint32_t first_count = 0;  // of all counters
  std::size_t slot_payload = 48;
  bool one_half = false;  // a fault: boards have one half
};

class Replay {
 public:
  Replay(const ReplayOptions& options, Random& random);
  ~Replay();

  // Every rank runs all calls, one after the other. Returns an empty text or the first fault: wrong
  // data, a read of memory that no rank has offered or outside all buffers, or a deadlock.
  std::string run(std::span<const TestCall* const> calls);

  std::uint64_t steps() const;

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

// The first fault of a plan that shows without execution; empty: none. Faults: a wait for its round
// or a later one, for unpublished progress or for its own progress; too many or too few operands.
// in_turns: rounds may begin again (passes.h), and only the replay finds cycles of waits.
std::string fault_of(const Plan& plan, bool in_turns = false);

// A session: all calls of one team of ranks, with all forms back to back. Its seed replays it.

struct SessionRules {
  CallRules calls{};     // ranks: the most
  int schedules = 5;     // different calls
  int repetitions = 12;  // the most repeated calls of these schedules
  bool checks_plans = true;
};

struct Session {
  int ranks = 1;
  std::size_t slot_payload = 48;
  std::uint32_t first_count = 0;  // of all counters: often shortly before they wrap
  std::vector<TestCall> made;
  std::vector<const TestCall*> calls;  // of `made`, in order of execution
  std::string fault;                   // a fault of a plan without execution; empty: none

  // Describes a fault found during the run, with all the details of the session.
  std::string explain(const std::string& what) const;
};

Session random_session(Random& random, SessionRules rules);

// Tests of the tests: plans with one rule left out; every machine that runs plans must notice.

struct Mutant {
  const char* name;
  CallRules rules;
  void (*spoil)(Plan&) = nullptr;  // after lowering
  bool own_memory = true;          // reads only memory inside buffers
  bool one_half = false;           // boards have one half
};

inline CallRules lowered(LowerOptions::Mutant mutant, Transport transport) {
  return {.ranks = 9, .mutant = mutant, .transport = transport};
}
inline CallRules pushed(PushMutant mutant) {
  return {.ranks = 9,
          .transport = Transport::direct,
          .passes = Passes{.pushes = true, .push_mutant = mutant}};
}
inline CallRules shared() {
  return {.ranks = 9,
          .mutant = LowerOptions::Mutant::no_exit_waits,
          .algorithm = find_algorithm(Collective::all_gather, "direct"),
          .transport = Transport::direct,
          .passes = Passes{.shares = ShareOptions{.from = 1, .streams = true, .stream_from = 1}}};
}
inline CallRules staged(LowerOptions::Mutant mutant, StageMutant of_pass = StageMutant::none) {
  return {.ranks = 9,
          .program = {.staged = true},
          .mutant = mutant,
          .transport = Transport::direct,
          .passes = Passes{.stages = StageOptions{.stream = 1, .piece = 64, .mutant = of_pass}}};
}
inline CallRules ahead(LowerOptions::Mutant mutant) {
  CallRules rules = staged(mutant);
  rules.passes->ahead_max_bytes = std::size_t{1} << 20;
  return rules;
}
inline CallRules in_turns(TurnMutant mutant) {
  CallRules rules = staged(LowerOptions::Mutant::none);
  rules.passes->turns = TurnOptions{.scratch = 64, .part = 64, .mutant = mutant};
  return rules;
}
inline CallRules placed(ProgramOptions::Mutant mutant, bool staged = false) {
  return {.ranks = 9, .program = {.staged = staged, .mutant = mutant}};
}

inline bool is_wait_for_readers(const Op& op) { return op.code == OpCode::wait_readers; }

inline std::vector<Mutant> mutants() {
  using enum LowerOptions::Mutant;
  CallRules without_ports = lowered(no_port_waits, Transport::mailbox);
  without_ports.ports = 1;
  CallRules crowded{.ranks = 9, .mailbox_capacity = 1 << 20, .transport = Transport::mailbox};
  return {
      {"direct: writes do not wait for reads", lowered(no_write_after_read, Transport::direct)},
      {"direct: nobody waits before it returns", lowered(no_exit_waits, Transport::direct)},
      {"direct: every third wait is dropped", lowered(dropped_wait, Transport::direct)},
      {"direct: nobody waits for entries", lowered(no_entry_waits, Transport::direct), nullptr,
       false},
      {"direct: calls' counts overlap", lowered(none, Transport::direct),
       [](Plan& plan) { plan.span = (plan.span + 1) / 2; }},
      {"direct: pushes wait for nobody", pushed(PushMutant::no_waits)},
      {"direct: pushes do not care", pushed(PushMutant::no_care)},
      {"direct: nobody waits for what others store", shared()},
      {"mailbox: writes do not wait for reads", lowered(no_write_after_read, Transport::mailbox)},
      {"mailbox: nobody waits before it returns", lowered(no_exit_waits, Transport::mailbox)},
      {"mailbox: nobody waits for credit", lowered(no_credit_waits, Transport::mailbox)},
      {"mailbox: receives first", lowered(receives_first, Transport::mailbox)},
      {"mailbox: messages are given back too early", lowered(early_release, Transport::mailbox),
       nullptr, false},
      {"mailbox: the calls' numbers overlap", lowered(none, Transport::mailbox),
       [](Plan& plan) {
         for (RankPlan& rank : plan.rank) {
           for (Traffic& traffic : rank.traffic) {
             traffic.sent -= traffic.sent > 1 ? 1 : 0;
             traffic.received -= traffic.received > 1 ? 1 : 0;
           }
         }
       },
       false},
      {"mailbox: more under way than slots", crowded},
      {"mailbox: nobody waits for ports", without_ports, nullptr, false},
      {"board: nobody waits for posts", lowered(no_entry_waits, Transport::board)},
      {"board: who reads nothing does not wait", lowered(no_exit_waits, Transport::board)},
      {"board: one half", lowered(none, Transport::board), nullptr, true, true},
      {"no renaming", placed(ProgramOptions::Mutant::no_renaming)},
      {"no staging", placed(ProgramOptions::Mutant::no_staging)},
      {"staged: no renaming", placed(ProgramOptions::Mutant::no_renaming, true)},
      {"staged: entries speak of pieces to come", staged(early_entry)},
      {"staged: first pieces stand for all", staged(none, StageMutant::first_pieces)},
      {"ahead: nobody waits for readers", ahead(no_exit_waits)},
      {"ahead: one scratch", ahead(none),
       [](Plan& plan) {
         for (RankPlan& rank : plan.rank) std::erase_if(rank.ops, is_wait_for_readers);
       }},
      {"staged: turns wait for nobody", in_turns(TurnMutant::no_waits)},
      {"staged: results are not shown", placed(ProgramOptions::Mutant::no_shown_results, true)},
  };
}

inline Session spoilt_session(const Mutant& mutant, Random& random) {
  Session session = random_session(random, {.calls = mutant.rules, .checks_plans = false});
  if (mutant.spoil != nullptr) {
    for (TestCall& call : session.made) mutant.spoil(call.plan);
  }
  return session;
}

// Checks that each mutant shows in some session. run(session, random, one_half) returns the fault,
// or an empty text. The numbers of sessions are their seeds, so a deterministic run always finds
// the same faults.
template <class Run>
void expect_all_noticed(bool own_memory, Run run) {
  constexpr int kSessions = 3000;
  for (const Mutant& mutant : mutants()) {
    if (own_memory && !mutant.own_memory) continue;
    int session = -1;
    std::string how;
    for (int i = 0; i < kSessions && how.empty(); ++i) {
      Random random(0xbad00000u + static_cast<std::uint64_t>(i));
      session = i;
      how = run(spoilt_session(mutant, random), random, mutant.one_half);
    }
    EXPECT_NE(how, "") << mutant.name << " went unnoticed";
    std::printf("%-45s session %4d: %s\n", mutant.name, session,
                how.substr(0, how.find('\n')).c_str());
  }
}

}  // namespace rankine
