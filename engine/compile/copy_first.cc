#include "engine/compile/copy_first.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rankine {
namespace {

// Bytes of a rank's input that are wanted in its output from the start, and the operation that
// copies them there.
struct Wanted {
  std::size_t begin = 0, end = 0;
  int operation = -1;
};

// What others read, and what is a result as it is: in place that lies there, and others may be
// reading it when its turn comes.
bool is_wanted(const Operation& op, const Source& source) {
  return (source.rank != op.rank || op.only_if_moved) && source.place.memory == Memory::input &&
         op.bytes > 0;
}

// By rank: disjoint, in order.
std::vector<std::vector<Wanted>> wanted_bytes(const Program& program, PlanMeter* meter) {
  std::vector<std::vector<Wanted>> by_rank(static_cast<std::size_t>(program.ranks));
  for (const Operation& op : program.operations) {
    step(meter);
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      if (!is_wanted(op, source)) continue;
      std::vector<Wanted>& wanted = by_rank[static_cast<std::size_t>(source.rank)];
      const std::size_t begin = source.place.offset, end = begin + op.bytes;
      // Blocks are mostly read in order.
      if (!wanted.empty() && wanted.back().end == begin) {
        wanted.back().end = end;
      } else {
        wanted.push_back({begin, end});
      }
    }
  }
  for (std::vector<Wanted>& wanted : by_rank) {
    std::sort(wanted.begin(), wanted.end(),
              [](const Wanted& a, const Wanted& b) { return a.begin < b.begin; });
    std::vector<Wanted> joined;
    for (const Wanted& w : wanted) {
      if (!joined.empty() && w.begin <= joined.back().end) {
        joined.back().end = std::max(joined.back().end, w.end);
      } else {
        joined.push_back(w);
      }
    }
    wanted = std::move(joined);
  }
  return by_rank;
}

}  // namespace

Program copy_first(Program out, PlanMeter* meter) {
  std::vector<std::vector<Wanted>> wanted = wanted_bytes(out, meter);
  std::vector<Operation> firsts;
  for (Rank r = 0; r < out.ranks; ++r) {
    for (Wanted& w : wanted[static_cast<std::size_t>(r)]) {
      w.operation = static_cast<int>(firsts.size());
      Operation first;
      first.rank = r;
      first.round = kStaging;
      first.destination = {Memory::output, w.begin};
      first.bytes = w.end - w.begin;
      first.first_source = static_cast<int>(out.sources.size());
      first.sources = 1;
      out.sources.push_back({.rank = r, .place = {Memory::input, w.begin}});
      firsts.push_back(first);
    }
  }
  const int added = static_cast<int>(firsts.size());
  for (const Operation& op : out.operations) {
    step(meter);
    for (int s = 0; s < op.sources; ++s) {
      Source& source = out.sources[static_cast<std::size_t>(op.first_source + s)];
      if (source.producer >= 0) {
        source.producer += added;
      } else if (is_wanted(op, source)) {
        const auto& of_rank = wanted[static_cast<std::size_t>(source.rank)];
        const auto after =
            std::upper_bound(of_rank.begin(), of_rank.end(), source.place.offset,
                             [](std::size_t offset, const Wanted& w) { return offset < w.begin; });
        source.producer = (after - 1)->operation;
        source.place.memory = Memory::output;
      }
    }
  }
  out.operations.reserve(out.operations.size() + firsts.size());
  out.operations.insert(out.operations.begin(), firsts.begin(), firsts.end());
  for (int& earlier : out.earlier) earlier += added;
  return out;
}

}  // namespace rankine
