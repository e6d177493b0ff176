// What the calls of fault cases came to, counted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"

namespace rankine::faults {

struct Tally {
  std::int64_t cases = 0;
  // Calls (of one rank each) by the code that they returned; [0]: successes that were right.
  std::array<std::int64_t, kCodes> returned{};
  // Broken promises.
  std::int64_t hangs = 0;         // cases in which a call did not return at all
  std::int64_t wrong = 0;         // successes with wrong data; bytes changed that nobody may change
  std::int64_t undocumented = 0;  // other outcomes than the fault's documented ones; deaths
  std::int64_t late = 0;          // calls that returned later than promised
  // Cases that cannot be made on this machine, and why (the first reason).
  std::int64_t impossible = 0;
  std::string why_impossible;
  std::vector<std::string> remarks;  // what went wrong, the first kRemarks of it

  static constexpr std::size_t kRemarks = 20;

  std::int64_t broken() const { return hangs + wrong + undocumented + late; }
  void remark(std::string text) {
    if (remarks.size() < kRemarks) remarks.push_back(std::move(text));
  }
  Tally& operator+=(const Tally& other) {
    cases += other.cases;
    for (std::size_t i = 0; i < returned.size(); ++i) returned[i] += other.returned[i];
    hangs += other.hangs;
    wrong += other.wrong;
    undocumented += other.undocumented;
    late += other.late;
    impossible += other.impossible;
    if (why_impossible.empty()) why_impossible = other.why_impossible;
    for (const std::string& text : other.remarks) remark(text);
    return *this;
  }
};

// A fault, as data: what is done to the ranks, and what they may answer. The table is table.cc.
//
// The promise that is counted: every collective call on every surviving rank returns within its
// deadline plus one second, with success or one documented error; a success is never wrong; after
// any error the communicator can be destroyed and a new one works in the same process.

// A set of codes.
class Codes {
 public:
  constexpr Codes(std::initializer_list<Code> codes) {
    for (const Code code : codes) bits_ |= 1U << static_cast<unsigned>(code);
  }
  constexpr bool has(Code code) const { return (bits_ >> static_cast<unsigned>(code) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

// What a fault depends on, and so for what it is tried again: every number of ranks; each
// collective, too; each algorithm, too, that allows that many ranks.
enum class Grain : std::uint8_t { ranks, collective, algorithm };

struct FaultCase;

struct Fault {
  int number;
  std::string_view name;
  std::string_view what;  // happens
  std::string_view how;   // it is injected
  Codes documented;       // beside success
  Grain grain;
  // Whether the fault changes the process for good: then each case has one of its own.
  bool poisons;
  // Whether a case makes sense for the collective; nullptr: for each.
  bool (*applies)(Collective);
  // Plays one case: injects, makes the calls, judges them, and makes a good call on a new
  // communicator. Called on a thread that is no rank, in a process without other threads.
  void (*play)(const FaultCase&, Tally&);
  // Why it is played where ranks are threads only; empty: where they are processes, too.
  std::string_view threads_only{};
  // Whether it is played where ranks are processes only.
  bool processes_only = false;
  Codes more_of_processes{};  // documented there, beside those above
};

struct FaultCase {
  const Fault* fault = nullptr;
  Collective collective = Collective::all_reduce;
  const Algorithm* algorithm = nullptr;  // nullptr: the engine chooses
  int ranks = 2;
  std::uint64_t seed = 0;  // of what is left open: victim, step, sizes, types, transport
  bool processes = false;  // ranks are processes
  int cycles = kCycles;    // of a fault that is one (cycles.cc)

  static constexpr int kCycles = 25;
};

// "4 count_differs: all_reduce ring among 8 ranks, seed 17"
std::string to_string(const FaultCase& test);

// All, in order.
std::span<const Fault> faults();

struct Selection {
  std::vector<const Fault*> faults;  // empty: all
  std::vector<int> ranks;            // empty: kRanks, or kProcessRanks
  std::vector<Collective> collectives;
  std::vector<const Algorithm*> algorithms;  // empty: all; lines of the collectives asked for
  int repeat = 1;
  std::uint64_t seed = 1;
  // One case in so many, drawn by the seed, but one of each fault at least. 1: all.
  int sample = 1;
  bool processes = false;  // ranks are processes
  // So many in all for each number of ranks, of a fault of cycles, in cases of kMostCycles at most;
  // 0: one case of FaultCase::kCycles.
  int cycles = 0;
};
inline constexpr int kMostCycles = 100;
inline constexpr int kRanks[] = {2, 3, 4, 5, 7, 8, 16, 33, 64};
inline constexpr int kProcessRanks[] = {2, 3, 4, 7};
// Whether a fault is played where ranks are such.
constexpr bool is_played(const Fault& fault, bool processes) {
  return processes ? fault.threads_only.empty() : !fault.processes_only;
}

// Cases of one fault stand together; the same selection gives the same cases.
std::vector<FaultCase> cases_of(const Selection& selection);

// fault.play(), with what it throws counted as undocumented.
Tally play(const FaultCase& test);

// How each fault of the table is played: one function per fault, one file per family. All have the
// contract of Fault::play.

// ranks_that_fail.cc
void play_stall(const FaultCase& test, Tally& tally);
void play_leave(const FaultCase& test, Tally& tally);
void play_throw(const FaultCase& test, Tally& tally);
void play_never_calls(const FaultCase& test, Tally& tally);
void play_thread_exit(const FaultCase& test, Tally& tally);
void play_thread_cancel(const FaultCase& test, Tally& tally);
void play_finalize(const FaultCase& test, Tally& tally);
void play_abandon(const FaultCase& test, Tally& tally);
// mismatches.cc
void play_count_differs(const FaultCase& test, Tally& tally);
void play_type_differs(const FaultCase& test, Tally& tally);
void play_operation_differs(const FaultCase& test, Tally& tally);
void play_root_differs(const FaultCase& test, Tally& tally);
void play_collective_differs(const FaultCase& test, Tally& tally);
// bad_arguments.cc
void play_bad_arguments(const FaultCase& test, Tally& tally);
// shared_buffers.cc
void play_shared_buffers(const FaultCase& test, Tally& tally);
// aborts.cc
void play_abort(const FaultCase& test, Tally& tally);
// allocations.cc
void play_allocation(const FaultCase& test, Tally& tally);
// threads_and_forks.cc
void play_thread_creation(const FaultCase& test, Tally& tally);
void play_fork(const FaultCase& test, Tally& tally);
void play_fork_after_calls(const FaultCase& test, Tally& tally);
void play_child_destroys(const FaultCase& test, Tally& tally);
void play_process_exit(const FaultCase& test, Tally& tally);
// crowded.cc
void play_signals(const FaultCase& test, Tally& tally);
void play_few_cores(const FaultCase& test, Tally& tally);
void play_quota(const FaultCase& test, Tally& tally);
// refusals.cc
void play_cpuset(const FaultCase& test, Tally& tally);
void play_refused_calls(const FaultCase& test, Tally& tally);
void play_bad_memory_wishes(const FaultCase& test, Tally& tally);
void play_topology(const FaultCase& test, Tally& tally);
// numbers.cc
void play_instruction_set(const FaultCase& test, Tally& tally);
void play_clocks(const FaultCase& test, Tally& tally);
void play_counters(const FaultCase& test, Tally& tally);
// records.cc
void play_unwritable_record(const FaultCase& test, Tally& tally);
// requests.cc
void play_started_calls(const FaultCase& test, Tally& tally);
void play_misused_requests(const FaultCase& test, Tally& tally);
// messages_and_groups.cc
void play_messages(const FaultCase& test, Tally& tally);
void play_groups(const FaultCase& test, Tally& tally);
void play_group_after_whole(const FaultCase& test, Tally& tally);
// user_operations.cc
void play_user_operations(const FaultCase& test, Tally& tally);
// epilogues.cc
void play_epilogues(const FaultCase& test, Tally& tally);
// waits.cc
void play_absurd_waits(const FaultCase& test, Tally& tally);
// processes_that_end.cc
void play_killed(const FaultCase& test, Tally& tally);
void play_gone(const FaultCase& test, Tally& tally);
void play_stopped(const FaultCase& test, Tally& tally);
void play_exec(const FaultCase& test, Tally& tally);
// cycles.cc
void play_cycles(const FaultCase& test, Tally& tally);
// no_room.cc
void play_no_room(const FaultCase& test, Tally& tally);
void play_limits(const FaultCase& test, Tally& tally);
// strangers.cc
void play_strangers(const FaultCase& test, Tally& tally);
// planning.cc
void play_long_planning(const FaultCase& test, Tally& tally);

// Plays cases in processes of their own, and watches them: what hangs is killed and counted, what
// dies is counted, and the rest goes on in a new process.

struct RunnerOptions {
  int jobs = 0;  // processes at once; 0: one per core that we may use, by affinity and quota
  // A case hangs when no call of its process has come to its end for so long. Many times what any
  // call is promised (lateness is judged call by call), so that a loaded machine is no hang.
  std::int64_t patience_ns = 60'000'000'000;
  std::function<std::int64_t()> clock = now_ns;  // that it is told by
  // After each case: how many have been played, and that one.
  std::function<void(std::size_t done, const FaultCase& last)> progress{};
};

struct CaseResult {
  FaultCase test;
  Tally tally;
  double seconds = 0;
};

// In the order of `cases`. To be called in a process without other threads, since it forks; the
// children make no communicator before their first case. Errors: no process, no pipe.
Result<std::vector<CaseResult>> run_cases(std::span<const FaultCase> cases,
                                          const RunnerOptions& options = {});

}  // namespace rankine::faults
