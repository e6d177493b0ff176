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
  std::vector<std::string_view> so_anyway;  // values that ask for what is so
  const char* help;
  const char* why_not;  // of all other values, and what to use instead
};

const SettledFlag kSettled[] = {
    {"-g,--ngpus", {"1"}, "1: a rank is a thread", "a rank is a thread: -t says how many"},
    {"-p,--parallel_init",
     {"0", "1"},
     "0 or 1: all ranks start together either way",
     "ranks start together"},
    {"-z,--blocking",
     {"3"},
     "3: calls return when they are done, and ranks meet before each batch, untimed",
     "calls return when they are done, and ranks meet before each batch, untimed; -m 1 has them "
     "meet before each call, -n 1 -m CALLS never in between"},
    {"-G,--cudagraph",
     {"0"},
     "0: there are no CUDA graphs",
     "there are no CUDA graphs; -m repeats"},
    {"-C,--report_cputime",
     {"0"},
     "0: times are of the wall",
     "a rank computes while it waits, so its CPU time is the time that is shown"},
    {"-R,--local_register",
     {"0"},
     "0: threads share their memory",
     "threads share their memory: nothing is to be registered"},
    {"-D,--device_implementation",
     {"0"},
     "0: there is no device",
     "there is no device; --algo and --transport say what runs"},
    {"-V,--device_cta_count",
     {},
     "there is no device",
     "there is no device, and a rank is one thread"},
    {"-M,--memory",
     {"0"},
     "0: no report",
     "'rankine topo' shows where a rank's memory is and how much"},
};

}  // namespace

void add_nccl_tests_flags(Command app) {
  for (const SettledFlag& one : kSettled) {
    const auto read = [&one, name = argument_name(one.flags)](const std::string& text) {
      if (std::find(one.so_anyway.begin(), one.so_anyway.end(), text) != one.so_anyway.end())
        return;
      const std::string allowed = one.so_anyway.empty()
                                      ? "no value is allowed"
                                      : "allowed is " + join(one.so_anyway, " or ");
      throw UsageError(fmt::format("{} is '{}'; {}: {}", name, text, allowed, one.why_not));
    };
    app.add_option(one.flags, read, "N", one.help);
  }
}

}  // namespace rankine::tools
