// Judge proves a schedule written by hand or by a program in any language and compares its cost
// with the catalogue. This header declares the judgement, its reports, and the run of a learner's
// program or function.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/formats/formats.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"

namespace rankine::tools {

// True if a text is a pipeline's order: "pipeline" is its first word. engine/lab judges orders.
bool is_order(std::string_view text);

// With more ranks, predicting the whole catalogue takes too long.
inline constexpr int kMostComparedRanks = 256;

// The result for one written schedule: its correctness, its cost, and its distance from the
// catalogue's best.
struct Judgement {
  std::size_t transfers = 0;
  std::optional<Violation> violation{};
  // The following members are set if the schedule is proved.
  Counts counts{};
  // The least number of rounds in which data of one rank can reach all ranks, or data of all ranks
  // one rank, if every rank sends and receives at most as many messages in a round as in this
  // schedule. None: a switch helps.
  std::optional<int> least_rounds{};
  double bytes = 0;        // moved by the rank that sends or receives most
  double least_bytes = 0;  // least bytes that some rank must move without adding switches
                           // (bus_factor)
  Simulation simulation{};
  // The catalogue's fastest on the same network; none: no algorithm can run, or too many ranks.
  std::optional<Candidate> best{};
};

// `fabric` as made by wired_for() for these ranks; `bytes` is M. A pure function. Errors: errors of
// simulate() and predict(), and a schedule that is too large to be proved.
Result<Judgement> judge(const WrittenSchedule& written, const Fabric& fabric, std::uint64_t bytes,
                        const SimulateOptions& options);

// The violated rule: "no rank waits for ever".
std::string_view rule_of(ViolationKind kind);

// For check --json and the page. `fabric` and `sync` must be the values used for the judgement.
Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync);

// "not_there at round 1, rank 0, block 1"
std::string violation_name(const Violation& violation);

// The rule, the violation, and the transfers involved: lines, indented by two blanks.
std::string violation_text(const WrittenSchedule& written, const Violation& violation);

// value over least; "-" if the least is zero.
Cell times_of(double value, double least);

// The cost of a proved schedule beside the least cost and the catalogue's best, in several lines.
std::string costs_text(const Judgement& judged, const Fabric& fabric, std::uint64_t bytes,
                       Sync sync);

// run_program() runs another program to its end: a learner's, or a compiler. It is the only place
// that starts a program.
//
// The program runs with the rights of the user. It gets a new session, an empty standard input,
// PATH but no other environment variable of this process, and limits. When the program has ended,
// or must end, every process started by it ends, too, even after leaving its process group.

struct Program {
  std::vector<std::string> words;        // the first word is the program's name, looked up in PATH
  std::string folder;                    // in which it runs
  std::vector<std::string> variables{};  // besides PATH: "TMPDIR=/tmp/x"
};

struct ProgramLimits {
  std::chrono::seconds time;
  std::size_t bytes;   // each: standard output, standard error
  std::size_t memory;  // bytes of address space of each process, and of each written file
};

struct ProgramEnd {
  std::string out, err;
  // Empty if its exit status is 0: "exit status 1", "Segmentation fault".
  std::string failure{};
};

// Errors: system if the program cannot be run; invalid_argument if it exceeds its time or prints
// too much; aborted if a signal interrupts this process (needs an InterruptGuard). A process that
// asks for too much memory gets none and fails. One thread at a time: meanwhile this process adopts
// the program's orphans (PR_SET_CHILD_SUBREAPER), and must not start other processes.
Result<ProgramEnd> run_program(Program program, const ProgramLimits& limits);

// ScheduleFunction calls a learner's function schedule(n), in a file of Python or C++.
// examples/schedule_to_check.py and .h describe the function, and call it.

// The two files schedule_to_check.py and .h; embed.py writes the function.
std::vector<EmbeddedFile> check_files();

// Limits for making one schedule.
struct FunctionLimits {
  std::chrono::seconds time{20};
  std::size_t memory = std::size_t{2} << 30;  // as in ProgramLimits
};

class ScheduleFunction {
 public:
  // True if the file's name ends in .py, .cc, .cpp or .cxx.
  static bool is_named(std::string_view path);

  // Compiles a file of C++. Requires is_named(path). Errors: system if there is no python3 or no
  // c++, or no place to compile in; invalid_argument with the compiler's text.
  static Result<ScheduleFunction> open(const std::string& path, const FunctionLimits& limits);

  // Runs the function by run_program(), in a temporary folder that lives until the last copy of
  // this object. Errors: invalid_argument with the file, the number of ranks, and the line if it is
  // known.
  Result<WrittenSchedule> schedule(int ranks) const;

 private:
  struct Folder;  // a temporary folder

  std::string path_;
  std::vector<std::string> command_;  // the number of ranks follows
  std::shared_ptr<const Folder> folder_;
  FunctionLimits limits_;
};

}  // namespace rankine::tools
