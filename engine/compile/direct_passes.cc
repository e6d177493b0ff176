#include "engine/compile/passes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/memory.h"
#include "engine/compile/program.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

// The operation of another rank that makes exactly the bytes that this one copies; -1: none.
int maker_of(const DataflowProgram& program, const Operation& taker) {
  if (taker.sources != 1) return -1;
  const Source& source = program.sources[static_cast<std::size_t>(taker.first_source)];
  if (source.rank == taker.rank || source.producer < 0) return -1;
  const Operation& maker = program.operations[static_cast<std::size_t>(source.producer)];
  const bool makes_it =
      maker.sources >= 2 && maker.destination == source.place && maker.bytes == taker.bytes;
  return makes_it ? source.producer : -1;
}

class Pusher {
 public:
  // A pusher with queries about these memories, which moves at most `further` copies.
  Pusher(const DataflowProgram& program, Footprint::Memories asked, std::size_t further,
         PushMutant mutant, PlanningBudget* meter)
      : program_(program),
        footprint_(program, std::move(asked), further, meter),
        mutant_(mutant),
        meter_(meter) {}

  static Footprint::Memories destinations(const DataflowProgram& program, Buffers buffers) {
    Footprint::Memories all(program.ranks, buffers);
    for (const Operation& op : program.operations) {
      if (maker_of(program, op) >= 0) all.add(op.rank, op.destination, op.bytes);
    }
    return all;
  }

  // `program`: the constructor's.
  void run(DataflowProgram& program) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      step(meter_);
      const auto index = static_cast<int>(i);
      const int maker = maker_of(program, program.operations[i]);
      if (maker >= 0 && may_move(index, maker)) move(program, index, maker);
    }
    write_down(program);
  }

  // True if the copy `index` may move into the operation `made_by`, which makes its data. before_
  // then holds the operations for which that one must wait.
  bool may_move(int index, int made_by) {
    const Operation& taker = operation(index);
    const Operation& maker = operation(made_by);
    bool safe = true;
    before_.clear();
    footprint_.for_each(taker.rank, taker.destination, taker.bytes, [&](const Footprint::Touch& t) {
      step(meter_);
      const Operation& other = operation(t.operation);
      if (t.operation == index || other.round > taker.round) return;
      if (t.operation == made_by) {
        safe &= t.same_bytes;
      } else if (other.rank == maker.rank && t.operation < made_by) {
        return;
      } else if (other.round < maker.round) {
        before_.push_back(t.operation);
      } else {
        safe = false;
      }
    });
    return safe || mutant_ == PushMutant::no_care;
  }

 private:
  const Operation& operation(int i) const {
    return program_.operations[static_cast<std::size_t>(i)];
  }

  void move(DataflowProgram& program, int index, int made_by) {
    if (mutant_ == PushMutant::no_waits) before_.clear();
    for (const int other : before_) waits_.push_back({made_by, other});
    copies_.push_back({made_by, index});
    Operation& taker = program.operations[static_cast<std::size_t>(index)];
    footprint_.add(taker.rank, made_by, taker.destination, taker.bytes);
    taker.pushed = true;
  }

  // An addition to an operation.
  struct Added {
    int operation = 0;
    int what = 0;
  };

  // Sorted by operation; additions to one operation stay in their order.
  void write_down(DataflowProgram& program) {
    std::vector<int> next(program.operations.size());  // position of each operation's next addition
    write_waits(program, next);
    write_copies(program, next);
  }

  static void count(const std::vector<Added>& all, std::vector<int>& of_operation) {
    std::fill(of_operation.begin(), of_operation.end(), 0);
    for (const Added& one : all) ++of_operation[static_cast<std::size_t>(one.operation)];
  }

  // New waits come before an operation's old ones.
  void write_waits(DataflowProgram& program, std::vector<int>& next) const {
    if (waits_.empty()) return;
    count(waits_, next);
    std::vector<int> earlier(program.earlier.size() + waits_.size());
    int end = 0;
    for (std::size_t i = 0; i < next.size(); ++i) {
      Operation& op = program.operations[i];
      const int first = std::exchange(op.first_earlier, end);
      const int waits = std::exchange(next[i], end);
      std::copy_n(program.earlier.begin() + first, op.earlier, earlier.begin() + end + waits);
      op.earlier += waits;
      end += op.earlier;
    }
    for (const Added& wait : waits_) {
      earlier[static_cast<std::size_t>(next[static_cast<std::size_t>(wait.operation)]++)] =
          wait.what;
    }
    program.earlier = std::move(earlier);
  }

  void write_copies(DataflowProgram& program, std::vector<int>& next) const {
    count(copies_, next);
    int end = 0;
    for (std::size_t i = 0; i < next.size(); ++i) {
      Operation& op = program.operations[i];
      op.first_copy = end;
      op.copies = std::exchange(next[i], end);
      end += op.copies;
    }
    program.copies.resize(copies_.size());
    for (const Added& copy : copies_) {
      const Operation& taker = operation(copy.what);
      program.copies[static_cast<std::size_t>(next[static_cast<std::size_t>(copy.operation)]++)] = {
          taker.rank, taker.destination};
    }
  }

  const DataflowProgram& program_;
  Footprint footprint_;
  const PushMutant mutant_;
  PlanningBudget* const meter_;
  std::vector<int> before_;    // for the copy under consideration
  std::vector<Added> waits_;   // operations for which an operation must wait
  std::vector<Added> copies_;  // former copies
};

}  // namespace

void push(DataflowProgram& program, Buffers buffers, PushMutant mutant, PlanningBudget* meter) {
  Footprint::Memories asked = Pusher::destinations(program, buffers);
  const std::size_t most = asked.questions();
  if (most > 0) Pusher(program, std::move(asked), most, mutant, meter).run(program);
}

bool has_short_copies(const DataflowProgram& program, std::size_t bytes) {
  return std::any_of(
      program.operations.begin(), program.operations.end(),
      [&](const Operation& op) { return op.bytes < bytes && maker_of(program, op) >= 0; });
}

void claim_copies(DataflowProgram& program, std::size_t from) {
  std::vector<bool> is_read(program.operations.size());
  for (const Operation& op : program.operations) {
    for (int s = 0; s < op.sources && !op.pushed; ++s) {
      const int producer = program.sources[static_cast<std::size_t>(op.first_source + s)].producer;
      if (producer >= 0) is_read[static_cast<std::size_t>(producer)] = true;
    }
  }
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    Operation& op = program.operations[i];
    op.claims = op.copies > 0 && op.bytes >= from;
    if (op.copies > 0 && !op.claims && !is_read[i] && op.destination.memory == Memory::scratch)
      op.destination = {Memory::message, 0};
  }
}

namespace {

std::span<const Source> sources_of(const DataflowProgram& program, const Operation& op) {
  return {program.sources.data() + op.first_source, static_cast<std::size_t>(op.sources)};
}

// The index of the source that belongs to the operation's own rank; -1: none or several.
int own_of(const DataflowProgram& program, const Operation& op) {
  const auto sources = sources_of(program, op);
  int own = -1;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].rank != op.rank) continue;
    if (own >= 0) return -1;
    own = static_cast<int>(i);
  }
  return own;
}

// The conditions for copying own data first.
struct Terms {
  Buffers buffers;
  std::size_t from;

  // The place of the own value of an operation that adds it to others', if it differs from the
  // destination; otherwise nullptr.
  const Place* own_value(const DataflowProgram& program, const Operation& op) const {
    if (op.bytes < from || op.sources < 2) return nullptr;
    const int own = own_of(program, op);
    if (own < 0) return nullptr;
    const Place& place = sources_of(program, op)[static_cast<std::size_t>(own)].place;
    return resolved(place, buffers) == resolved(op.destination, buffers) ? nullptr : &place;
  }

  Footprint::Memories own_values(const DataflowProgram& program) const {
    Footprint::Memories all(program.ranks, buffers);
    for (const Operation& op : program.operations) {
      if (const Place* own = own_value(program, op)) all.add(op.rank, *own, op.bytes);
    }
    return all;
  }
};

// By operation: it adds its own value to others' while others read its own value. Empty: none does.
std::vector<bool> contended(const DataflowProgram& program, const Terms& terms,
                            PlanningBudget* meter) {
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
  OwnFirst(const DataflowProgram& program, PlanningBudget* meter) : old_(program), meter_(meter) {
    new_.ranks = old_.ranks;
    new_.rounds = old_.rounds;
    new_.eager = old_.eager;
    new_.scratch_bytes = old_.scratch_bytes;
  }

  DataflowProgram run(const std::vector<bool>& contended) {
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
  // The sources of an old operation, with new producers.
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
    // Our part: the ranks that take part have one part each, in order.
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

  // Adds bytes begin .. end of an old operation, with these sources. Returns its number; -1: no
  // bytes.
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

  const DataflowProgram& old_;
  PlanningBudget* const meter_;
  DataflowProgram new_;
  std::vector<int> last_;  // per old operation: the last new one made of it
};

}  // namespace

DataflowProgram copy_local_first(DataflowProgram program, Buffers buffers, std::size_t from,
                                 PlanningBudget* meter) {
  const std::vector<bool> split = contended(program, {buffers, from}, meter);
  // If no operation is contended, the program stays unchanged.
  if (split.empty()) return program;
  return OwnFirst(program, meter).run(split);
}

namespace {

// Bytes of a rank's input that are copied to its output at the start, and the operation that copies
// them.
struct Wanted {
  std::size_t begin = 0, end = 0;
  int operation = -1;
};

// True for input that others read, and for input that is already a result: in place it lies in the
// output, and others may be reading it when its turn comes.
bool is_wanted(const Operation& op, const Source& source) {
  return (source.rank != op.rank || op.only_if_moved) && source.place.memory == Memory::input &&
         op.bytes > 0;
}

// By rank: disjoint, in order.
std::vector<std::vector<Wanted>> wanted_bytes(const DataflowProgram& program,
                                              PlanningBudget* meter) {
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

DataflowProgram copy_then_reduce(DataflowProgram out, PlanningBudget* meter) {
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

namespace {

const Source& source_of(const DataflowProgram& program, const Operation& op) {
  return program.sources[static_cast<std::size_t>(op.first_source)];
}

bool fetches(const DataflowProgram& program, const Operation& op) {
  return op.sources > 0 && source_of(program, op).rank != op.rank;
}

// True if the owner of the fetched data could store them at the reader instead. If the reader had
// no earlier data there, no rank needs the bytes that the store overwrites.
bool can_be_stored(const DataflowProgram& program, const Operation& op) {
  const Source& source = source_of(program, op);
  return op.sources == 1 && source.producer < 0 && source.place.memory == Memory::input &&
         !op.replaces;
}

// Per operation: the number of bytes that the owner stores. Empty: the program stays unchanged.
std::vector<std::size_t> bytes_to_store(const DataflowProgram& program,
                                        const ShareOptions& options) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  std::vector<std::size_t> fetched(ranks, 0), asked(ranks, 0);  // operations, by rank
  for (const Operation& op : program.operations) {
    step(options.meter);
    if (op.only_if_moved) continue;
    if (!fetches(program, op) || !can_be_stored(program, op)) return {};
    ++fetched[static_cast<std::size_t>(op.rank)];
    ++asked[static_cast<std::size_t>(source_of(program, op).rank)];
  }
  std::vector<std::size_t> stored(program.operations.size(), 0);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Operation& op = program.operations[i];
    if (!fetches(program, op)) continue;
    const auto owner = static_cast<std::size_t>(source_of(program, op).rank);
    if (fetched[owner] == 0) {
      // If an owner has a messages and a reader has b, both end together if the owner stores b / (a
      // + b) of each message.
      const std::size_t b = fetched[static_cast<std::size_t>(op.rank)];
      const std::size_t part =
          options.all ? op.bytes : op.bytes * b / (asked[owner] + b) / kCacheLine * kCacheLine;
      if (asked[owner] <= options.readers && part >= options.from) stored[i] = part;
    } else if (options.all || (options.streams && op.bytes >= options.stream_from)) {
      stored[i] = op.bytes;
    }
    // If one reader has no owner that helps it, the call takes as long as before.
    if (stored[i] == 0) return {};
  }
  return stored;
}

}  // namespace

DataflowProgram split_copies(DataflowProgram program, const ShareOptions& options) {
  const std::vector<std::size_t> stored = bytes_to_store(program, options);
  if (stored.empty()) return program;
  DataflowProgram out = program;
  out.operations.clear();
  std::vector<Operation> rests;
  // By rank: the operation that copies its own data, and the copies of the same data for others.
  std::vector<const Operation*> own(static_cast<std::size_t>(program.ranks));
  std::vector<std::vector<Copy>> copies(own.size());
  for (const Operation& op : program.operations) {
    if (op.only_if_moved) own[static_cast<std::size_t>(op.rank)] = &op;
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    step(options.meter);
    Operation rest = program.operations[i];
    if (stored[i] > 0) {
      const Source source = source_of(program, rest);
      const Operation* with = own[static_cast<std::size_t>(source.rank)];
      if (with != nullptr && with->bytes == stored[i] &&
          source_of(program, *with).place == source.place) {
        copies[static_cast<std::size_t>(source.rank)].push_back({rest.rank, rest.destination});
      } else {
        Operation store;
        store.rank = source.rank;
        store.round = rest.round;
        store.destination = source.place;  // in its place: the data do not move there
        store.bytes = stored[i];
        store.first_source = static_cast<int>(out.sources.size());
        store.sources = 1;
        store.first_copy = static_cast<int>(out.copies.size());
        store.copies = 1;
        out.sources.push_back(source);
        out.copies.push_back({rest.rank, rest.destination});
        out.operations.push_back(store);
      }
      rest.destination.offset += stored[i];
      rest.bytes -= stored[i];
      out.sources[static_cast<std::size_t>(rest.first_source)].place.offset += stored[i];
    }
    if (stored[i] == 0 || rest.bytes > 0) rests.push_back(rest);
  }
  for (Operation& op : rests) {
    const std::vector<Copy>& more = copies[static_cast<std::size_t>(op.rank)];
    if (more.empty() || op.destination != own[static_cast<std::size_t>(op.rank)]->destination)
      continue;
    op.first_copy = static_cast<int>(out.copies.size());
    op.copies = static_cast<int>(more.size());
    out.copies.insert(out.copies.end(), more.begin(), more.end());
  }
  // Stores first. No operation reads another's result, so the numbers may change.
  out.operations.insert(out.operations.end(), rests.begin(), rests.end());
  std::stable_sort(out.operations.begin(), out.operations.end(),
                   [](const Operation& a, const Operation& b) { return a.round < b.round; });
  return out;
}

}  // namespace rankine
