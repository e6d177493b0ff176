// A fault, as data: what is done to the ranks, and what they may answer. The table is table.cc.
//
// The promise that is counted: every collective call on every surviving rank returns within its
// deadline plus one second, with success or one documented error; a success is never wrong; after
// any error the communicator can be destroyed and a new one works in the same process.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/faults/tally.h"

namespace rankine::faults {

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

}  // namespace rankine::faults
