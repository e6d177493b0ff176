#include "engine/api/mpi/homes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>
#include <span>
#include <string_view>

#include "engine/base/counted.h"
#include "engine/base/environment_variable.h"
#include "numa/levels.h"

namespace rankine {
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

Homes::Homes(const std::vector<ProcessHome>& processes) {
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

int Homes::most_threads() const {
  int most = 1;
  for (const Home& home : all_) most = std::max(most, home.thread + 1);
  return most;
}

std::vector<Rank> Homes::on_node(int node) const {
  std::vector<Rank> found;
  for (Rank r = 0; r < ranks(); ++r) {
    if ((*this)[r].node == node) found.push_back(r);
  }
  return found;
}

std::vector<Rank> Homes::in_process(int process) const {
  std::vector<Rank> found;
  for (Rank r = 0; r < ranks(); ++r) {
    if ((*this)[r].process == process) found.push_back(r);
  }
  return found;
}

std::vector<Way> Homes::ways_of(Rank r, bool memory) const {
  const Home& self = (*this)[r];
  std::vector<Way> ways;
  for (const Home& home : all_) {
    ways.push_back(home.process == self.process       ? Way::here
                   : memory && home.node == self.node ? Way::scratch
                                                      : Way::wire);
  }
  return ways;
}

std::string Homes::in_words() const {
  std::vector<int> sizes(static_cast<std::size_t>(nodes_), 0);
  bool neighbours = true;
  for (Rank r = 0; r < ranks(); ++r) {
    ++sizes[static_cast<std::size_t>((*this)[r].node)];
    neighbours = neighbours && (r == 0 || (*this)[r].node >= (*this)[r - 1].node);
  }
  const std::string nodes = counted(nodes_, "node");
  if (neighbours) return nodes + " with " + list_in_words(sizes) + " ranks";
  std::vector<int> places;
  for (const Home& home : all_) places.push_back(home.node);
  return nodes + ", ranks on " + list_in_words(places);
}

Status Homes::take_nodes(const Algorithm& algorithm, CallOptions& options) const {
  const bool levels = algorithm.takes("levels") && options.levels.empty();
  const bool group = algorithm.takes("group") && options.group == 0;
  if (nodes_ == 1 || (!levels && !group)) return {};
  if (group_ == 0) {
    return invalid_argument(std::string(algorithm.name) +
                            " takes its groups from the nodes, which must be as many "
                            "neighbouring ranks each (the last one may have fewer); there are " +
                            in_words() + "; " + (group ? "group" : "levels") +
                            " of the options says others");
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

}  // namespace rankine
