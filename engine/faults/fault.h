// Faults as data, the selection and play of fault cases, the processes that run them, and the tally
// of their results.
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
#include "engine/faults/collective_case.h"
#include "engine/run/machine.h"

namespace rankine::faults {

struct Tally {
  std::int64_t cases = 0;
  // Calls (of one rank each) by returned code; [0]: right successes.
  std::array<std::int64_t, kCodes> returned{};
  // Broken promises.
  std::int64_t hangs = 0;         // cases with a call that did not return
  std::int64_t wrong = 0;         // undocumented outcomes; deaths
  std::int64_t undocumented = 0;  // outcomes that the fault does not document; deaths
  std::int64_t late = 0;          // calls that returned later than promised
  // Cases that are impossible on this machine, and the first reason.
  std::int64_t impossible = 0;
  std::string why_impossible;
  std::vector<std::string> remarks;  // the first kRemarks broken promises

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

// A fault as data: the damage to the ranks, and the documented answers. table.cc has the table.
//
// The judged promise: every collective call on every surviving rank returns within its deadline
// plus one second, with success or one documented error; a success is never wrong; after any error
// the communicator can be destroyed, and a new one works in the same process.

// A set of codes.
class Codes {
 public:
  constexpr Codes() = default;
  constexpr Codes(std::initializer_list<Code> codes) {
    for (const Code code : codes) bits_ |= 1U << static_cast<unsigned>(code);
  }
  constexpr bool has(Code code) const { return (bits_ >> static_cast<unsigned>(code) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};
// Dimensions of a fault's cases. ranks: one case per number of ranks. collective: also one per
// collective. algorithm: also one per algorithm that allows the number of ranks.
enum class Grain : std::uint8_t { ranks, collective, algorithm };

struct FaultCase;
class Dice;

struct Fault {
  int number = 0;
  std::string_view name;
  std::string_view what;  // the event
  std::string_view how;   // the injection
  // The reason if the fault needs ranks that are threads; empty: ranks may be processes, too.
  std::string_view threads_only{};
  Codes documented{};         // beside success
  Codes more_of_processes{};  // documented for processes, beside the codes above
  Grain grain = Grain::collective;
  // If true, the fault changes its process for good: each case gets a new process.
  bool poisons = false;
  // If true, cases get no port budget and no placement: the fault sets CPUs or transports itself.
  bool sets_options = false;
  // Returns true if a case makes sense for the collective; nullptr: always true.
  bool (*applies)(Collective) = nullptr;
  bool processes_only = false;  // the fault needs ranks that are processes
  // Plays one case: injects, makes the calls and judges them. `good` is the good call of the case,
  // `dice` has its further choices. Called on a thread that is no rank, in a process without other
  // threads.
  void (*play)(const FaultCase& test, Dice& dice, const CollectiveCase& good,
               Tally& tally) = nullptr;
};

struct FaultCase {
  const Fault* fault = nullptr;
  Collective collective = Collective::all_reduce;
  const Algorithm* algorithm = nullptr;  // nullptr: the engine chooses
  int ranks = 2;
  std::uint64_t seed = 0;  // of the open choices: victim, step, sizes, types, transport
  bool processes = false;  // ranks are processes
  int cycles = kCycles;    // only for inject_cycles()

  static constexpr int kCycles = 25;
};

// "4 count_differs: all_reduce ring among 8 ranks, seed 17"
std::string to_string(const FaultCase& test);

// The whole table, in order of number.
std::span<const Fault> faults();

struct Selection {
  std::vector<const Fault*> faults{};  // empty: all
  std::vector<int> ranks{};            // empty: kRanks, or kProcessRanks
  std::vector<Collective> collectives{};
  std::vector<const Algorithm*> algorithms{};  // empty: all; lines of the collectives asked for
  int repeat = 1;
  std::uint64_t seed = 1;
  // Keeps one case in `sample`, drawn by the seed, but at least one of each fault. 1: all cases.
  int sample = 1;
  bool processes = false;  // ranks are processes
  // For inject_cycles(): cycles in all for each number of ranks, in cases of at most kMostCycles;
  // 0: one case of FaultCase::kCycles.
  int cycles = 0;
};
inline constexpr int kMostCycles = 100;
inline constexpr int kRanks[] = {2, 3, 4, 5, 7, 8, 16, 33, 64};
inline constexpr int kProcessRanks[] = {2, 3, 4, 7};
// True if the fault allows ranks that are processes (`processes`) or threads (otherwise).
constexpr bool is_played(const Fault& fault, bool processes) {
  return processes ? fault.threads_only.empty() : !fault.processes_only;
}

// Cases of one fault stand together. Equal selections give equal cases.
std::vector<FaultCase> cases_of(const Selection& selection);

// Calls fault.play(), and then makes the good call on a new communicator (fresh_start() in
// fixture.h). An exception counts as undocumented.
Tally play(const FaultCase& test);

// Plays of the table: one function per fault, with the contract of Fault::play.
using Play = void(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally);
// ranks_that_fail.cc
Play inject_stall, inject_leave, inject_throw, inject_never_calls, inject_thread_exit,
    inject_thread_cancel, inject_finalize, inject_abandon;
// arguments.cc
Play inject_count_differs, inject_type_differs, inject_operation_differs, inject_root_differs,
    inject_collective_differs, inject_bad_arguments, inject_instruction_set, inject_clocks,
    inject_counters, inject_user_operations, inject_epilogues;
// memory.cc
Play inject_shared_buffers, inject_allocation, inject_no_room, inject_limits;
// threads_and_forks.cc
Play inject_thread_creation, inject_fork, inject_fork_after_calls, inject_child_destroys,
    inject_process_exit;
// crowded.cc
Play inject_abort, inject_signals, inject_few_cores, inject_quota, inject_cycles;
// refusals.cc
Play inject_cpuset, inject_refused_calls, inject_bad_memory_wishes, inject_topology,
    inject_unwritable_record, inject_long_planning;
// requests.cc
Play inject_started_calls, inject_misused_requests, inject_messages, inject_groups,
    inject_group_after_whole, inject_absurd_waits;
// processes.cc
Play inject_killed, inject_gone, inject_stopped, inject_exec, inject_incompatible_peers,
    inject_grow;

// Runner: plays cases in child processes and watches them. It kills and counts hanging processes,
// counts dead ones, and goes on in a new process.

struct RunnerOptions {
  int jobs = 0;  // processes at once; 0: one per core of the affinity mask and quota
  // A case hangs if no call of its process has returned for this time. It is a multiple of every
  // promised time, so that a loaded machine is no hang (lateness is judged call by call).
  std::int64_t patience_ns = 60'000'000'000;
  std::function<std::int64_t()> clock = now_ns;  // the clock of patience_ns
  // Called after each case: the number of played cases, and the last one.
  std::function<void(std::size_t done, const FaultCase& last)> progress{};
};

struct CaseResult {
  FaultCase test;
  Tally tally;
  double seconds = 0;
};

// Results in the order of `cases`. Call it in a process without other threads, since it forks; the
// children make no communicator before their first case. Errors: pipe() or fork() failed.
Result<std::vector<CaseResult>> run_cases(std::span<const FaultCase> cases,
                                          const RunnerOptions& options = {});

}  // namespace rankine::faults
