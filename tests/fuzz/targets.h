// One parser under test: an input of any bytes goes in; what must hold of every input is checked.
//
// A target neither reads nor writes anything outside itself but throw-away folders, takes a bounded
// time, and lets nothing escape but Broken. Two readers: replay_test runs the seeds through all
// targets in every CI run, and fuzzer.cc gives one of them to libFuzzer.
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

// All of them, by name.
std::span<const Target> targets();

// What a parser promises does not hold of this input.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Broken(promise);
}

// Every parser of the project, by what it reads. Each is a Target's run().

// numbers.cc: quantities as people write them
void size(std::string_view input);
void duration(std::string_view input);
void whole_list(std::string_view input);
void decimal(std::string_view input);
void seconds(std::string_view input);
void bandwidth(std::string_view input);
void dims(std::string_view input);
void skips(std::string_view input);

// names.cc: names and lists of names, on command lines and in environment variables
void names(std::string_view input);
void arguments(std::string_view input);
void environment(std::string_view input);
void command_line(std::string_view input);  // words on lines of their own

// requests.cc: JSON
void network(std::string_view input);
void batch(std::string_view input);
void tuning(std::string_view input);

// formulas.cc: texts of the catalogue and of the claims
void formula(std::string_view input);
void expression(std::string_view input);
void parameter_sets(std::string_view input);
void runs(std::string_view input);

// machine.cc: what the kernel and people say about the machine
void cpu_list(std::string_view input);
void placement(std::string_view input);
void synthetic_topology(std::string_view input);
void cpu_quota(std::string_view input);     // two files' contents, a line "--" between them
void cgroup_files(std::string_view input);  // /proc/self/cgroup, -- , mountinfo, -- , cpu.max

}  // namespace rankine::fuzz
