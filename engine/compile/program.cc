#include "engine/compile/program.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "engine/base/cache_line.h"
#include "engine/base/splitmix.h"
#include "engine/compile/pool.h"

namespace rankine {
namespace {

constexpr int kNone = -1;
// Where a version lives, before offsets are known.
enum class Home : std::uint8_t { input, output, scratch0, scratch1 };

struct Version {
  Rank rank = 0;
  int slot = 0;  // the schedule's place number: plane * blocks + block
  int round = kStaging;
  int previous = kNone;  // the version of this slot before this one
  int next = kNone;      // and the one after
  int contributions = 0;
  Rank lowest = 0;  // rank whose contribution it holds: the order in which sums are added
  int operation = kNone;
  int scratch = kNone;      // in Builder::scratch_, where its home is there
  int last_source = kNone;  // of its Uses, those that make it
  int last_reader = kNone;  // of its Uses, those of versions made from it: `next` included where it
                            // adds to it
  Act act = Act::reduce;    // how the round's transfers make it
  Home home = Home::input;
};

// One version is made from another. Both have a list of theirs in the order stated: a ring, of
// which they know the last.
struct Use {
  int source = kNone, target = kNone;
  int next_source = kNone;  // of the target
  int next_reader = kNone;  // of the source
};

// The newest version of every place, (rank, slot), that has one. Places that begin with an input
// lie side by side; of the others an all-to-all among many ranks uses few of all there are.
class Newest {
 public:
  Newest(const Pool<Version>& versions, int blocks)
      : versions_(&versions), inputs_(static_cast<std::size_t>(blocks)), others_(kLeast) {}

  // The inputs of a block, one after the other: at that rank, or at all ranks from 0 on, -1.
  void begin_input(int block, Rank at) {
    inputs_[static_cast<std::size_t>(block)] = {static_cast<int>(from_inputs_.size()), at};
  }
  void add_input(int version) { from_inputs_.push_back(version); }

  // Of that place, or kNone.
  int find(Rank r, int slot) const {
    const int input = input_of(r, slot);
    return input != kNone ? from_inputs_[static_cast<std::size_t>(input)]
                          : others_[index_of(r, slot, hash_of(r, slot))].version;
  }
  // The same, to be set to a version of that place before anything else is asked. Valid until then.
  int& entry(Rank r, int slot) {
    const int input = input_of(r, slot);
    if (input != kNone) return from_inputs_[static_cast<std::size_t>(input)];
    if (2 * (held_ + 1) > others_.size()) grow();
    const std::uint32_t hash = hash_of(r, slot);
    Other& other = others_[index_of(r, slot, hash)];
    if (other.version == kNone) {
      ++held_;
      other.hash = hash;
    }
    return other.version;
  }
  // Entry() will be asked soon: far apart as places may lie, memory is slower than all else here.
  void fetch(Rank r, int slot) const {
    __builtin_prefetch(&others_[hash_of(r, slot) & (others_.size() - 1)], 1);
  }

 private:
  static constexpr std::size_t kLeast = 64;
  struct Inputs {
    int first = kNone;  // in from_inputs_
    Rank at = -1;
  };
  struct Other {
    std::uint32_t hash = 0;
    int version = kNone;
  };

  int input_of(Rank r, int slot) const {
    if (static_cast<std::size_t>(slot) >= inputs_.size()) return kNone;  // a scratch plane
    const Inputs& inputs = inputs_[static_cast<std::size_t>(slot)];
    if (inputs.first == kNone) return kNone;
    if (inputs.at < 0) return inputs.first + r;
    return inputs.at == r ? inputs.first : kNone;
  }
  static std::uint32_t hash_of(Rank r, int slot) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(r) << 32 | static_cast<std::uint32_t>(slot);
    return static_cast<std::uint32_t>(mixed(key * kSplitMixStep, key >> 32) >> 16);
  }
  std::size_t index_of(Rank r, int slot, std::uint32_t hash) const {
    const std::size_t mask = others_.size() - 1;
    const auto is_another = [&](const Other& other) {
      if (other.version == kNone) return false;
      const Version* version = other.hash == hash ? &(*versions_)[other.version] : nullptr;
      return version == nullptr || version->rank != r || version->slot != slot;
    };
    std::size_t i = hash & mask;
    while (is_another(others_[i])) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Other> old(2 * others_.size());
    old.swap(others_);
    const std::size_t mask = others_.size() - 1;
    for (const Other& other : old) {
      if (other.version == kNone) continue;
      std::size_t i = other.hash & mask;
      while (others_[i].version != kNone) i = (i + 1) & mask;
      others_[i] = other;
    }
  }

  const Pool<Version>* versions_;
  std::vector<Inputs> inputs_;    // by block
  std::vector<int> from_inputs_;  // the newest versions of places that have one
  std::size_t held_ = 0;
  std::vector<Other> others_;  // open addressing; at least half hold nothing
};

class Builder {
 public:
  Builder(const Schedule& schedule, const Goal& goal, const Layout& layout, Buffers buffers,
          const ProgramOptions& options)
      : schedule_(schedule),
        goal_(goal),
        layout_(layout),
        options_(options),
        // An all-reduce's inputs are overwritten everywhere and an all-to-all's by other blocks, so
        // these two know which way they are called. Elsewhere at most a rank's own block lies in
        // both buffers, and the plan that is right in place is as good apart.
        shared_(buffers == Buffers::in_place || (goal.collective != Collective::all_reduce &&
                                                 goal.collective != Collective::all_to_all)),
        stage_all_(buffers == Buffers::in_place && goal.collective == Collective::all_to_all),
        newest_(versions_, schedule.blocks) {}

  Result<Program> build() {
    if (options_.meter != nullptr) options_.meter->begin(schedule_.ranks, schedule_.blocks);
    make_inputs();
    Status status = run_rounds();
    if (!status.ok()) return status;
    newest_ = Newest(versions_, 0);
    choose_homes();
    allocate_scratch();
    emit();
    // The largest parts, one after the other.
    versions_ = {};
    uses_ = {};
    program_.operations = operations_.take();
    program_.sources = sources_.take();
    return std::move(program_);
  }

 private:
  Version& at(int version) { return versions_[version]; }
  const Version& at(int version) const { return versions_[version]; }
  const BlockHome& block_of(int slot) const {
    return layout_
        .blocks[static_cast<std::size_t>(is_vector(slot) ? slot : slot % schedule_.blocks)];
  }
  bool is_vector(int slot) const { return slot < schedule_.blocks; }  // not a scratch plane
  bool has_output(Rank r, int slot) const { return is_vector(slot) && goal_.needs(r, slot); }

  // --- versions -----------------------------------------------------------------------------

  void make_inputs() {
    for (int b = 0; b < schedule_.blocks; ++b) {
      if (block_of(b).bytes == 0) continue;
      const Rank source = goal_.source_of(b);
      newest_.begin_input(b, source);
      if (source >= 0) {
        make_input(source, b);
      } else {
        for (Rank r : ranks(schedule_.ranks)) make_input(r, b);
      }
    }
  }

  void make_input(Rank r, int b) {
    step(options_.meter);
    newest_.add_input(versions_.add({.rank = r, .slot = b, .contributions = 1, .lowest = r}));
  }

  Status run_rounds() {
    Status status;
    std::vector<int> what, where;  // slots
    for (int k = 0; k < schedule_.rounds && status.ok(); ++k) {
      step(options_.meter);
      deliveries_.clear();
      for_each_transfer(schedule_, k, [&](const Transfer& t) {
        step(options_.meter);
        if (!status.ok()) return;
        slots_of(t.what, what);
        slots_of(t.where, where);
        if (what.size() != where.size()) {
          status = invalid_argument("schedule: round " + std::to_string(k) + " sends " +
                                    std::to_string(what.size()) + " blocks to " +
                                    std::to_string(where.size()) + " places");
          return;
        }
        // Blocks innermost: neighbours become versions one after the other, and then one operation.
        t.to.for_each([&](Rank to) {
          t.from.for_each([&](Rank from) {
            for (std::size_t i = 0; i < what.size() && status.ok(); ++i) {
              if (block_of(what[i]).bytes + block_of(where[i]).bytes == 0) continue;
              newest_.fetch(to, where[i]);
              deliveries_.push_back({from, what[i], to, where[i], t.act});
              if (deliveries_.size() == kDeliveries) status = deliver_all(k);
            }
          });
        });
      });
      if (status.ok()) status = deliver_all(k);
    }
    return status;
  }

  // A few at a time, while what the next ones need is fetched.
  Status deliver_all(int k) {
    Status status;
    for (const Delivery& d : deliveries_) {
      status = deliver(k, d.from, d.from_slot, d.to, d.to_slot, d.act);
      if (!status.ok()) break;
    }
    deliveries_.clear();
    return status;
  }

  void slots_of(const BlockSet& set, std::vector<int>& slots) const {
    slots.clear();
    set.list.for_each([&](Block b) { slots.push_back(place_of(schedule_, b, set.plane)); });
  }

  // What round k makes of a place, so far, or kNone.
  int born(int newest, int k) const {
    return newest != kNone && at(newest).round == k ? newest : kNone;
  }

  Status deliver(int k, Rank from, int from_slot, Rank to, int to_slot, Act act) {
    if (options_.meter != nullptr) options_.meter->move();
    const auto refuse = [&](int slot, Rank r, const char* why) {
      return invalid_argument("schedule: round " + std::to_string(k) + ", place " +
                              std::to_string(slot) + " of rank " + std::to_string(r) + ": " + why);
    };
    // What was there when the round began.
    int source = newest_.find(from, from_slot);
    if (born(source, k) != kNone) source = at(source).previous;
    if (source == kNone) return refuse(from_slot, from, "is read, and nothing is there");
    if (block_of(from_slot).bytes != block_of(to_slot).bytes) {
      return refuse(to_slot, to, "is sent a block of another size");
    }
    int& newest = newest_.entry(to, to_slot);
    int target = born(newest, k);
    if (target == kNone) {
      const int old = newest;
      target = versions_.add({.rank = to,
                              .slot = to_slot,
                              .round = k,
                              .previous = old,
                              .lowest = schedule_.ranks,
                              .act = act});
      newest = target;
      if (old != kNone) {
        at(old).next = target;
        if (act == Act::reduce) add_source(target, old);
      }
    } else if (act == Act::copy || at(target).act == Act::copy) {
      return refuse(to_slot, to, "is copied to and written once more; only reductions may meet");
    }
    add_source(target, source);
    return {};
  }

  void add_source(int target, int source) {
    const int use = uses_.add({.source = source, .target = target});
    at(target).contributions += at(source).contributions;
    at(target).lowest = std::min(at(target).lowest, at(source).lowest);
    append(at(target).last_source, use, &Use::next_source);
    append(at(source).last_reader, use, &Use::next_reader);
  }

  void append(int& last, int use, int Use::*next) {
    if (last == kNone) {
      uses_[use].*next = use;
    } else {
      uses_[use].*next = uses_[last].*next;
      uses_[last].*next = use;
    }
    last = use;
  }

  // Calls visit(version) for what v is made from, in the order stated.
  template <class Visit>
  void for_each_source(const Version& v, const Visit& visit) const {
    if (v.last_source == kNone) return;
    int use = v.last_source;
    do {
      use = uses_[use].next_source;
      visit(uses_[use].source);
    } while (use != v.last_source);
  }

  // Likewise for what is made from v.
  template <class Visit>
  void for_each_reader(const Version& v, const Visit& visit) const {
    if (v.last_reader == kNone) return;
    int use = v.last_reader;
    do {
      use = uses_[use].next_reader;
      visit(uses_[use].target);
    } while (use != v.last_reader);
  }

  // --- places -------------------------------------------------------------------------------

  // Somebody other than the next version reads this one in the round that writes the next one.
  bool is_read_while_replaced(const Version& v) {
    if (options_.mutant == ProgramOptions::Mutant::no_renaming) return false;
    const Version& next = at(v.next);
    bool read = false;
    for_each_reader(v, [&](int reader) {
      read |= reader != v.next && at(reader).round == next.round &&
              !(options_.eager && at(reader).rank != v.rank);
    });
    return read;
  }

  void choose_homes() {
    // A chain is met at its last version and walked backwards.
    for (int i = 0; i < versions_.size(); ++i) {
      step(options_.meter);
      if (at(i).next == kNone) choose_homes_of_chain(i);
    }
  }

  void choose_homes_of_chain(int last) {
    const Rank r = at(last).rank;
    const int slot = at(last).slot;
    const bool output = has_output(r, slot);
    const auto elsewhere = [output](Home home) {
      if (home != Home::scratch0) return Home::scratch0;
      return output ? Home::output : Home::scratch1;
    };
    int v = last;
    Home home = output ? Home::output : Home::scratch0;
    int first_written = kNone;
    while (v != kNone && at(v).round != kStaging) {
      if (v != last && is_read_while_replaced(at(v))) home = elsewhere(home);
      at(v).home = home;
      first_written = v;
      v = at(v).previous;
    }
    if (v == kNone) return;  // nothing was there before: no input to protect
    if (stage_all_) {
      // Where the first version would overwrite what others still read, the input goes elsewhere.
      const bool taken = first_written != kNone && at(first_written).home == Home::scratch0 &&
                         is_read_while_replaced(at(v));
      stage(v, taken ? Home::scratch1 : Home::scratch0);
    } else if (shared_ && output && first_written != kNone &&
               at(first_written).home == Home::output && is_read_while_replaced(at(v))) {
      if (first_written == last) {
        stage(v, Home::scratch0);
      } else {
        const Home second = at(at(first_written).next).home;
        at(first_written).home = second == Home::scratch0 ? Home::scratch1 : Home::scratch0;
      }
    }
    if (first_written == kNone && output) copy_to_output(v);
  }

  // The input version moves to scratch before round 0; all its readers follow it there. The slot
  // number of what is left of it in the input is that of the staging operation's source.
  void stage(int input, Home home) {
    if (options_.mutant == ProgramOptions::Mutant::no_staging) return;
    at(input).home = home;
    staged_.push_back(input);
  }

  void copy_to_output(int input) { local_copies_.push_back(input); }

  // First all that lives in scratch0, then scratch1, each by slot; the versions of a place share
  // it.
  void allocate_scratch() {
    std::vector<int> there;
    for (int i = 0; i < versions_.size(); ++i) {
      if (at(i).home == Home::scratch0 || at(i).home == Home::scratch1) there.push_back(i);
    }
    const auto where = [this](int v) { return std::tuple(at(v).rank, at(v).home, at(v).slot); };
    std::sort(there.begin(), there.end(), [&](int a, int b) { return where(a) < where(b); });
    const auto whole_lines = [](std::size_t bytes) {
      return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    };
    program_.scratch_bytes.assign(static_cast<std::size_t>(schedule_.ranks), 0);
    for (std::size_t i = 0; i < there.size(); ++i) {
      step(options_.meter);
      Version& v = at(there[i]);
      std::size_t& end = program_.scratch_bytes[static_cast<std::size_t>(v.rank)];
      const Version* before = i > 0 ? &at(there[i - 1]) : nullptr;
      if (before == nullptr || where(there[i]) != where(there[i - 1])) {
        if (before != nullptr && before->rank == v.rank && before->home != v.home) {
          end = whole_lines(end);
        }
        scratch_.push_back(end);
        end += block_of(v.slot).bytes;
      }
      v.scratch = static_cast<int>(scratch_.size()) - 1;
    }
    for (std::size_t& end : program_.scratch_bytes) end = whole_lines(end);
  }

  Place place(const Version& v) const {
    switch (v.home) {
      case Home::input:
        return {Memory::input, block_of(v.slot).input};
      case Home::output:
        return {Memory::output, block_of(v.slot).output};
      case Home::scratch0:
      case Home::scratch1:
        return {Memory::scratch, scratch_[static_cast<std::size_t>(v.scratch)]};
    }
    return {};
  }

  // --- operations ---------------------------------------------------------------------------

  // Blocks of one rank together, so that neighbours become one operation.
  void sort_by_place(std::vector<int>& versions) {
    std::sort(versions.begin(), versions.end(), [this](int a, int b) {
      return std::pair(at(a).rank, at(a).slot) < std::pair(at(b).rank, at(b).slot);
    });
  }

  void emit() {
    sort_by_place(staged_);
    sort_by_place(local_copies_);
    program_.ranks = schedule_.ranks;
    program_.rounds = schedule_.rounds;
    program_.eager = options_.eager;
    for (const int v : staged_) {
      const Place from{Memory::input, block_of(at(v).slot).input};
      at(v).operation = add({at(v).rank, kStaging, place(at(v)), block_of(at(v).slot).bytes},
                            {{at(v).rank, from, kNone}}, {});
    }
    // Own blocks that only change buffers: they depend on nobody, and go first.
    for (const int v : local_copies_) {
      Operation copy{
          at(v).rank, 0, {Memory::output, block_of(at(v).slot).output}, block_of(at(v).slot).bytes};
      copy.only_if_moved = at(v).home == Home::input;
      add(copy, {{at(v).rank, place(at(v)), at(v).operation}}, {});
    }
    std::vector<int> made_from;
    std::vector<Source> sources;
    std::vector<int> earlier;
    for (int i = 0; i < versions_.size(); ++i) {
      step(options_.meter);
      Version& v = at(i);
      if (v.round == kStaging) continue;
      made_from.clear();
      for_each_source(v, [&](int s) { made_from.push_back(s); });
      // The language's order of additions (schedule.h), the same whoever adds.
      std::stable_sort(made_from.begin(), made_from.end(),
                       [this](int a, int b) { return at(a).lowest < at(b).lowest; });
      sources.clear();
      for (const int s : made_from) {
        sources.push_back({at(s).rank, place(at(s)), at(s).operation});
      }
      earlier.clear();
      const int occupant = occupant_before(v);
      if (occupant != kNone) {
        for_each_reader(at(occupant), [&](int reader) {
          // Without renaming (a mutant) a reader may come later; else all are of earlier rounds.
          if (at(reader).rank == v.rank || at(reader).operation == kNone) return;
          earlier.push_back(at(reader).operation);
        });
      }
      Operation op{v.rank, v.round, place(v), block_of(v.slot).bytes};
      op.replaces = v.previous != kNone;
      op.completes = v.contributions == goal_.ranks && sources.size() > 1;
      v.operation = add(op, sources, earlier);
    }
  }

  // The version whose memory v takes over. (Readers of versions before that one were waited for
  // when that one was written.)
  int occupant_before(const Version& v) {
    for (int u = v.previous; u != kNone; u = at(u).previous) {
      step(options_.meter);
      const bool input_under_output =
          shared_ && at(u).home == Home::input && v.home == Home::output;
      if (at(u).home == v.home || input_under_output) return u;
    }
    return kNone;
  }

  // Appends an operation, or lengthens the last one where the new one continues it everywhere.
  int add(Operation op, const std::vector<Source>& sources, const std::vector<int>& earlier) {
    if (operations_.size() > 0 && continues(operations_[operations_.size() - 1], op, sources)) {
      Operation& last = operations_[operations_.size() - 1];
      for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& s = sources_[last.first_source + static_cast<int>(i)];
        s.producer = std::max(s.producer, sources[i].producer);
      }
      for (const int e : earlier) {
        program_.earlier.push_back(e);
        ++last.earlier;
      }
      last.bytes += op.bytes;
      last.replaces |= op.replaces;
      return operations_.size() - 1;
    }
    op.first_source = sources_.size();
    op.sources = static_cast<int>(sources.size());
    op.first_earlier = static_cast<int>(program_.earlier.size());
    op.earlier = static_cast<int>(earlier.size());
    for (const Source& s : sources) sources_.add(s);
    program_.earlier.insert(program_.earlier.end(), earlier.begin(), earlier.end());
    return operations_.add(op);
  }

  bool continues(const Operation& last, const Operation& op,
                 const std::vector<Source>& sources) const {
    const auto follows = [&last](Place before, Place after) {
      return before.memory == after.memory && before.offset + last.bytes == after.offset;
    };
    if (last.rank != op.rank || last.round != op.round || last.completes != op.completes ||
        last.only_if_moved != op.only_if_moved ||
        last.sources != static_cast<int>(sources.size()) ||
        !follows(last.destination, op.destination)) {
      return false;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Source& s = sources_[last.first_source + static_cast<int>(i)];
      if (s.rank != sources[i].rank || !follows(s.place, sources[i].place)) return false;
    }
    return true;
  }

  const Schedule& schedule_;
  const Goal& goal_;
  const Layout& layout_;
  const ProgramOptions& options_;
  const bool shared_;     // output may be the same memory as the input
  const bool stage_all_;  // input blocks lie under other blocks' outputs
  struct Delivery {
    Rank from;
    int from_slot;
    Rank to;
    int to_slot;
    Act act;
  };
  static constexpr std::size_t kDeliveries = 16;
  std::vector<Delivery> deliveries_;  // of the round at hand, yet to be made
  Pool<Version> versions_;
  Pool<Use> uses_;
  Newest newest_;
  std::vector<int> staged_, local_copies_;
  std::vector<std::size_t> scratch_;  // offsets
  Pool<Operation> operations_;        // of program_, until it is done
  Pool<Source> sources_;              // likewise
  Program program_;
};

}  // namespace

Result<Program> make_program(const Schedule& schedule, const Goal& goal, const Layout& layout,
                             Buffers buffers, const ProgramOptions& options) {
  return Builder(schedule, goal, layout, buffers, options).build();
}

void mark_streams(Program& program, std::size_t from) {
  for (Operation& op : program.operations) {
    const bool results = op.destination.memory == Memory::output || op.copies > 0;
    op.streams = results && op.bytes >= from && !op.pushed;
  }
  for (const Operation& op : program.operations) {
    if (op.pushed) continue;
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program.sources[static_cast<std::size_t>(op.first_source + i)];
      if (s.producer >= 0) program.operations[static_cast<std::size_t>(s.producer)].streams = false;
    }
  }
}

}  // namespace rankine
