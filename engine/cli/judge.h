// A schedule as somebody wrote it down, by hand or by a program of whatever language.
//
//   all_gather 4            the collective, and how many ranks; further words:
//                             root R   peer R      of collectives that have them (0; the next rank)
//                             blocks B             a multiple of the collective's own number
//                             planes P             the vector and P - 1 scratch vectors (1)
//                             other_bits           of all_reduce: ranks may add in other orders
//   round                   begins a round; "round 0" says which it is
//   0 -> 1: 0               rank 0 sends block 0 to rank 1, which keeps it
//   2 -> 3: 2 +             rank 3 adds it to its own
//   0 <-> 1: 0..3,6 +       both ways; several blocks in one message
//   0 -> 1..3: 2            to several: one transfer that a switch copies; likewise from several
//   1 -> 1: 2 on 1 to 0 +   read on plane 1, added on plane 0; "on 1" alone: on plane 1 both
//
// What follows # is a remark, and empty lines are nothing. All that is read in a round is read
// before anything of it is written (algorithms/schedule/schedule.h). The same as JSON is one object
// whose members have these names, and `transfers`, a list of rounds, each a list of
//
//   {"from": 0, "to": [1], "what": [0], "act": "copy" or "reduce", "what_plane": 0,
//    "where_plane": 0}
//
// as the page's player has it; other members are left aside, and so is a root that means nothing.
// A program may say in "line" which of its lines makes the transfer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"

namespace rankine::tools {

// What is read at most: beyond, a mistake is more likely than a question.
inline constexpr int kMostWrittenRanks = 4096;
inline constexpr int kMostWrittenBlocks = 1 << 20;
inline constexpr std::size_t kMostWrittenMoves = std::size_t{1} << 23;  // of one block each

struct WrittenTransfer {
  Transfer transfer;
  int line = 0;  // where it is written, from 1; 0: in JSON that does not say
};
using WrittenRounds = std::vector<std::vector<WrittenTransfer>>;

struct WrittenSchedule {
  Goal goal;
  int planes = 1;
  WrittenRounds rounds;

  // As all readers of schedules have it; shares nothing with this.
  Schedule schedule() const;
};

// Text, or JSON where it begins with a brace. What can be read is in range, and need not be right.
// Errors: invalid_argument, with the line, what stands there and what is allowed.
Result<WrittenSchedule> read_schedule(std::string_view text);

// "0 -> 1: 0..3 on 1 to 0 +"
std::string transfer_text(const Transfer& transfer);

// The whole as text; read_schedule() reads the same transfers from it.
std::string schedule_text(const Schedule& schedule, const Goal& goal);

// What both forms of a written schedule are made of: checked where it is read, whoever wrote it.

// What stands before the first round. What is not given is the default.
struct ScheduleHead {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  std::optional<int> root{}, peer{}, blocks{}, planes{};
  bool other_bits = false;
};

// A schedule without rounds. Errors: a member out of range, or one that the collective has not.
Result<WrittenSchedule> begin_schedule(const ScheduleHead& head);

// Adds transfers one by one, and keeps to the limits of written_schedule.h.
class TransferWriter {
 public:
  explicit TransferWriter(WrittenSchedule& into) : into_(into) {}
  // Requires a round. Its ranks, blocks and planes are in range. Errors: there are too many.
  Status add(WrittenTransfer transfer);
  Status begin_round();

 private:
  WrittenSchedule& into_;
  std::size_t moves_ = 0;
};

Result<WrittenSchedule> read_schedule_json(std::string_view text);

// A line's words. Blanks are between them, and what follows # is none.
using Words = std::vector<std::string_view>;
// Calls `see` for each line that has a word, with its number, from 1.
void for_each_line(std::string_view text, const std::function<void(int, const Words&)>& see);

// True if a text is a pipeline's order: "pipeline" is its first word. engine/lab judges orders.
bool is_order(std::string_view text);

// What a teacher says of a schedule that somebody wrote: whether it is right, what it costs, and
// how far that is from what the catalogue has.

// Beyond, nobody waits for the whole catalogue.
inline constexpr int kMostComparedRanks = 256;

struct Judgement {
  std::size_t transfers = 0;
  std::optional<Violation> violation{};
  // The rest is there where it is proved.
  Counts counts{};
  // In which data of one rank can be everywhere, or data of all at one, where in a round every rank
  // sends and receives as many messages as this one does at most. None: a switch helps.
  std::optional<int> least_rounds{};
  double bytes = 0;        // of the rank that sends or receives most
  double least_bytes = 0;  // what some rank has to move, if no switch adds (bus_factor)
  Simulation simulation{};
  // The catalogue's fastest on the same network; none: nothing of it can run, or too many ranks.
  std::optional<Candidate> best{};
};

// `fabric` as wired_for() gives it for these ranks; `bytes` is M. A pure function. Errors: those of
// simulate() and predict(), and a schedule that is too large to be proved.
Result<Judgement> judge(const WrittenSchedule& written, const Fabric& fabric, std::uint64_t bytes,
                        const SimulateOptions& options);

// The rule that was broken: "nothing is read that is not there".
std::string_view rule_of(ViolationKind kind);

// Which transfers of the violation's round have to do with its rank and block: indices.
std::vector<std::size_t> transfers_at(const WrittenSchedule& written, const Violation& violation);

// What is said of a learner's schedule, as one JSON object: by check --json and on the page.

// `fabric` and `sync` are those that were judged on.
Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync);

// A judgement in words, for a terminal.

// "not_there at round 1, rank 0, block 1"
std::string violation_name(const Violation& violation);

// The rule, what happened, and the transfers that have to do with it: lines, two blanks in.
std::string violation_text(const WrittenSchedule& written, const Violation& violation);

// How many times the least; "-" where that is zero.
Cell times_of(double value, double least);

// What a proved schedule costs beside the least and the catalogue's best, in several lines.
std::string costs_text(const Judgement& judged, const Fabric& fabric, std::uint64_t bytes,
                       Sync sync);

// Another program, run to its end: a learner's, or a compiler. The only place that starts one.
//
// The program runs with the rights of the user. It gets a session of its own, nothing to read on
// its standard input, PATH and no other variable of ours, and limits. When it has ended, or must
// end, every process that it has started ends, too, also one that has left its process group.

struct Program {
  std::vector<std::string> words;        // the first names the program, which is looked for in PATH
  std::string folder;                    // in which it runs
  std::vector<std::string> variables{};  // besides PATH: "TMPDIR=/tmp/x"
};

struct ProgramLimits {
  std::chrono::seconds time;
  std::size_t bytes;   // of its standard output, and of its standard error
  std::size_t memory;  // bytes of address space of each process, and of each file that it writes
};

struct ProgramEnd {
  std::string out, err;
  // Empty if its exit status is 0: "exit status 1", "Segmentation fault".
  std::string failure{};
};

// Errors: system if the program cannot be run; invalid_argument if it exceeds its time or prints
// too much; aborted if a signal interrupts this process (needs an InterruptGuard). A process that
// asks for too much memory gets none and fails by itself. One thread at a time: this process adopts
// the program's orphans meanwhile (PR_SET_CHILD_SUBREAPER), and may start no others.
Result<ProgramEnd> run_program(Program program, const ProgramLimits& limits);

// A function of a learner's that makes schedules, schedule(n), in a file of Python or C++.
// examples/schedule_to_check.py and .h say what it looks like, and are what asks it.

// Those two files; embed.py writes the function.
std::vector<EmbeddedFile> check_files();

// Of the program that is asked for one schedule.
struct FunctionLimits {
  std::chrono::seconds time{20};
  std::size_t memory = std::size_t{2} << 30;  // as ProgramLimits has it
};

class ScheduleFunction {
 public:
  // Whether a file of this name has one: .py, .cc, .cpp or .cxx.
  static bool is_named(std::string_view path);

  // Compiles a file of C++. Requires is_named(path). Errors: system if there is no python3 or no
  // c++, or no place to compile in; invalid_argument with the compiler's text.
  static Result<ScheduleFunction> open(const std::string& path, const FunctionLimits& limits);

  // Runs the function as run_program() does, in a temporary folder that goes with the last copy of
  // this object. Errors: invalid_argument with the file, the number of ranks, and the line if that
  // is known.
  Result<WrittenSchedule> schedule(int ranks) const;

 private:
  struct Folder;  // a temporary one

  std::string path_;
  std::vector<std::string> command_;  // the number of ranks follows
  std::shared_ptr<const Folder> folder_;
  FunctionLimits limits_;
};

}  // namespace rankine::tools
