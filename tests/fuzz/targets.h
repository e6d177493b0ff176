// Target is one parser under test: its input is any bytes, and it checks the properties that hold
// for every input.
//
// A target reads and writes only temporary folders outside itself, takes a bounded time, and lets
// no exception escape except Broken. replay_test runs the seeds through all targets in every CI
// run, and fuzzer.cc gives one target to libFuzzer.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankine::fuzz {

struct Target {
  std::string_view name;  // its key in seeds.json
  void (*run)(std::string_view input);
};

// All targets, sorted by name.
std::span<const Target> targets();

// An input violates a property of its parser.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Broken(promise);
}

// Every parser of the project, sorted by the kind of its input. Each is a Target's run().

// numbers.cc: quantities in the notation of users
void size(std::string_view input);
void duration(std::string_view input);
void whole_list(std::string_view input);
void decimal(std::string_view input);
void seconds(std::string_view input);
void bandwidth(std::string_view input);
void dims(std::string_view input);
void skips(std::string_view input);

// targets.cc: names and lists of names, on command lines and in environment variables
void names(std::string_view input);
void arguments(std::string_view input);
void environment(std::string_view input);
void command_line(std::string_view input);  // one argument per line

// targets.cc: JSON
void network(std::string_view input);
void batch(std::string_view input);
void tuning(std::string_view input);

// targets.cc: texts of the catalogue and of the claims
void formula(std::string_view input);
void expression(std::string_view input);
void parameter_sets(std::string_view input);
void runs(std::string_view input);

// targets.cc: descriptions of the machine, from the kernel and from users
void cpu_list(std::string_view input);
void placement(std::string_view input);
void synthetic_topology(std::string_view input);
void cpu_quota(std::string_view input);     // contents of two files, a line "--" between them
void cgroup_files(std::string_view input);  // /proc/self/cgroup, -- , mountinfo, -- , cpu.max

}  // namespace rankine::fuzz
