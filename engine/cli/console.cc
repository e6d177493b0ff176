#include "engine/cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <ostream>
#include <streambuf>
#include <string>
#include <system_error>
#include <utility>

#include "engine/base/files.h"

namespace rankine::tools {

Exit exit_of(Code code) {
  switch (code) {
    case Code::ok:
      return Exit::ok;
    case Code::invalid_argument:
      return Exit::usage;
    case Code::timeout:
      return Exit::timeout;
    case Code::out_of_memory:
    case Code::system:
      return Exit::environment;
    case Code::mismatch:
    case Code::rank_lost:
    case Code::remote_error:
    case Code::aborted:
    case Code::forked:
      return Exit::wrong;
  }
  return Exit::wrong;
}

std::string time_left(std::size_t done, std::size_t all, double seconds) {
  if (done == 0 || done >= all || seconds < 1) return {};
  const double left = seconds / static_cast<double>(done) * static_cast<double>(all - done);
  if (left >= 3600) return fmt::format(", {:.1f} h left", left / 3600);
  if (left >= 120) return fmt::format(", {:.0f} min left", left / 60);
  return fmt::format(", {:.0f} s left", std::max(1.0, left));
}

void Progress::show(std::string_view text) {
  if (!console_.err_is_terminal) {
    const double took = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (next_line_ <= 0 || took < next_line_) return;
    console_.err << text << std::endl;
    while (next_line_ <= took) next_line_ *= 2;
    return;
  }
  const std::size_t blanks = width_ > text.size() ? width_ - text.size() : 0;
  console_.err << '\r' << text << std::string(blanks, ' ') << std::flush;
  width_ = text.size();
}

bool Progress::due() {
  const auto now = Clock::now();
  if (now - was_due_ < std::chrono::milliseconds(100)) return false;
  was_due_ = now;
  return true;
}

void Progress::clear() {
  if (width_ == 0) return;
  console_.err << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

namespace {

// Carries the number of a signal and no other data, so relaxed order suffices.
std::atomic<int> came{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores to it");

void note(int signal) { came.store(signal, std::memory_order_relaxed); }

void watch(int signal, struct sigaction& before) {
  struct sigaction noting {};
  noting.sa_handler = note;
  noting.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // a second signal acts as usual
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &noting, nullptr);
}

}  // namespace

int interruption() noexcept { return came.load(std::memory_order_relaxed); }

Exit exit_of_interruption() {
  return interruption() == SIGTERM ? Exit::terminated : Exit::interrupted;
}

InterruptGuard::InterruptGuard() {
  came.store(0, std::memory_order_relaxed);
  watch(SIGINT, on_interrupt_);
  watch(SIGTERM, on_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &on_interrupt_, nullptr);
  sigaction(SIGTERM, &on_terminate_, nullptr);
}

namespace {

Status unreadable(std::string_view option, const std::string& file, std::string_view why) {
  return {Code::system, fmt::format("{} is '{}', which cannot be read: {}", option, file, why)};
}

}  // namespace

Status read_input(std::string_view option, const std::string& file,
                  const std::function<void(std::istream&)>& read) {
  if (file == "-") {
    read(std::cin);
    return {};
  }
  std::ifstream in(file, std::ios::binary);
  const int error = errno;
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(file, unknown);  // a folder can be opened, but
                                                                     // has no lines
  if (!in || folder) return unreadable(option, file, std::strerror(folder ? EISDIR : error));
  read(in);
  return {};
}

Result<std::string> read_input(std::string_view option, const std::string& file,
                               std::size_t most_bytes) {
  if (file != "-") {
    SmallFile whole = read_small_file(file, most_bytes);
    if (whole.ok()) return std::move(whole.text);
    return unreadable(option, file, whole.error);
  }
  std::string text;
  std::array<char, 1 << 16> part;
  while (std::cin.read(part.data(), part.size()), std::cin.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > most_bytes) {
      return invalid_argument(
          fmt::format("standard input has more than {} bytes; no more are read", most_bytes));
    }
  }
  return text;
}

Status check_input(std::string_view option, const std::string& file) {
  if (access(file.c_str(), R_OK) == 0) return {};
  return unreadable(option, file, std::strerror(errno));
}

int file_in_memory(std::string_view text) {
  const int file = memfd_create("rankine", MFD_CLOEXEC);
  if (file < 0) return -1;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && lseek(file, 0, SEEK_SET) == 0) return file;
  close(file);
  return -1;
}

std::vector<LineReader::Line> LineReader::next(std::size_t most) {
  constexpr std::size_t kEnoughBytes = std::size_t{1} << 20;
  const auto has_more_input = [this] { return in_.rdbuf()->in_avail() > 0; };
  while (!ended_ && (whole_.empty() ||
                     (whole_.size() < most && whole_bytes_ < kEnoughBytes && has_more_input()))) {
    read_some();
  }
  std::vector<Line> lines;
  for (; !whole_.empty() && lines.size() < most; whole_.pop_front()) {
    whole_bytes_ -= whole_.front().text.size();
    lines.push_back(std::move(whole_.front()));
  }
  return lines;
}

// Waits for one byte and takes the bytes that came with it: asking for more would wait for more.
void LineReader::read_some() {
  constexpr std::streamsize kAtOnce = std::streamsize{64} << 10;
  char bytes[kAtOnce];
  std::streambuf& in = *in_.rdbuf();
  if (in.sgetc() == std::char_traits<char>::eof()) {
    ended_ = true;
    if (in_line_) end_line();
    return;
  }
  const char* from = bytes;
  const char* const end =
      bytes + in.sgetn(bytes, std::clamp<std::streamsize>(in.in_avail(), 1, kAtOnce));
  while (from < end) {
    const char* const stop = std::find(from, end, '\n');
    append(from, stop);
    if (stop == end) break;
    end_line();
    from = stop + 1;
  }
}

void LineReader::append(const char* from, const char* to) {
  in_line_ = true;
  const std::size_t room = most_bytes_ + 1 - begun_.size();
  begun_.append(from, std::min(static_cast<std::size_t>(to - from), room));
}

void LineReader::end_line() {
  whole_bytes_ += begun_.size();
  whole_.push_back({++number_, std::exchange(begun_, {})});
  in_line_ = false;
}

DescriptorBuffer::DescriptorBuffer(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), collected_(std::size_t{64} << 10) {
  setp(collected_.data(), collected_.data() + collected_.size());
}

void DescriptorBuffer::write_out() {
  const char* from = pbase();
  const char* const end = pptr();
  setp(collected_.data(), collected_.data() + collected_.size());
  while (from < end) {
    const ssize_t written = write(descriptor_, from, static_cast<std::size_t>(end - from));
    if (written >= 0) {
      from += written;
    } else if (errno == EAGAIN) {  // another process made the descriptor non-blocking
      pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      static_cast<void>(poll(&room, 1, -1));
    } else if (errno != EINTR) {
      throw OutputError(name_ + " cannot be written: " + std::strerror(errno));
    }
  }
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  write_out();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int DescriptorBuffer::sync() {
  write_out();
  return 0;
}

namespace {

std::string in_columns(std::string_view line, int width) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t second = line.find_first_not_of(' ', gap);
  if (line.size() <= static_cast<std::size_t>(width) || second == std::string_view::npos) {
    return std::string(line) + "\n";
  }
  const std::string behind = wrapped(line.substr(second), width, second);
  return std::string(line.substr(0, second)) + behind.substr(second);
}

}  // namespace

int terminal_width(int otherwise) {
  constexpr int kNarrowest = 20;
  if (const char* value = environment_variable("COLUMNS")) {
    const std::string_view text = value;
    int columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns >= kNarrowest) {
      return columns;
    }
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return std::max<int>(kNarrowest, size.ws_col);
}

std::string wrapped(std::string_view text, int width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out, line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && indent + line.size() + 1 + word.size() > static_cast<std::size_t>(width)) {
      out += margin + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) out += margin + line + "\n";
  return out;
}

std::string filled(std::string_view paragraphs, int width) {
  std::string out;
  while (!paragraphs.empty()) {
    const std::size_t end = std::min(paragraphs.find('\n'), paragraphs.size());
    const std::string_view one = paragraphs.substr(0, end);
    paragraphs.remove_prefix(std::min(end + 1, paragraphs.size()));
    const bool copied = one.empty() || one.front() == ' ';
    out += copied ? in_columns(one, width) : wrapped(one, width, 0);
  }
  return out;
}

void change_to_user_directory() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || here.string().find(".runfiles/") == std::string::npos) return;
  for (const char* name : {"RANKINE_WITH_WORKING_DIRECTORY", "BUILD_WORKING_DIRECTORY"}) {
    const char* there = environment_variable(name);
    if (there == nullptr || *there == '\0') continue;
    std::filesystem::current_path(there, error);
    if (!error) return;
  }
}

}  // namespace rankine::tools
