// A function of a learner's that makes schedules, schedule(n), in a file of Python or C++.
// course/examples/schedule_to_check.py and .h say what it looks like, and are what asks it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/lesson/written_schedule.h"

namespace rankine::tools {

class ScheduleFunction {
 public:
  // Whether a file of this name has one: .py, .cc, .cpp or .cxx.
  static bool is_named(std::string_view path);

  // Compiles what is C++. Requires is_named(path). Errors: system where there is no python3 or no
  // c++, or no place to compile in; invalid_argument with what the compiler says.
  static Result<ScheduleFunction> open(const std::string& path);

  // As a process of its own, for some seconds at most. Errors: invalid_argument with the file, the
  // number of ranks, and the line where that is known.
  Result<WrittenSchedule> schedule(int ranks) const;

 private:
  struct Folder;  // a temporary one

  std::string path_;
  std::vector<std::string> command_;  // the number of ranks follows
  std::shared_ptr<const Folder> folder_;
};

}  // namespace rankine::tools
