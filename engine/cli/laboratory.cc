#include "engine/cli/laboratory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "engine/base/environment_variable.h"

namespace rankine::tools {
namespace {

constexpr LaboratoryCommand kCommands[] = {
    {"map",
     "the cheapest algorithm over ranks and sizes on a modelled network, as text and picture"},
    {"cost", "an algorithm's rounds, n_alpha and n_beta, and every rank's bytes and ports"},
    {"gaps", "ranks at which another algorithm is better in one cost and worse in none"},
    {"claims", "every quantitative claim of the papers, computed and compared with the engine"},
    {"skips", "search the skips of a circulant reduce-scatter that suit a network"},
    {"reproduce", "a paper's tables, figures and statements, recomputed from the schedules"},
    {"plan", "plan a model's training step on ranks: collectives, time, memory"},
    {"step", "play a planned step's collectives on threads: real data, planned and played times"},
    {"buckets", "the times of gradient buckets of several sizes, alone and behind a backward pass"},
    {"faults", "inject every fault of the table into every collective, and count broken promises"},
    {"page", "one HTML file with this engine inside: races, players, curves, proofs"},
    {"lesson", "write a course of six lessons with tasks, and the page: a folder to learn from"},
};

constexpr const char* kProgram = "rankine-lab";

// Makes `text` the standard input, positioned at its first byte.
bool give_input(std::string_view text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0) return false;
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return lseek(file, 0, SEEK_SET) == 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO;
}

}  // namespace

std::span<const LaboratoryCommand> laboratory_commands() { return kCommands; }

Exit start_laboratory(Console& console, std::optional<std::string_view> input) {
  const std::string called =
      console.arguments.empty() ? "rankine" : "rankine " + console.arguments.front();
  console.out.flush();
  if (input && !give_input(*input)) {
    console.err << fmt::format("{}: standard input cannot be handed over: {}\n", called,
                               std::strerror(errno));
    return Exit::environment;
  }
  std::vector<std::string> words = {kProgram};
  words.insert(words.end(), console.arguments.begin(), console.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& path : {folder / kProgram, folder / "../lab" / kProgram}) {
    execv(path.c_str(), argv.data());
  }
  // A program with more rights than its user must not use PATH.
  if (environment_variable("PATH") != nullptr) execvp(kProgram, argv.data());
  console.err << fmt::format(
      "{}: this is a part of the laboratory, and its program {} is neither in {} nor in PATH; in "
      "Rankine's sources 'third_party/bazel build //engine/lab:rankine-lab' builds it\n",
      called, kProgram, folder.string());
  return Exit::usage;
}

}  // namespace rankine::tools
