#include "engine/compile/ssa.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"

namespace rankine {
namespace {

// The newest version of every place (rank, slot) that has one. Places that begin with an input lie
// side by side, together with the first other place of the same block. The rest are found by hash:
// an all-to-all among many ranks uses few of all places.
class Newest {
 public:
  Newest(const Pool<Version>& versions, int blocks)
      : versions_(&versions), inputs_(static_cast<std::size_t>(blocks)), others_(kLeast) {}

  // The block's input is at that one rank.
  void begin_input(int block, Rank at, int version) {
    inputs_[static_cast<std::size_t>(block)] = {.version = version, .at = at};
  }
  // The block's inputs are at all ranks; add_input() gives them one after the other, from rank 0
  // on.
  void begin_inputs(int block) {
    inputs_[static_cast<std::size_t>(block)].version = static_cast<int>(everyones_.size());
  }
  void add_input(int version) { everyones_.push_back(version); }

  // The newest version of that place, or Version::kNone.
  int find(Rank r, int slot) {
    const int* beside = beside_input(r, slot);
    return beside != nullptr ? *beside : others_[index_of(r, slot, hash_of(r, slot))].version;
  }
  // find() by reference; the caller must set it to a version of that place before the next query.
  // Valid until then.
  int& entry(Rank r, int slot) {
    if (int* beside = beside_input(r, slot)) return *beside;
    if (2 * (held_ + 1) > others_.size()) grow();
    const std::uint32_t hash = hash_of(r, slot);
    Other& other = others_[index_of(r, slot, hash)];
    if (other.version == Version::kNone) {
      ++held_;
      other.hash = hash;
    }
    return other.version;
  }
  // Prefetches the entry for a later query: places may lie far apart, and memory is the slowest
  // part.
  void fetch(Rank r, int slot) const {
    if (static_cast<std::size_t>(slot) < inputs_.size()) {
      __builtin_prefetch(&inputs_[static_cast<std::size_t>(slot)], 1);
    }
    __builtin_prefetch(&others_[hash_of(r, slot) & (others_.size() - 1)], 1);
  }

 private:
  static constexpr std::size_t kLeast = 64;
  struct Inputs {
    // newest version there; with inputs at all ranks, their index in everyones_
    int version = Version::kNone;
    Rank at = CollectiveSpec::kEveryone;
    Rank other_at = CollectiveSpec::kEveryone;  // first other rank with a version, if any
    int other = Version::kNone;                 // newest version there
  };
  struct Other {
    std::uint32_t hash = 0;
    int version = Version::kNone;
  };

  // nullptr: look it up by hash.
  int* beside_input(Rank r, int slot) {
    if (static_cast<std::size_t>(slot) >= inputs_.size()) return nullptr;  // a scratch plane
    Inputs& inputs = inputs_[static_cast<std::size_t>(slot)];
    if (inputs.version == Version::kNone) return nullptr;
    if (inputs.at == CollectiveSpec::kEveryone)
      return &everyones_[static_cast<std::size_t>(inputs.version + r)];
    if (inputs.at == r) return &inputs.version;
    if (inputs.other_at == CollectiveSpec::kEveryone) inputs.other_at = r;
    return inputs.other_at == r ? &inputs.other : nullptr;
  }
  static std::uint32_t hash_of(Rank r, int slot) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(r) << 32 | static_cast<std::uint32_t>(slot);
    return static_cast<std::uint32_t>(mixed(key * kSplitMixStep, key >> 32) >> 16);
  }
  std::size_t index_of(Rank r, int slot, std::uint32_t hash) const {
    const std::size_t mask = others_.size() - 1;
    const auto is_another = [&](const Other& other) {
      if (other.version == Version::kNone) return false;
      const Version* version = other.hash == hash ? &(*versions_)[other.version] : nullptr;
      return version == nullptr || version->rank != r || version->slot != slot;
    };
    std::size_t i = hash & mask;
    while (is_another(others_[i])) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    HugeVector<Other> old(2 * others_.size());
    old.swap(others_);
    const std::size_t mask = others_.size() - 1;
    for (const Other& other : old) {
      if (other.version == Version::kNone) continue;
      std::size_t i = other.hash & mask;
      while (others_[i].version != Version::kNone) i = (i + 1) & mask;
      others_[i] = other;
    }
  }

  const Pool<Version>* versions_;
  HugeVector<Inputs> inputs_;  // by block
  HugeVector<int> everyones_;  // the newest versions of places that have an input at every rank
  std::size_t held_ = 0;
  HugeVector<Other> others_;  // open addressing; at least half are empty
};

}  // namespace

class SsaForm::Builder {
 public:
  Builder(const Schedule& schedule, const CollectiveSpec& goal, const Layout& layout,
          PlanningBudget* meter, SsaForm& out)
      : schedule_(schedule),
        goal_(goal),
        layout_(layout),
        meter_(meter),
        out_(out),
        newest_(out.versions_, schedule.blocks) {}

  Status build() {
    if (meter_ != nullptr) meter_->begin(schedule_.ranks, schedule_.blocks);
    out_.ranks_ = schedule_.ranks;
    out_.rounds_ = schedule_.rounds;
    out_.blocks_ = schedule_.blocks;
    make_inputs();
    return run_rounds();
  }

 private:
  Version& at(int version) { return out_.versions_[version]; }
  const Version& at(int version) const { return out_.versions_[version]; }
  std::size_t bytes_of(int slot) const {
    const int block = slot < schedule_.blocks ? slot : slot % schedule_.blocks;  // scratch planes
    return layout_.blocks[static_cast<std::size_t>(block)].bytes;
  }

  void make_inputs() {
    make_room();
    for (int b = 0; b < schedule_.blocks; ++b) {
      if (bytes_of(b) == 0) continue;
      const Rank source = goal_.source_of(b);
      if (source >= 0) {
        newest_.begin_input(b, source, make_input(source, b));
      } else {
        newest_.begin_inputs(b);
        for (Rank r : rankine::ranks(schedule_.ranks)) newest_.add_input(make_input(r, b));
      }
    }
  }

  // Reserves memory for all versions, if one rank's part gives their number.
  void make_room() {
    const RotationSymmetric* all = symmetry_of(schedule_);
    if (all == nullptr) return;
    std::size_t inputs = 0;
    for (int b = 0; b < schedule_.blocks; ++b) {
      if (bytes_of(b) == 0) return;  // fewer, by an unknown number
      inputs += goal_.source_of(b) >= 0 ? 1 : static_cast<std::size_t>(schedule_.ranks);
    }
    // For one rank: its deliveries, its written places, and the places that may add to an old
    // value.
    std::size_t moves = 0, made = 0, added = 0;
    std::vector<int> last(static_cast<std::size_t>(schedule_.slots()),
                          Version::kNone);  // round, by place
    const Rotation& turn = all->rotation();
    for (int k = 0; k < schedule_.rounds; ++k) {
      for_each_transfer(all->part(), k, [&](const Transfer& t) {
        step(meter_);
        const Transfer to_first = turn.rotated(t, turn.back(t.to.front()));
        to_first.where.list.for_each([&](Block b) {
          const int place = slot_of(schedule_, b, to_first.where.plane);
          ++moves;
          if (std::exchange(last[static_cast<std::size_t>(place)], k) == k) return;
          ++made;
          added += t.kind == TransferKind::reduce ? 1 : 0;
        });
      });
    }
    const auto ranks = static_cast<std::size_t>(schedule_.ranks);
    out_.versions_.expect(inputs + ranks * made);
    out_.uses_.expect(ranks * (moves + added));
  }

  int make_input(Rank r, int b) {
    step(meter_);
    Version input;
    input.rank = input.lowest = r;
    input.slot = b;
    input.contributions = 1;
    return out_.versions_.add(input);
  }

  Status run_rounds() {
    Status status;
    std::vector<int> what, where;  // slots
    for (int k = 0; k < schedule_.rounds && status.ok(); ++k) {
      step(meter_);
      deliveries_.clear();
      for_each_transfer(schedule_, k, [&](const Transfer& t) {
        step(meter_);
        if (!status.ok()) return;
        slots_of(t.what, what);
        slots_of(t.where, where);
        if (what.size() != where.size()) {
          status = invalid_argument("schedule: round " + std::to_string(k) + " sends " +
                                    std::to_string(what.size()) + " blocks to " +
                                    std::to_string(where.size()) + " places");
          return;
        }
        // Blocks are innermost: neighbours become consecutive versions, and then one operation.
        t.to.for_each([&](Rank to) {
          t.from.for_each([&](Rank from) {
            for (std::size_t i = 0; i < what.size() && status.ok(); ++i) {
              if (bytes_of(what[i]) + bytes_of(where[i]) == 0) continue;
              if (meter_ != nullptr) meter_->move();
              newest_.fetch(from, what[i]);
              newest_.fetch(to, where[i]);
              deliveries_.push_back({from, what[i], to, where[i], t.kind, Version::kNone});
              if (deliveries_.size() == kDeliveries) status = deliver_all(k);
            }
          });
        });
      });
      if (status.ok()) status = deliver_all(k);
    }
    return status;
  }

  // Works on a few at a time, while the data of the next ones are prefetched.
  Status deliver_all(int k) {
    Status status;
    for (Delivery& d : deliveries_) {
      d.source = newest_.find(d.from, d.from_slot);
      if (d.source != Version::kNone) __builtin_prefetch(&at(d.source), 1);
    }
    for (const Delivery& d : deliveries_) {
      status = deliver(k, d);
      if (!status.ok()) break;
    }
    deliveries_.clear();
    return status;
  }

  void slots_of(const BlockSet& set, std::vector<int>& slots) const {
    if (set.list.size() == 1)
      return slots.assign(1, slot_of(schedule_, set.list.front(), set.plane));
    slots.clear();
    set.list.for_each([&](Block b) { slots.push_back(slot_of(schedule_, b, set.plane)); });
  }

  // The version of a place that round k has made so far, or Version::kNone.
  int born(int newest, int k) const {
    return newest != Version::kNone && at(newest).round == k ? newest : Version::kNone;
  }

  struct Delivery {
    Rank from;
    int from_slot;
    Rank to;
    int to_slot;
    TransferKind kind;
    int source;  // version of its place before this group of deliveries
  };

  Status deliver(int k, const Delivery& d) {
    const auto [from, from_slot, to, to_slot, kind, newest_source] = d;
    const auto refuse = [&](int slot, Rank r, const char* why) {
      return invalid_argument("schedule: round " + std::to_string(k) + ", place " +
                              std::to_string(slot) + " of rank " + std::to_string(r) + ": " + why);
    };
    // Use the version from before the round.
    int source = newest_source;
    if (born(source, k) != Version::kNone) source = at(source).previous;
    if (source == Version::kNone) return refuse(from_slot, from, "is read, but it is empty");
    if (bytes_of(from_slot) != bytes_of(to_slot)) {
      return refuse(to_slot, to, "is sent a block of another size");
    }
    int& newest = newest_.entry(to, to_slot);
    int target = born(newest, k);
    if (target == Version::kNone) {
      const int old = newest;
      Version made;
      made.rank = to;
      made.slot = to_slot;
      made.round = k & 0x3fffffff;  // no schedule has that many rounds
      made.kind = kind;
      made.previous = old;
      made.lowest = schedule_.ranks;
      target = out_.versions_.add(made);
      newest = target;
      if (old != Version::kNone) {
        at(old).next = target;
        if (kind == TransferKind::reduce) add_source(target, old);
      }
    } else if (kind == TransferKind::copy || at(target).kind == TransferKind::copy) {
      return refuse(to_slot, to, "is copied to and written again; only reductions may meet");
    }
    add_source(target, source);
    return {};
  }

  void add_source(int target, int source) {
    out_.adds_up_ |= at(target).last_source != Version::kNone;
    const int use = out_.uses_.add({.source = source, .target = target});
    at(target).contributions += at(source).contributions;
    at(target).lowest = std::min(at(target).lowest, at(source).lowest);
    append(at(target).last_source, use, &Use::next_source);
    append(at(source).last_reader, use, &Use::next_reader);
  }

  void append(int& last, int use, int Use::*next) {
    if (last == Version::kNone) {
      out_.uses_[use].*next = use;
    } else {
      out_.uses_[use].*next = out_.uses_[last].*next;
      out_.uses_[last].*next = use;
    }
    last = use;
  }

  const Schedule& schedule_;
  const CollectiveSpec& goal_;
  const Layout& layout_;
  PlanningBudget* const meter_;
  SsaForm& out_;
  Newest newest_;
  static constexpr std::size_t kDeliveries = 16;
  std::vector<Delivery> deliveries_;  // of the current round, not yet made
};

Result<std::shared_ptr<const SsaForm>> SsaForm::of(const Schedule& schedule,
                                                   const CollectiveSpec& goal, const Layout& layout,
                                                   PlanningBudget* meter) {
  auto versions = std::make_shared<SsaForm>();
  Status status = Builder(schedule, goal, layout, meter, *versions).build();
  if (!status.ok()) return status;
  return std::shared_ptr<const SsaForm>(std::move(versions));
}

bool in_rank_order(const SsaForm& versions) {
  std::vector<std::pair<Rank, int>> runs;  // first rank, length
  for (int v = 0; v < versions.size(); ++v) {
    runs.clear();
    versions.for_each_source(versions[v], [&](int source) {
      runs.emplace_back(versions[source].lowest, versions[source].contributions);
    });
    std::sort(runs.begin(), runs.end());
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (runs[i - 1].first + runs[i - 1].second != runs[i].first) return false;
    }
  }
  return true;
}

namespace {

// The sources of a version: their number, and the low and high one if there are two.
struct Sum {
  int sources = 0;
  bool of_single_ranks = true;
  const Version* low = nullptr;
  const Version* high = nullptr;
};

Sum sum_of(const SsaForm& versions, const Version& v) {
  Sum sum;
  versions.for_each_source(v, [&](int source) {
    const Version& s = versions[source];
    ++sum.sources;
    sum.of_single_ranks &= s.contributions == 1;
    (s.lowest == v.lowest && sum.low == nullptr ? sum.low : sum.high) = &s;
  });
  return sum;
}

// By induction both halves of a node are nodes or single ranks, so only the cut is checked.
bool is_node(const Version& v, const Sum& sum, int ranks) {
  if (sum.sources != 2 || sum.low == nullptr || sum.high == nullptr) return false;
  const auto width = std::bit_ceil(static_cast<unsigned>(v.contributions));
  const auto first = static_cast<unsigned>(v.lowest);
  const bool whole = static_cast<unsigned>(v.contributions) == width;
  const bool cut_short = v.lowest + v.contributions == ranks;
  return first % width == 0 && (whole || cut_short) &&
         static_cast<unsigned>(sum.low->contributions) == width / 2 &&
         sum.high->lowest == v.lowest + sum.low->contributions;
}

}  // namespace

std::string_view in_words(Bracket bracket) {
  return bracket == Bracket::flat ? "one fold in the order of the ranks"
                                  : "the binary tree over the ranks";
}

Brackets brackets_of(const SsaForm& versions) {
  Brackets out;
  const int ranks = versions.ranks();
  for (int i = 0; i < versions.size() && (out.flat || out.canonical); ++i) {
    const Version& v = versions[i];
    if (v.contributions < 2) continue;
    const Sum sum = sum_of(versions, v);
    if (sum.sources < 2) continue;  // a copy of a version already checked
    // A partial sum that is no result (scans have such results) is added to another value, and that
    // sum is not of single ranks.
    out.flat &= sum.of_single_ranks;
    out.canonical &= is_node(v, sum, ranks);
    out.of_all &= v.contributions == ranks;
  }
  return out;
}

}  // namespace rankine
