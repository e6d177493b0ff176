#include "engine/compile/own_first.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "engine/base/cache_line.h"
#include "engine/compile/footprint.h"

namespace rankine {
namespace {

class OwnFirst {
 public:
  OwnFirst(const Program& program, Buffers buffers, std::size_t from, PlanMeter* meter)
      : old_(program), from_(from), footprint_(program, own_values(buffers), meter), meter_(meter) {
    new_.ranks = old_.ranks;
    new_.rounds = old_.rounds;
    new_.eager = old_.eager;
    new_.scratch_bytes = old_.scratch_bytes;
  }

  Program run() {
    for (std::size_t i = 0; i < old_.operations.size(); ++i) {
      step(meter_);
      const auto index = static_cast<int>(i);
      if (is_contended(index)) {
        split(index);
      } else {
        add(index, 0, old_.operations[i].bytes, renumbered(index), true);
      }
      last_.push_back(static_cast<int>(new_.operations.size()) - 1);
    }
    return std::move(new_);
  }

 private:
  std::span<const Source> sources_of(int index) const {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    return {old_.sources.data() + op.first_source, static_cast<std::size_t>(op.sources)};
  }

  // The sources of an old operation, as made by new ones.
  std::vector<Source> renumbered(int index) const {
    const auto sources = sources_of(index);
    std::vector<Source> out(sources.begin(), sources.end());
    for (Source& s : out) {
      if (s.producer >= 0) s.producer = last_[static_cast<std::size_t>(s.producer)];
    }
    return out;
  }

  // Which of an operation's sources is its rank's own; none, or several: -1.
  int own_of(int index) const {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    const auto sources = sources_of(index);
    int own = -1;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].rank != op.rank) continue;
      if (own >= 0) return -1;
      own = static_cast<int>(i);
    }
    return own;
  }

  // Where the own value lies of an operation that adds up that and others'; else nullptr.
  const Place* own_value(int index) const {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    if (op.bytes < from_ || op.sources < 2) return nullptr;
    const int own = own_of(index);
    return own < 0 ? nullptr : &sources_of(index)[static_cast<std::size_t>(own)].place;
  }

  Footprint::Memories own_values(Buffers buffers) const {
    Footprint::Memories all(old_.ranks, buffers);
    for (std::size_t i = 0; i < old_.operations.size(); ++i) {
      if (const Place* own = own_value(static_cast<int>(i))) all.add(old_.operations[i].rank, *own);
    }
    return all;
  }

  // Own value and others', while others read our own.
  bool is_contended(int index) const {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    const Place* own = own_value(index);
    if (own == nullptr || footprint_.resolved(*own) == footprint_.resolved(op.destination)) {
      return false;
    }
    bool others = false;
    footprint_.for_each(op.rank, *own, op.bytes, [&](const Footprint::Touch& t) {
      step(meter_);
      const Operation& other = old_.operations[static_cast<std::size_t>(t.operation)];
      others |= other.round == op.round && other.rank != op.rank;
    });
    return others;
  }

  void split(int index) {
    const Operation& op = old_.operations[static_cast<std::size_t>(index)];
    std::vector<Source> sources = renumbered(index);
    const auto own = static_cast<std::size_t>(own_of(index));
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
  const std::size_t from_;
  const Footprint footprint_;
  PlanMeter* const meter_;
  Program new_;
  std::vector<int> last_;  // per old operation: the last new one made of it
};

}  // namespace

Program own_first(Program program, Buffers buffers, std::size_t from, PlanMeter* meter) {
  const auto splits = [from](const Operation& op) { return op.bytes >= from && op.sources > 1; };
  // What nothing can be done about need not be looked at.
  if (std::none_of(program.operations.begin(), program.operations.end(), splits)) return program;
  return OwnFirst(program, buffers, from, meter).run();
}

}  // namespace rankine
