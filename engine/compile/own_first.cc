#include "engine/compile/own_first.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "engine/base/cache_line.h"
#include "engine/compile/footprint.h"

namespace rankine {
namespace {

std::span<const Source> sources_of(const Program& program, const Operation& op) {
  return {program.sources.data() + op.first_source, static_cast<std::size_t>(op.sources)};
}

// Which of an operation's sources is its rank's own; none, or several: -1.
int own_of(const Program& program, const Operation& op) {
  const auto sources = sources_of(program, op);
  int own = -1;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].rank != op.rank) continue;
    if (own >= 0) return -1;
    own = static_cast<int>(i);
  }
  return own;
}

// What of a program can be copied first, and when.
struct Terms {
  Buffers buffers;
  std::size_t from;

  // Where the own value lies of an operation that adds up that and others', elsewhere than it lies
  // itself; else nullptr.
  const Place* own_value(const Program& program, const Operation& op) const {
    if (op.bytes < from || op.sources < 2) return nullptr;
    const int own = own_of(program, op);
    if (own < 0) return nullptr;
    const Place& place = sources_of(program, op)[static_cast<std::size_t>(own)].place;
    return resolved(place, buffers) == resolved(op.destination, buffers) ? nullptr : &place;
  }

  Footprint::Memories own_values(const Program& program) const {
    Footprint::Memories all(program.ranks, buffers);
    for (const Operation& op : program.operations) {
      if (const Place* own = own_value(program, op)) all.add(op.rank, *own, op.bytes);
    }
    return all;
  }
};

// By operation: own value and others', while others read our own. Empty: none is so.
std::vector<bool> contended(const Program& program, const Terms& terms, PlanMeter* meter) {
  Footprint::Memories own_values = terms.own_values(program);
  if (own_values.questions() == 0) return {};
  const Footprint footprint(program, std::move(own_values), 0, meter);
  std::vector<bool> out;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    step(meter);
    const Operation& op = program.operations[i];
    const Place* own = terms.own_value(program, op);
    if (own == nullptr) continue;
    bool others = false;
    footprint.for_each(op.rank, *own, op.bytes, [&](const Footprint::Touch& t) {
      step(meter);
      const Operation& other = program.operations[static_cast<std::size_t>(t.operation)];
      others |= other.round == op.round && other.rank != op.rank;
    });
    if (!others) continue;
    out.resize(program.operations.size());
    out[i] = true;
  }
  return out;
}

class OwnFirst {
 public:
  OwnFirst(const Program& program, PlanMeter* meter) : old_(program), meter_(meter) {
    new_.ranks = old_.ranks;
    new_.rounds = old_.rounds;
    new_.eager = old_.eager;
    new_.scratch_bytes = old_.scratch_bytes;
  }

  Program run(const std::vector<bool>& contended) {
    for (std::size_t i = 0; i < old_.operations.size(); ++i) {
      step(meter_);
      const auto index = static_cast<int>(i);
      if (contended[i]) {
        split(index);
      } else {
        add(index, 0, old_.operations[i].bytes, renumbered(index), true);
      }
      last_.push_back(static_cast<int>(new_.operations.size()) - 1);
    }
    return std::move(new_);
  }

 private:
  // The sources of an old operation, as made by new ones.
  std::vector<Source> renumbered(int index) const {
    const auto sources = sources_of(old_, old_.operations[static_cast<std::size_t>(index)]);
    std::vector<Source> out(sources.begin(), sources.end());
    for (Source& s : out) {
      if (s.producer >= 0) s.producer = last_[static_cast<std::size_t>(s.producer)];
    }
    return out;
  }

  void split(int index) {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    std::vector<Source> sources = renumbered(index);
    const auto own = static_cast<std::size_t>(own_of(old_, op));
    // Our part: the ranks that take part, in order, have one part each.
    const auto before = std::count_if(sources.begin(), sources.end(),
                                      [&](const Source& s) { return s.rank < op.rank; });
    const std::size_t lines = (op.bytes + kCacheLine - 1) / kCacheLine;
    const auto border = [&](std::ptrdiff_t part) {
      return std::min(op.bytes,
                      lines * static_cast<std::size_t>(part) / sources.size() * kCacheLine);
    };
    const std::size_t begin = border(before), end = border(before + 1);
    const std::pair<std::size_t, std::size_t> rest[] = {{end, op.bytes}, {0, begin}};
    int copied[2] = {};
    for (int i = 0; i < 2; ++i) {
      copied[i] =
          add(index, rest[i].first, rest[i].second, std::span(sources).subspan(own, 1), false);
    }
    add(index, begin, end, sources, true);
    for (int i = 0; i < 2; ++i) {
      sources[own] = {op.rank, copied[i], op.destination};
      add(index, rest[i].first, rest[i].second, sources, true);
    }
  }

  // Bytes begin .. end of an old operation, from these sources. Its number; -1: there are no bytes.
  int add(int index, std::size_t begin, std::size_t end, std::span<const Source> sources,
          bool completes) {
    Operation op = old_.operations[static_cast<std::size_t>(index)];
    if (begin == end && op.bytes != 0) return -1;
    op.destination.offset += begin;
    op.bytes = end - begin;
    op.completes &= completes;
    const bool is_part = op.bytes != old_.operations[static_cast<std::size_t>(index)].bytes;
    op.first_source = static_cast<int>(new_.sources.size());
    op.sources = static_cast<int>(sources.size());
    for (Source s : sources) {
      if (is_part && meter_ != nullptr) meter_->move();
      s.place.offset += begin;
      new_.sources.push_back(s);
    }
    const auto first = old_.earlier.begin() + op.first_earlier;
    op.first_earlier = static_cast<int>(new_.earlier.size());
    std::transform(first, first + op.earlier, std::back_inserter(new_.earlier),
                   [this](int e) { return last_[static_cast<std::size_t>(e)]; });
    new_.operations.push_back(op);
    return static_cast<int>(new_.operations.size()) - 1;
  }

  const Program& old_;
  PlanMeter* const meter_;
  Program new_;
  std::vector<int> last_;  // per old operation: the last new one made of it
};

}  // namespace

Program own_first(Program program, Buffers buffers, std::size_t from, PlanMeter* meter) {
  const std::vector<bool> split = contended(program, {buffers, from}, meter);
  // What nothing can be done about stays as it is.
  if (split.empty()) return program;
  return OwnFirst(program, meter).run(split);
}

}  // namespace rankine
