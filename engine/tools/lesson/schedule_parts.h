// What both forms of a written schedule are made of: checked where it is read, whoever wrote it.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/lesson/written_schedule.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
