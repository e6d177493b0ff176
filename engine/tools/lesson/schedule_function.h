// A function of a learner's that makes schedules, schedule(n), in a file of Python or C++.
// course/examples/schedule_to_check.py and .h say what it looks like, and are what asks it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/lesson/written_schedule.h"

namespace rankine::tools {

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
