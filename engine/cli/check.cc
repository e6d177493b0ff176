// The command `rankine check`: runs a learner's program within limits, judges its schedules for
// every n, and judges written schedules.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/base/parallel.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/judge.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "numa/cpus.h"

namespace rankine::tools {

namespace {

using Clock = std::chrono::steady_clock;

// A pipe that a program writes into, and the output received so far.
struct Stream {
  int read = -1, write = -1;
  std::string text{};

  Stream() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    close_end(read);
    close_end(write);
  }
  static void close_end(int& end) {
    if (end >= 0) close(std::exchange(end, -1));
  }
  // Reads once, and closes the pipe at its end.
  void take() {
    std::array<char, 1 << 14> part;
    const ssize_t got = ::read(read, part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      close_end(read);
    }
  }
};

Status cannot_run(const std::string& program, int error) {
  return Status(Code::system, fmt::format("'{}' cannot be run: {}", program, std::strerror(error)));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void limit(auto what, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(what, &both);
}

// Runs in the child after fork(), so it may only call functions that signal handlers may call.
// Returns if it fails.
void become(const std::vector<char*>& words, const std::vector<char*>& variables,
            const char* folder, int out, int err, const ProgramLimits& limits, rlim_t cpu_seconds) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // applies if this process is killed, too
  signal(SIGPIPE, SIG_DFL);          // rankine ignores it
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || chdir(folder) != 0 || dup2(nothing, STDIN_FILENO) < 0 ||
      dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
    return;
  }
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // newer than our glibc
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  limit(RLIMIT_FSIZE, limits.memory);
  limit(RLIMIT_AS, limits.memory);
  execvpe(words[0], words.data(), variables.data());
}

// Starts the process, as the leader of a new session and a new process group.
Result<pid_t> start(Program& program, const Stream& out, const Stream& err,
                    const ProgramLimits& limits) {
  const char* const path = environment_variable("PATH");
  program.variables.push_back(std::string("PATH=") + (path != nullptr ? path : "/usr/bin:/bin"));
  const std::vector<char*> words = pointers_to(program.words),
                           variables = pointers_to(program.variables);
  // Limits a process that leaves the group and escapes the search.
  const auto cpu_seconds = static_cast<rlim_t>(limits.time.count() + 1) * usable_cores();
  Stream failed;  // reports the error if the program cannot start; closed by exec
  if (failed.read < 0) return cannot_run(program.words[0], errno);
  const pid_t child = fork();
  if (child < 0) return cannot_run(program.words[0], errno);
  if (child == 0) {
    become(words, variables, program.folder.c_str(), out.write, err.write, limits, cpu_seconds);
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(failed.write, &error, sizeof(error));
    _exit(127);
  }
  Stream::close_end(failed.write);
  while (failed.read >= 0) failed.take();
  if (failed.text.empty()) return child;
  waitpid(child, nullptr, 0);
  int error = 0;
  std::memcpy(&error, failed.text.data(), std::min(failed.text.size(), sizeof(error)));
  return cannot_run(program.words[0], error);
}

// True if the process has ended. The process and its group remain until waited for.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

// Reads until the program has ended, even if it has closed its output earlier or its children keep
// the output open. Errors: the exceeded limit.
Status read_all(pid_t child, Stream& out, Stream& err, const ProgramLimits& limits) {
  const auto end = Clock::now() + limits.time;
  for (;;) {
    if (interruption() != 0) return {Code::aborted, "interrupted"};
    const bool ended = has_ended(child);
    if (ended) {  // all its output has arrived by now
      for (Stream* one : {&out, &err}) {
        if (one->read >= 0) fcntl(one->read, F_SETFL, O_NONBLOCK);
        while (one->read >= 0 && one->text.size() <= limits.bytes) one->take();
      }
    }
    if (std::max(out.text.size(), err.text.size()) > limits.bytes) {
      return invalid_argument(fmt::format("it prints more than {} bytes", limits.bytes));
    }
    if (ended) return {};
    if (Clock::now() >= end) {
      return invalid_argument(fmt::format("no end within {} s", limits.time.count()));
    }
    // Without output to wait for, poll often for the end. A signal before poll() begins does not
    // end poll().
    const int look_ms = out.read < 0 && err.read < 0 ? 1 : 100;
    pollfd both[] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
    if (poll(both, 2, look_ms) <= 0) continue;
    if (both[0].revents != 0) out.take();
    if (both[1].revents != 0) err.take();
  }
}

// Processes that the program has started and that have left its group. When their parent ends, the
// kernel makes them children of this process, which ends them.
class Orphans {
 public:
  Orphans() : others_(children()) {
    prctl(PR_GET_CHILD_SUBREAPER, &was_adopting_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Orphans() { prctl(PR_SET_CHILD_SUBREAPER, was_adopting_); }
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Repeats until no process is left: an ending process leaves its children.
  void end() const {
    for (bool found = true; found;) {
      found = false;
      for (const pid_t child : children()) {
        if (others_.contains(child)) continue;
        kill(child, SIGKILL);
        while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
        found = true;
      }
    }
  }

 private:
  static std::set<pid_t> children() {
    std::set<pid_t> found;
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
      std::ifstream list(task.path() / "children");
      for (pid_t child = 0; list >> child;) found.insert(child);
    }
    return found;
  }

  std::set<pid_t> others_;
  int was_adopting_ = 0;
};

}  // namespace

Result<ProgramEnd> run_program(Program program, const ProgramLimits& limits) {
  Stream out, err;
  if (out.read < 0 || err.read < 0) return cannot_run(program.words[0], errno);
  const Orphans orphans;
  const auto child = start(program, out, err, limits);
  if (!child.ok()) return child.status();
  Stream::close_end(out.write);
  Stream::close_end(err.write);
  const Status broken = read_all(*child, out, err, limits);
  kill(-*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  orphans.end();
  if (!broken.ok()) return broken;
  ProgramEnd end{std::move(out.text), std::move(err.text)};
  if (WIFSIGNALED(status)) end.failure = strsignal(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    end.failure = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return end;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "schedule_to_check.h", kDriver = "schedule_to_check.py";
constexpr ProgramLimits kCompiling = {std::chrono::seconds{120}, std::size_t{1} << 20,
                                      std::size_t{4} << 30};

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Status write_example(const std::string& folder, std::string_view name) {
  const auto files = check_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const EmbeddedFile& file) { return file.name == name; });
  return replace_file(fmt::format("{}/{}", folder, name), found->text);
}

}  // namespace

struct ScheduleFunction::Folder {
  std::string name;

  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(name, ignored);
  }
};

bool ScheduleFunction::is_named(std::string_view path) {
  constexpr std::array<std::string_view, 4> kEnds = {".py", ".cc", ".cpp", ".cxx"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [path](std::string_view end) { return path.ends_with(end); });
}

Result<ScheduleFunction> ScheduleFunction::open(const std::string& path,
                                                const FunctionLimits& limits) {
  if (Status status = check_input("FILE", path); !status.ok()) return status;
  const char* const set = environment_variable("TMPDIR");
  const std::string temporary = set != nullptr && *set != 0 ? set : "/tmp";
  std::string name = temporary + "/rankine_check_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    return Status(Code::system, fmt::format("TMPDIR is '{}'; no folder can be made there: {}",
                                            temporary, std::strerror(errno)));
  }
  auto folder = std::make_shared<Folder>();
  folder->name = std::move(name);
  std::error_code error;
  const std::string file = fs::absolute(path, error);  // absolute, because the program runs in
                                                       // another folder
  if (error) return Status(Code::system, fmt::format("FILE is '{}': {}", path, error.message()));
  const bool python = path.ends_with(".py");
  ScheduleFunction out;
  out.path_ = path;
  out.folder_ = folder;
  out.limits_ = limits;
  const std::string_view example = python ? kDriver : kHeader;
  if (Status status = write_example(folder->name, example); !status.ok()) return status;
  if (python) {
    out.command_ = {"python3", fmt::format("{}/{}", folder->name, kDriver), file};
    return out;
  }
  const std::string program = folder->name + "/schedule";
  const auto compiled = run_program({.words = {"c++", "-std=c++17", "-D_GLIBCXX_ASSERTIONS", "-I",
                                               folder->name, "-o", program, file},
                                     .folder = folder->name,
                                     .variables = {"TMPDIR=" + folder->name}},
                                    kCompiling);
  if (!compiled.ok()) return compiled.status();
  if (!compiled->failure.empty()) {
    return invalid_argument(
        fmt::format("{} does not compile:\n{}", path, without_end(compiled->err)));
  }
  out.command_ = {program};
  return out;
}

Result<WrittenSchedule> ScheduleFunction::schedule(int ranks) const {
  const auto wrong = [&](Code code, std::string_view text) {
    return Status(code, fmt::format("{}, at N = {}: {}", path_, ranks, text));
  };
  std::vector<std::string> words = command_;
  words.push_back(std::to_string(ranks));
  const auto end =
      run_program({.words = std::move(words), .folder = folder_->name},
                  {.time = limits_.time, .bytes = kMostJsonBytes, .memory = limits_.memory});
  if (!end.ok()) {
    const bool beyond = end.status().code() == Code::invalid_argument;
    return wrong(end.status().code(),
                 end.status().text() + (beyond ? "; --seconds sets its time" : ""));
  }
  if (!end->failure.empty()) {
    const std::string said = without_end(end->err);
    // The names in Python and C++.
    const bool no_memory = said.find("MemoryError") != std::string::npos ||
                           said.find("bad_alloc") != std::string::npos;
    return wrong(Code::invalid_argument,
                 (said.empty() ? end->failure : said) +
                     (no_memory ? fmt::format("; it has {}, and --memory sets how much",
                                              format_bytes(limits_.memory))
                                : ""));
  }
  auto written = read_schedule(end->out);
  if (!written.ok()) return wrong(written.status().code(), written.status().text());
  if (written->goal.ranks != ranks) {
    return wrong(Code::invalid_argument,
                 "the schedule is one of " + counted(written->goal.ranks, "rank"));
  }
  return written;
}

namespace {

std::vector<Cell> row_of(int ranks, const Judgement& judged) {
  if (judged.violation) {
    return {ranks, "wrong", "", "", "", "", "", violation_name(*judged.violation)};
  }
  const double seconds = judged.simulation.seconds;
  std::vector<Cell> row = {ranks,
                           judged.counts.rounds,
                           judged.least_rounds,
                           judged.bytes,
                           times_of(judged.bytes, judged.least_bytes),
                           seconds};
  if (judged.best)
    row.insert(row.end(), {times_of(seconds, judged.best->seconds), judged.best->algorithm->name});
  return row;
}

struct Wrong {
  WrittenSchedule written;
  Violation violation;
};

void print_verdict(const std::vector<int>& proved, const std::vector<int>& wrong,
                   const std::optional<Wrong>& first, std::ostream& out) {
  if (wrong.empty()) {
    out << fmt::format("proved for N = {}\n", format_cpu_list(proved));
    return;
  }
  out << fmt::format("wrong for N = {}{}\n", format_cpu_list(wrong),
                     proved.empty() ? "" : "; proved for N = " + format_cpu_list(proved))
      << fmt::format("N = {}: {}\n", wrong[0], violation_name(first->violation))
      << violation_text(first->written, first->violation);
}

constexpr std::string_view kUsualRanks = "1..17";

Result<std::vector<int>> read_ranks(std::string_view argument, std::string_view text) {
  return parse_whole_list(argument, text, 1, kMostWrittenRanks);
}

struct CheckArguments {
  std::string file;
  std::vector<int> ranks;             // for a function; empty: kUsualRanks
  std::optional<int> seconds;         // for a function
  std::optional<std::size_t> memory;  // for a function
  std::size_t bytes = std::size_t{1} << 20;
  NetworkArguments network;
  Sync sync = Sync::dataflow;
  FormulaArguments formula;
  bool json = false;
};

Result<std::size_t> read_memory(std::string_view argument, std::string_view text) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  const auto bytes = parse_size(argument, text);
  if (!bytes.ok() || *bytes >= kLeast) return bytes;
  return invalid_argument(fmt::format(
      "{} is '{}'; allowed are 16M and more, which a program needs to start", argument, text));
}

// Judges a file with a function schedule(n), which must be right for every n: prints the cost of
// each schedule, and the reason of the first wrong one.
Result<Exit> check_function(const CheckArguments& a, const Fabric& network,
                            const SimulateOptions& options, Console& console) {
  // A function may run for ever; an interrupt must remove its folder and its process.
  const InterruptGuard guard;
  const auto interrupted = [&console] {
    console.err << "rankine check: interrupted\n";
    return exit_of_interruption();
  };
  const auto all = a.ranks.empty() ? read_ranks("--ranks", kUsualRanks).value() : a.ranks;
  FunctionLimits limits;
  if (a.seconds) limits.time = std::chrono::seconds(*a.seconds);
  if (a.memory) limits.memory = *a.memory;
  const auto function = ScheduleFunction::open(a.file, limits);
  if (interruption() != 0) return interrupted();
  if (!function.ok()) return function.status();
  Table table("N", "rounds", as::number("least", "", "-"), as::bytes("bytes"),
              As("{:.2f} x")("of the least"), as::model_time("time"), As("{:.2f} x")("of the best"),
              as::text("the best"));
  std::vector<int> proved, wrong;
  std::optional<Wrong> first;
  Progress progress(console);
  for (const int ranks : all) {
    progress.show(fmt::format("{}, N = {}", a.file, ranks));
    auto written = function->schedule(ranks);
    if (interruption() != 0) {
      progress.clear();
      return interrupted();
    }
    if (!written.ok()) return written.status();
    const auto fabric = wired_for(network, ranks).value();
    const auto judged = judge(*written, fabric, a.bytes, options).value();
    (judged.violation ? wrong : proved).push_back(ranks);
    if (a.json) {
      console.out << judgement_json(*written, judged, fabric, a.sync).dump() << '\n';
      continue;
    }
    table.rows.push_back(row_of(ranks, judged));
    if (judged.violation && !first) first = Wrong{std::move(*written), *judged.violation};
  }
  progress.clear();
  const Exit exit = wrong.empty() ? Exit::ok : Exit::wrong;
  if (a.json) return exit;
  console.out << to_text(table) << '\n';
  print_verdict(proved, wrong, first, console.out);
  if (!proved.empty()) {
    console.out << fmt::format("\nbytes: of {}, by the busiest rank; time: on {}, {}\n",
                               format_bytes(a.bytes), describe(network), name_of(a.sync));
  }
  return exit;
}

Result<Exit> check_order(const CheckArguments& a, const std::string& text,
                         const CheckLaboratory* laboratory, Console& console) {
  if (laboratory != nullptr) return laboratory->order(text, a.json, console);
  // The laboratory reads a file again; standard input has been consumed, so its text is passed on.
  return a.file == "-" ? start_laboratory(console, text) : start_laboratory(console);
}

Result<Exit> check_schedule(const CheckArguments& a, const CheckLaboratory* laboratory,
                            Console& console) {
  const auto network = network_of(a.network).value();
  const SimulateOptions options = {.sync = a.sync, .lower = a.network.lower};
  if (ScheduleFunction::is_named(a.file)) return check_function(a, network, options, console);
  for (const auto& [option, is_given] : {std::pair{"--ranks", !a.ranks.empty()},
                                         {"--seconds", a.seconds.has_value()},
                                         {"--memory", a.memory.has_value()}}) {
    if (!is_given) continue;
    return invalid_argument(fmt::format(
        "{} is given; allowed with it are files of a function: .py, .cc, .cpp and .cxx", option));
  }
  const auto text = read_input("FILE", a.file, kMostJsonBytes).value();
  if (is_order(text)) return check_order(a, text, laboratory, console);
  const auto written = read_schedule(text);
  if (!written.ok()) {
    return invalid_argument(fmt::format("{}: {}", a.file, written.status().text()));
  }
  const auto fabric = wired_for(network, written->goal.ranks).value();
  const auto judged = judge(*written, fabric, a.bytes, options).value();
  const Exit exit = judged.violation ? Exit::wrong : Exit::ok;
  if (a.json) {
    console.out << judgement_json(*written, judged, fabric, a.sync).dump() << '\n';
    return exit;
  }
  console.out << fmt::format("{} among {}: {}, {}\n", name_of(written->goal.collective),
                             counted(static_cast<std::size_t>(written->goal.ranks), "rank"),
                             counted(written->rounds.size(), "round"),
                             counted(judged.transfers, "transfer"));
  if (judged.violation) {
    console.out << fmt::format("wrong: {}\n", violation_name(*judged.violation))
                << violation_text(*written, *judged.violation);
  } else {
    console.out << "proved: every rank that needs a block ends with it, with each contribution "
                   "once; no transfer is superfluous\n\n"
                << costs_text(judged, fabric, a.bytes, a.sync);
  }
  return exit;
}

Result<Exit> run_check(const CheckArguments& a, const CheckLaboratory* laboratory,
                       Console& console) {
  const FormulaArguments& f = a.formula;
  const int asked = (a.file.empty() ? 0 : 1) + (f.task.empty() ? 0 : 1) + (f.list ? 1 : 0);
  if (asked != 1) {
    return invalid_argument("one of FILE, --task and --tasks is needed; allowed is one");
  }
  if (f.task.empty() && (!f.formula.empty() || f.seed)) {
    return invalid_argument("--formula or --seed is given; allowed with --task only");
  }
  if (!a.file.empty()) return check_schedule(a, laboratory, console);
  return laboratory != nullptr ? laboratory->formula(f, a.json, console)
                               : start_laboratory(console);
}

}  // namespace

Subcommand add_check(Command tool, const CheckLaboratory* laboratory) {
  auto owned = std::make_shared<CheckArguments>();
  CheckArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "check",
      "judge a schedule, a pipeline's order or a formula that you wrote: proof, costs, the best");
  add_text(app, "file", a.file, "FILE",
           "the schedule; '-': standard input; .py, .cc: a function that makes it");
  add_argument(app, "-t,--ranks", a.ranks, read_ranks, "LIST",
               fmt::format("ranks for a function: 8, 2,3,8 or 1..130 ({})", kUsualRanks));
  add_argument(app, "--seconds", a.seconds, Whole{1, 86'400}, "S",
               fmt::format("time of a function for each N ({})", FunctionLimits{}.time.count()));
  add_argument(app, "--memory", a.memory, read_memory, "SIZE",
               fmt::format("address space of each process of a function ({})",
                           format_size(FunctionLimits{}.memory)));
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
               "M: the vector, or one rank's send buffer of all_to_all (1M)");
  add_argument(app, "--sync", a.sync, read_sync, "NAME", "dataflow or rounds (dataflow)");
  add_network_arguments(app, a.network);
  add_text(app, "--task", a.formula.task, "NAME", "show this task, or judge a formula for it");
  add_text(app, "--formula", a.formula.formula, "TEXT", "your answer: '2*(N-1)/N*S'");
  add_argument(app, "--seed", a.formula.seed, read_seed, "N",
               "seed of the inputs for the formula (1)");
  app.add_flag("--tasks", a.formula.list, "list the tasks that have a formula as their answer");
  app.add_flag("--json", a.json, "one line of JSON");
  app.footer(
      "A schedule is text:\n"
      "  all_gather 4            collective and ranks; then root R, peer R, blocks B, planes P,\n"
      "                          other_bits (an all_reduce whose ranks may add in other orders)\n"
      "  round                   begins a round\n"
      "  0 -> 1: 0               rank 0 sends block 0 to rank 1, which keeps it\n"
      "  2 -> 3: 2 +             rank 3 adds it to its own\n"
      "  0 <-> 1: 0..3,6 +       both ways; several blocks in one message\n"
      "  1 -> 1: 2 on 1 to 0 +   reads plane 1, adds on plane 0 (local work)\n"
      "# begins a remark. 'rankine show ... --format text' writes algorithms so. Or it is JSON:\n"
      "  {\"collective\": \"all_gather\", \"ranks\": 2, \"transfers\": [[{\"from\": 0, \"to\": "
      "1,\n"
      "   \"what\": [0], \"act\": \"copy\"}, {\"from\": 1, \"to\": 0, \"what\": [1]}]]}\n"
      "Blocks of all_gather, reduce_scatter, gather and scatter have their rank's number; rank "
      "s's block for rank r of all_to_all is s * N + r; all others have one block, or the given "
      "number. All reads of a round happen before its writes.\n"
      "Or it is XML of MSCCL and RCCL, an execution plan of MSCCL++ (JSON), or GOAL of LogGOPSim. "
      "Chunks of their buffers become blocks; steps that use one chunk in no order are refused; "
      "'round' of a step gives its round.\n"
      "A pipeline's order is text, too: the work of each stage in order:\n"
      "  pipeline 2 micro_batches 3   then forward F, backward B, weights W, hop H (seconds: 1, "
      "2,\n"
      "                               0, 0), keep K (micro-batches at once), within T (seconds)\n"
      "  0: F0 F1 B0 F2 B1..2         forward and backward passes (and W if weights are set)\n"
      "  1: F0 B0 F1 B1 F2 B2\n"
      "A function makes a schedule for any number of ranks, and must be right for all. In "
      "Python:\n"
      "  collective = \"all_gather\"\n"
      "  def schedule(n):\n"
      "      for k in range(n - 1):\n"
      "          yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]  # from, to, block\n"
      "In C++, which is compiled with c++:\n"
      "  #include \"schedule_to_check.h\"\n"
      "  Schedule schedule(int n) {\n"
      "    Schedule s{\"all_gather\", n};\n"
      "    for (int k = 0; k + 1 < n; ++k) {\n"
      "      s.round();\n"
      "      for (int r = 0; r < n; ++r) s.copy(r, (r + 1) % n, (r - k + n) % n);\n"
      "    }\n"
      "    return s;\n"
      "  }\n"
      "The folder that 'rankine lesson' writes has both, with further options in examples/.\n"
      "WARNING: a function runs as a program with your rights and can change all files that you "
      "can change. Check other people's files only if you would run them. The program works in a "
      "temporary folder that is removed, has PATH as its only variable, and ends with all of its "
      "processes.\n"
      "Formulas: + - * / ( ) pow min max if floor ceil log2 clog2 flog2 sum, and the task's "
      "letters.\n"
      "Examples:\n"
      "  rankine check mine.txt --bytes 64M --network scale_out\n"
      "  rankine check ring.py --ranks 2..33\n"
      "  awk -f ring.awk | rankine check -\n"
      "  rankine show all_gather --algo ring --ranks 4 --format text | rankine check -\n"
      "  rankine check --task ring_bytes --formula '2*(N-1)/N*S'\n"
      "Exit codes: 0 proved or right, 1 wrong, 2 usage or unreadable, 3 no such file.\n"
      "Networks:\n" +
      describe_presets());
  return {app,
          [owned, laboratory](Console& console) { return run_check(*owned, laboratory, console); }};
}

}  // namespace rankine::tools
