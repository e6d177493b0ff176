#include "bench/rivals/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "engine/base/child_process.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"

namespace rankine::rivals {
namespace {

using Clock = std::chrono::steady_clock;

std::runtime_error failed(const char* what) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

constexpr double kStartLimitS = 180;

nlohmann::json parse(const std::optional<std::string>& line) {
  if (!line) return {};
  const auto read = read_json("the answer", *line);
  return read.ok() ? *read : nlohmann::json();
}

}  // namespace

Coprocess::Coprocess(std::vector<std::string> arguments, double patience_s)
    : patience_(patience_s) {
  signal(SIGPIPE, SIG_IGN);  // send() reports it
  // All pipes are close-on-exec: a coprocess that held another one's pipe open would hide the end
  // of that one's input.
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw failed("pipe2");
  errors_ = memfd_create("errors", MFD_CLOEXEC);
  if (errors_ < 0) throw failed("memfd_create");
  // stop() reaches the children in its group; the terminal's ^C does not. SIGTERM: mpirun then ends
  // its ranks.
  child_ = start_program(std::move(arguments), {to[0], from[1], errors_},
                         {.leads_group = true, .when_parent_ends = SIGTERM});
  if (!child_.runs()) throw failed("fork");
  close(to[0]);
  close(from[1]);
  to_ = to[1];
  from_ = from[0];
}

bool Coprocess::send(const std::string& line) { return write_all(to_, line + "\n") == 0; }

std::optional<std::string> Coprocess::receive(double limit_s) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_s);
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    pollfd readable{from_, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&readable, 1, static_cast<int>(left.count()) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t n = read(from_, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    unread_.append(buffer, static_cast<std::size_t>(n));
  }
}

int Coprocess::stop() {
  close(std::exchange(to_, -1));
  if (!child_.wait(patience_)) {
    child_.send(SIGTERM);
    if (!child_.wait(patience_)) child_.end();
  }
  const int status = child_.wait();
  close(std::exchange(from_, -1));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string Coprocess::last_words() const {
  std::string text(4096, '\0');
  const off_t size = lseek(errors_, 0, SEEK_END);
  const off_t from = size > 4096 ? size - 4096 : 0;
  const ssize_t n = pread(errors_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  std::string last;
  std::string line;
  for (const char c : text + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    // Launchers print lines of dashes around their messages.
    if (line.find_first_not_of("- \t\r") != std::string::npos) last = line;
    line.clear();
  }
  return last;
}

std::string find_start_mpi() {
  namespace fs = std::filesystem;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  for (const std::string& folder : {self + ".runfiles/rankine", std::string(".")}) {
    const std::string path = folder + "/bench/rivals/start_mpi";
    if (fs::exists(path)) return path;
  }
  return "start_mpi";
}

std::vector<std::string> mpi_names(const std::string& start_mpi) {
  Coprocess script({start_mpi, "--names"});
  std::vector<std::string> names;
  while (auto name = script.receive(kStartLimitS)) names.push_back(std::move(*name));
  return names;
}

MpiContender::MpiContender(std::string its_name, const std::string& start_mpi, const Setup& setup)
    : Contender(std::move(its_name), Family::kMpi) {
  job_ = std::make_unique<Coprocess>(std::vector<std::string>{
      start_mpi, name, std::to_string(setup.ranks), setup.crowded ? "crowded" : "roomy"});
}

void MpiContender::await() {
  const nlohmann::json ready = parse(job_->receive(kStartLimitS));
  if (!ready.is_object() || !ready.contains("ready")) {
    give_up("did not start");
    return;
  }
  version = ready.value("library", "");
  settings = ready.value("settings", "");
}

Measured MpiContender::run(const Batch& batch) {
  std::ostringstream order;
  order << name_of(batch.collective) << ' ' << batch.bytes << ' ' << name_of(batch.protocol) << ' '
        << batch.calls << ' ' << batch.warmups << ' ' << batch.in_place << ' ' << batch.seed;
  const nlohmann::json answer =
      job_->send(order.str()) ? parse(job_->receive(kBatchLimitS)) : nlohmann::json();
  if (!answer.is_object() || !answer.contains("us")) {
    give_up("failed at " + std::to_string(batch.bytes) + " B");
    return {};
  }
  return {answer.value("us", 0.0), answer.value("wall_us", 0.0),
          answer.value("wrong", std::uint64_t{0}),
          answer.value("percentiles", std::vector<double>{})};
}

void MpiContender::give_up(const std::string& what) {
  const int status = job_->stop();
  const std::string words = job_->last_words();
  missing = what + " (status " + std::to_string(status) + ")" + (words.empty() ? "" : ": " + words);
  if (status == kNotInstalled) missing = words;
}

}  // namespace rankine::rivals
