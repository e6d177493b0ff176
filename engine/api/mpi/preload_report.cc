#include "engine/api/mpi/preload_report.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/base/files.h"

namespace rankine::mpi {
namespace {

PreloadSettings read() {
  PreloadSettings settings;
  const char* text = environment_variable("RANKINE_MPI");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    if (word == "on" || word == "off") {
      settings.takes = word == "on";
    } else if (word == "report") {
      settings.reports = true;
    } else if (word == "memory" || word == "messages") {
      settings.messages = word == "messages";
    } else {
      std::fprintf(stderr,
                   "rankine: RANKINE_MPI is '%s'; '%.*s' is unknown; allowed are on, off, report, "
                   "memory, messages\n",
                   text, static_cast<int>(word.size()), word.data());
      std::exit(2);
    }
  }
  return settings;
}

}  // namespace

const PreloadSettings& preload_settings() {
  static const PreloadSettings settings = read();
  return settings;
}

namespace {

void add(std::uint64_t& to, std::uint64_t n) { __atomic_fetch_add(&to, n, __ATOMIC_RELAXED); }
std::uint64_t of(const std::uint64_t& n) { return __atomic_load_n(&n, __ATOMIC_RELAXED); }

}  // namespace

std::string_view name_of(Function function) {
#define RANKINE_TEXT(Name, name, PARAMETERS) "MPI_" #Name,
  constexpr std::string_view kNames[] = {RANKINE_FUNCTIONS(RANKINE_TEXT, RANKINE_TEXT)};
#undef RANKINE_TEXT
  static_assert(std::size(kNames) == kFunctions);
  return kNames[static_cast<std::size_t>(function)];
}

std::string name_of(Function function, Form form) {
  std::string name(name_of(function));
  if (form == Form::prepared) name += "_init";
  if (form == Form::started) {
    const std::size_t begin = std::string_view("MPI_").size();
    name[begin] = static_cast<char>(std::tolower(name[begin]));
    name.insert(begin, "I");
  }
  return name;
}

std::string_view name_of(Passed why) {
  constexpr std::string_view kNames[kPassed] = {
      "arguments", "intercommunicator", "processes",     "empty",
      "type",      "operation",         "first calls",   "large",
      "lengths",   "refused",           "not waited for"};
  return kNames[static_cast<std::size_t>(why)];
}

void Report::taken(Function function, std::uint64_t bytes, double seconds, Form form) noexcept {
  Line& line = line_of(function, form);
  add(line.taken, 1);
  add(line.bytes, bytes);
  add(line.nanoseconds, static_cast<std::uint64_t>(seconds * 1e9));
}

void Report::passed(Function function, Passed why, Form form) noexcept {
  add(line_of(function, form).passed[static_cast<std::size_t>(why)], 1);
}

void Report::communicator(bool is_over_memory) noexcept {
  add(is_over_memory ? by_memory_ : by_messages_, 1);
}

void Report::print(int rank, int ranks) const {
  std::string ways;
  const auto say = [&](std::uint64_t communicators, const char* way) {
    if (communicators == 0) return;
    ways += (ways.empty() ? ", " : " and ") + std::to_string(communicators) + " communicators by " +
            way;
  };
  say(of(by_memory_), "memory");
  say(of(by_messages_), "messages");
  std::fprintf(stderr, "rankine: calls of rank %d of %d%s\n", rank, ranks, ways.c_str());
  std::fprintf(stderr, "rankine: %-26s %10s %14s %12s   passed on\n", "function", "taken", "bytes",
               "seconds");
  for (int form = 0; form < kForms; ++form) {
    for (int f = 0; f < kFunctions; ++f) {
      print(name_of(static_cast<Function>(f), static_cast<Form>(form)),
            lines_[static_cast<std::size_t>(f)][static_cast<std::size_t>(form)]);
    }
  }
}

void Report::print(const std::string& name, const Line& line) {
  std::string passed;
  std::uint64_t all = 0;
  for (int why = 0; why < kPassed; ++why) {
    const std::uint64_t n = of(line.passed[static_cast<std::size_t>(why)]);
    all += n;
    if (n == 0) continue;
    passed += (passed.empty() ? "" : ", ") + std::to_string(n) + " (" +
              std::string(name_of(static_cast<Passed>(why))) + ")";
  }
  if (of(line.taken) + all == 0) return;
  std::fprintf(stderr, "rankine: %-26s %10llu %14llu %12.6f   %s\n", name.c_str(),
               static_cast<unsigned long long>(of(line.taken)),
               static_cast<unsigned long long>(of(line.bytes)),
               static_cast<double>(of(line.nanoseconds)) * 1e-9,
               passed.empty() ? "0" : passed.c_str());
}

Report& report() {
  static Report all;
  return all;
}

}  // namespace rankine::mpi
