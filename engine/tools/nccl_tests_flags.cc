#include "engine/tools/nccl_tests_flags.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct SettledFlag {
  const char* flags;
  int most;                    // numbers from 0 are allowed
  std::vector<int> so_anyway;  // those that ask for what is so
  const char* help;
  const char* why_not;  // of all others, and what to use instead
};

const SettledFlag kSettled[] = {
    {"-p,--parallel_init", 1, {0, 1}, "ranks start together either way", ""},
    {"-z,--blocking",
     3,
     {0, 1, 3},
     "calls return when they are done, and ranks meet before each batch, untimed",
     "ranks meet before each batch; -m 1 has them meet before each call"},
    {"-G,--cudagraph", 1 << 30, {0}, "there are no CUDA graphs", "there are no CUDA graphs; -m repeats"},
    {"-C,--report_cputime",
     1,
     {0},
     "times are of the wall",
     "a rank computes while it waits, so its CPU time is the time that is shown"},
    {"-R,--local_register",
     2,
     {0},
     "threads share their memory",
     "threads share their memory: nothing is to be registered"},
    {"-D,--device_implementation",
     1 << 30,
     {0},
     "there is no device",
     "there is no device; --algo and --transport say what runs"},
    {"-V,--device_cta_count",
     1 << 30,
     {},
     "there is no device",
     "there is no device, and a rank is one thread"},
    {"-M,--memory",
     1,
     {0},
     "no report",
     "'rankine topo' shows where a rank's memory is and how much"},
};

}  // namespace

void add_nccl_tests_flags(Command app, PerfOptions& options) {
  add_argument(app, "-g,--ngpus", options.ranks_per_thread, Whole{1, Communicator::kMaxRanks}, "N",
               "GPUs per thread there: -t times so many ranks, a thread each; without -t, N ranks");
  for (const SettledFlag& one : kSettled) {
    const auto read = [&one, &options, name = argument_name(one.flags)](const std::string& text) {
      const auto value = parse_whole(name, text, 0, one.most);
      if (!value.ok()) throw UsageError(value.status().text());
      if (std::find(one.so_anyway.begin(), one.so_anyway.end(), *value) != one.so_anyway.end()) {
        return;
      }
      options.without_effect.push_back(fmt::format("{} {} ({})", name, *value, one.why_not));
    };
    app.add_option(one.flags, read, "N", one.help);
  }
}

}  // namespace rankine::tools
