#include "engine/api/mpi/rank_locations.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/processes/identity.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/base/numbers.h"
#include "engine/base/statistics.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "numa/placement.h"

namespace rankine {
namespace {

std::uint64_t with_text(std::uint64_t hash, const char* text, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) hash = mixed(hash, static_cast<unsigned char>(text[i]));
  return hash;
}

// A number that identifies the running kernel; if it cannot be read, a hash of the host's name.
std::uint64_t machine() {
  char text[64] = {};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text));
  if (file >= 0) close(file);
  if (length > 0) return with_text(1, text, static_cast<std::size_t>(length));
  utsname name{};
  uname(&name);
  return with_text(2, name.nodename, sizeof(name.nodename));
}

// A file that cannot be read counts as 0: the meeting of the ranks will report the error.
std::uint64_t with_file(std::uint64_t hash, const char* path) {
  struct stat found {};
  if (stat(path, &found) != 0) return mixed(hash, 0);
  return mixed(mixed(hash, found.st_dev), found.st_ino);
}

SharedHost look() {
  const std::uint64_t here = machine();
  std::uint64_t all = mixed(here, geteuid());
  for (const char* path : {kSharedFolder, "/proc/self/ns/pid", "/proc/self/ns/user"})
    all = with_file(all, path);
  return {here, all};
}

}  // namespace

const SharedHost& shared_host() {
  static const SharedHost found = look();
  return found;
}

namespace {

// "3, 2 and 1"
std::string list_in_words(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 < numbers.size() ? ", " : " and ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

}  // namespace

RankLocations::RankLocations(const std::vector<ProcessLocation>& processes) {
  std::map<int, int> numbers;
  std::vector<int> of_rank;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const auto [at, is_new] = numbers.try_emplace(processes[p].node, nodes_);
    if (is_new) ++nodes_;
    firsts_.push_back(ranks());
    for (int t = 0; t < processes[p].threads; ++t) {
      all_.push_back({at->second, static_cast<int>(p), t});
      of_rank.push_back(at->second);
    }
  }
  if (nodes_ == 1) return;
  if (nodes_ == ranks()) {
    group_ = 1;
  } else if (const auto sizes = level_groups(std::span(&of_rank, 1)); !sizes.empty()) {
    group_ = sizes.front();
  }
  levels_ = {group_};
}

int RankLocations::most_threads() const {
  int most = 1;
  for (const RankLocation& home : all_) most = std::max(most, home.thread + 1);
  return most;
}

std::vector<Rank> RankLocations::on_node(int node) const {
  std::vector<Rank> found;
  for (Rank r = 0; r < ranks(); ++r) {
    if ((*this)[r].node == node) found.push_back(r);
  }
  return found;
}

std::vector<Rank> RankLocations::in_process(int process) const {
  std::vector<Rank> found;
  for (Rank r = 0; r < ranks(); ++r) {
    if ((*this)[r].process == process) found.push_back(r);
  }
  return found;
}

std::string RankLocations::in_words() const {
  std::vector<int> sizes(static_cast<std::size_t>(nodes_), 0);
  bool neighbours = true;
  for (Rank r = 0; r < ranks(); ++r) {
    ++sizes[static_cast<std::size_t>((*this)[r].node)];
    neighbours = neighbours && (r == 0 || (*this)[r].node >= (*this)[r - 1].node);
  }
  const std::string nodes = counted(nodes_, "node");
  if (neighbours) return nodes + " with " + list_in_words(sizes) + " ranks";
  std::vector<int> places;
  for (const RankLocation& home : all_) places.push_back(home.node);
  return nodes + ", ranks on " + list_in_words(places);
}

Status RankLocations::take_nodes(const Algorithm& algorithm, CallOptions& options) const {
  const bool levels = algorithm.takes("levels") && options.levels.empty();
  const bool group = algorithm.takes("group") && options.group == 0;
  if (nodes_ == 1 || (!levels && !group)) return {};
  if (group_ == 0) {
    return invalid_argument(std::string(algorithm.name) +
                            " takes its groups from the nodes, which are " + in_words() +
                            "; allowed are nodes of equally many neighbouring ranks (the last one "
                            "may have fewer), or " +
                            (group ? "group" : "levels") + " set in the options");
  }
  if (levels) options.levels = levels_;
  if (group) options.group = group_;
  return {};
}

Result<std::vector<int>> read_made_up_nodes() {
  std::vector<int> sizes;
  const char* const text = environment_variable("RANKINE_MPI_NODES");
  if (text == nullptr) return sizes;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    int size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 1) {
      return invalid_argument("environment variable RANKINE_MPI_NODES is '" + std::string(text) +
                              "'; allowed are numbers of processes from 1 on, with commas between "
                              "them");
    }
    sizes.push_back(size);
    if (part.size() == rest.size()) return sizes;
    rest.remove_prefix(part.size() + 1);
  }
}

int made_up_node(const std::vector<int>& sizes, int process) {
  const int turn = std::accumulate(sizes.begin(), sizes.end(), 0);
  int node = process / turn * static_cast<int>(sizes.size());
  int rest = process % turn;
  for (const int size : sizes) {
    if (rest < size) break;
    rest -= size;
    ++node;
  }
  return node;
}

namespace {

std::string in_words(std::span<const TimedMessage> messages) {
  std::string text;
  for (const TimedMessage& message : messages) {
    if (!text.empty()) text += ", ";
    text += std::to_string(message.bytes) + " B in " + format_seconds(message.seconds);
  }
  return text;
}

}  // namespace

Result<Link> line_through(std::span<const TimedMessage> messages) {
  const TimedMessage& shortest = messages.front();
  std::vector<double> slopes;
  for (const TimedMessage& longer : messages.subspan(1)) {
    slopes.push_back((longer.seconds - shortest.seconds) /
                     static_cast<double>(longer.bytes - shortest.bytes));
  }
  const auto fabric =
      machine_fabric({.alpha = shortest.seconds, .beta = median(std::move(slopes)), .gamma = 0});
  if (fabric.ok()) return fabric->link;
  return invalid_argument("no alpha and beta fit the times of messages, " + in_words(messages) +
                          ": " + fabric.status().text() + "; measure again on an idle machine");
}

}  // namespace rankine
