// The hub of schedules: a table of the text formats in which a schedule is read and written, and
// WrittenSchedule, a schedule as read from a file. What is read is in range, but may be wrong;
// judge() and verify() prove it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/text.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// The text form of a schedule:
//
//   all_gather 4            the collective, and the number of ranks; further words:
//                             root R   peer R      of collectives that have them (0; the next rank)
//                             blocks B             a multiple of the collective's own number
//                             planes P             the vector and P - 1 scratch vectors (1)
//                             other_bits           of all_reduce: ranks may add in other orders
//   round                   begins a round; "round 0" gives its number
//   0 -> 1: 0               rank 0 sends block 0 to rank 1, which keeps it
//   2 -> 3: 2 +             rank 3 adds it to its own
//   0 <-> 1: 0..3,6 +       both ways; several blocks in one message
//   0 -> 1..3: 2            to several: one transfer that a switch copies; also from several
//   1 -> 1: 2 on 1 to 0 +   read on plane 1, added on plane 0; "on 1" alone: on plane 1 both
//
// # begins a remark; empty lines are ignored. All reads of a round happen before its writes
// (algorithms/schedule/schedule.h). The JSON form is one object whose members have the names above,
// and `transfers`, a list of rounds, each a list of
//
//   {"from": 0, "to": [1], "what": [0], "act": "copy" or "reduce", "what_plane": 0,
//    "where_plane": 0}
//
// as in the page's player. Other members are ignored, and so is the root of a collective without
// root. A program may give in "line" the line of its source that makes the transfer.

// The words of a line, separated by blanks, without a remark.
using Words = std::vector<std::string_view>;

// Limits of written schedules: beyond them a mistake is more likely than a question.
inline constexpr int kMostWrittenRanks = 4096;
inline constexpr int kMostWrittenBlocks = 1 << 20;
inline constexpr std::size_t kMostWrittenMoves = std::size_t{1} << 23;  // each of one block

struct WrittenTransfer {
  Transfer transfer;
  int line = 0;  // line in the text, from 1; 0: JSON without a line
};
using WrittenRounds = std::vector<std::vector<WrittenTransfer>>;

struct WrittenSchedule {
  CollectiveSpec goal;
  int planes = 1;
  WrittenRounds rounds;

  // The schedule in the form of all readers; shares no data with this object.
  Schedule schedule() const;
};

// Reads any format of the table below; the text's beginning tells which. The result is in range,
// but may be wrong. Errors: invalid_argument, with the line, the text there and the allowed values.
Result<WrittenSchedule> read_schedule(std::string_view text);

// "0 -> 1: 0..3 on 1 to 0 +"
std::string transfer_text(const Transfer& transfer);

// The whole schedule as text; read_schedule() reads the same transfers from it.
std::string schedule_text(const Schedule& schedule, const CollectiveSpec& goal);

// The common part of both readers: it checks every value.

// The values before the first round. Missing values mean the default.
struct ScheduleHead {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  std::optional<int> root{}, peer{}, blocks{}, planes{};
  bool other_bits = false;
};

// Makes a schedule without rounds. Errors: a member out of range, or a member that the collective
// does not have.
Result<WrittenSchedule> begin_schedule(const ScheduleHead& head);

// Adds transfers one by one, within the limits above.
class TransferWriter {
 public:
  explicit TransferWriter(WrittenSchedule& into) : into_(into) {}
  // Requires a round. Ranks, blocks and planes of the transfer must be in range. Errors: too many
  // transfers.
  Status add(WrittenTransfer transfer);
  Status begin_round();

 private:
  WrittenSchedule& into_;
  std::size_t moves_ = 0;
};

Result<WrittenSchedule> read_schedule_text(std::string_view text);

// "0 -> 1: 0..3 on 1 to 0 +", within the ranks, blocks and planes of `within`; "<->" gives two.
Result<std::vector<Transfer>> read_transfer(const Words& words, const WrittenSchedule& within);

// Calls `see` for each line that has a word, with its number, from 1.
void for_each_line(std::string_view text, const std::function<void(int, const Words&)>& see);

// The formats of other projects. Their files say which chunks of which buffers move; buffers.h
// turns that into blocks and planes. In files that Rankine wrote, each step names its round, so
// that reading restores the rounds; other files get the earliest rounds that their steps allow.

// MSCCL XML, the input of MSCCL's and RCCL's interpreters (github.com/microsoft/msccl-tools). One
// element and one line per step.
Result<WrittenSchedule> read_msccl(std::string_view text);
Result<std::string> msccl_text(const Schedule& schedule, const CollectiveSpec& goal);

// An execution plan of MSCCL++, JSON (github.com/microsoft/mscclpp, src/core/executor). Written
// with one thread block per rank; reads puts, gets, copies, reductions, packets, signals and
// barriers of memory and port channels.
Result<WrittenSchedule> read_mscclpp(std::string_view text);
Result<std::string> mscclpp_text(const Schedule& schedule, const CollectiveSpec& goal);

// GOAL, the input of LogGOPSim: per rank a list of sends, receives and local work, and the
// dependencies of each. Hoefler, Siebert & Lumsdaine, "Group Operation Assembly Language - A
// flexible way to express collective communication", ICPP 2009; "LogGOPSim - Simulating large-scale
// applications in the LogGOPS model", LSAP 2010. GOAL has bytes, and no collective and no data:
// Rankine writes them as remarks (//). A file without remarks is one block's: a broadcast if one
// rank receives nothing and the others once, a reduce if one sends nothing and the others once,
// else a barrier.
Result<WrittenSchedule> read_goal(std::string_view text);

// `bytes` is M; `options` gives counts and ideal blocks. A message is a send and a receive of its
// bytes with a unique tag, so that no other message matches. A send waits for the receives and sums
// that made its data; sums are local work of no time (calc 0), which waits for the summands. Ports,
// latencies and bandwidths are the simulator's. Transfers by switches become messages, because GOAL
// has only messages. Errors: more than `most_lines` sends, receives and sums; sizes that Pricing
// refuses.
Result<std::string> goal_text(const Schedule& schedule, const CollectiveSpec& goal,
                              std::uint64_t bytes, const SimulateOptions& options = {},
                              std::int64_t most_lines = std::int64_t{1} << 24);

struct ScheduleFormat {
  std::string_view name, extension;
  bool (*is)(std::string_view text);  // by the text's beginning
  Result<WrittenSchedule> (*read)(std::string_view text);
  // `bytes` is M, which GOAL needs. Errors: what the format cannot express.
  Result<std::string> (*write)(const Schedule& schedule, const CollectiveSpec& goal,
                               std::uint64_t bytes);
};
std::span<const ScheduleFormat> schedule_formats();

}  // namespace rankine::tools
