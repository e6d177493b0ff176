#include "engine/exec/program.h"

#include <algorithm>
#include <string>

#include "engine/exec/cache_line.h"

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
  Act act = Act::reduce;  // how the round's transfers make it
  Home home = Home::input;
  int operation = kNone;
  std::vector<int> sources{};
  std::vector<int> readers{};  // versions made from this one, `next` included where it adds to it
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
        current_(static_cast<std::size_t>(schedule.ranks * schedule.places()), kNone),
        born_(current_) {}

  Result<Program> build() {
    make_inputs();
    Status status = run_rounds();
    if (!status.ok()) return status;
    choose_homes();
    allocate_scratch();
    emit();
    return std::move(program_);
  }

 private:
  std::size_t cell(Rank r, int slot) const {
    return static_cast<std::size_t>(r * schedule_.places() + slot);
  }
  Version& at(int version) { return versions_[static_cast<std::size_t>(version)]; }
  const BlockHome& block_of(int slot) const {
    return layout_.blocks[static_cast<std::size_t>(slot % schedule_.blocks)];
  }
  bool is_vector(int slot) const { return slot < schedule_.blocks; }  // not a scratch plane
  bool has_output(Rank r, int slot) const { return is_vector(slot) && goal_.needs(r, slot); }

  // --- versions -----------------------------------------------------------------------------

  void make_inputs() {
    for (int b = 0; b < schedule_.blocks; ++b) {
      if (block_of(b).bytes == 0) continue;
      const Rank source = goal_.source_of(b);
      if (source >= 0) {
        make_input(source, b);
      } else {
        for (Rank r : ranks(schedule_.ranks)) make_input(r, b);
      }
    }
  }

  void make_input(Rank r, int b) {
    current_[cell(r, b)] = static_cast<int>(versions_.size());
    versions_.push_back({.rank = r, .slot = b, .contributions = 1, .lowest = r});
  }

  Status run_rounds() {
    Status status;
    std::vector<int> born;
    for (int k = 0; k < schedule_.rounds && status.ok(); ++k) {
      born.clear();
      for_each_transfer(schedule_, k, [&](const Transfer& t) {
        const std::vector<int> what = t.what.list.to_vector();
        const std::vector<int> where = t.where.list.to_vector();
        if (what.size() != where.size() && status.ok()) {
          status = invalid_argument("schedule: round " + std::to_string(k) + " sends " +
                                    std::to_string(what.size()) + " blocks to " +
                                    std::to_string(where.size()) + " places");
        }
        // Blocks innermost: neighbours become versions one after the other, and then one operation.
        t.to.for_each([&](Rank to) {
          t.from.for_each([&](Rank from) {
            for (std::size_t i = 0; i < what.size() && status.ok(); ++i) {
              const int from_slot = place_of(schedule_, what[i], t.what.plane);
              const int to_slot = place_of(schedule_, where[i], t.where.plane);
              if (block_of(from_slot).bytes + block_of(to_slot).bytes == 0) continue;
              status = deliver(k, from, from_slot, to, to_slot, t.act, born);
            }
          });
        });
      });
      for (const int version : born) {
        std::size_t where = cell(at(version).rank, at(version).slot);
        current_[where] = version;
        born_[where] = kNone;
      }
    }
    return status;
  }

  Status deliver(int k, Rank from, int from_slot, Rank to, int to_slot, Act act,
                 std::vector<int>& born) {
    const auto refuse = [&](int slot, Rank r, const char* why) {
      return invalid_argument("schedule: round " + std::to_string(k) + ", place " +
                              std::to_string(slot) + " of rank " + std::to_string(r) + ": " + why);
    };
    const int source = current_[cell(from, from_slot)];
    if (source == kNone) return refuse(from_slot, from, "is read, and nothing is there");
    if (block_of(from_slot).bytes != block_of(to_slot).bytes) {
      return refuse(to_slot, to, "is sent a block of another size");
    }
    int& target = born_[cell(to, to_slot)];
    if (target == kNone) {
      target = static_cast<int>(versions_.size());
      const int old = current_[cell(to, to_slot)];
      versions_.push_back({.rank = to,
                           .slot = to_slot,
                           .round = k,
                           .previous = old,
                           .lowest = schedule_.ranks,
                           .act = act});
      born.push_back(target);
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
    at(target).sources.push_back(source);
    at(target).contributions += at(source).contributions;
    at(target).lowest = std::min(at(target).lowest, at(source).lowest);
    at(source).readers.push_back(target);
  }

  // --- places -------------------------------------------------------------------------------

  // Somebody other than the next version reads this one in the round that writes the next one.
  bool is_read_while_replaced(const Version& v) {
    if (options_.mutant == ProgramOptions::Mutant::no_renaming) return false;
    const Version& next = at(v.next);
    return std::any_of(v.readers.begin(), v.readers.end(), [&](int reader) {
      return reader != v.next && at(reader).round == next.round &&
             !(options_.eager && at(reader).rank != v.rank);
    });
  }

  void choose_homes() {
    const std::size_t inputs_end = versions_.size();
    // A chain is met at its last version and walked backwards.
    for (std::size_t i = 0; i < inputs_end; ++i) {
      if (versions_[i].next == kNone) choose_homes_of_chain(static_cast<int>(i));
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

  void allocate_scratch() {
    std::vector<std::uint8_t> used(current_.size());
    for (const Version& v : versions_) {
      if (v.home == Home::scratch0) used[cell(v.rank, v.slot)] |= 1;
      if (v.home == Home::scratch1) used[cell(v.rank, v.slot)] |= 2;
    }
    for (auto& offsets : scratch_) offsets.assign(current_.size(), 0);
    for (Rank r : ranks(schedule_.ranks)) {
      std::size_t end = 0;
      for (int copy_number = 0; copy_number < 2; ++copy_number) {
        for (int slot = 0; slot < schedule_.places(); ++slot) {
          if ((used[cell(r, slot)] & (1 << copy_number)) == 0) continue;
          scratch_[static_cast<std::size_t>(copy_number)][cell(r, slot)] = end;
          end += block_of(slot).bytes;
        }
        end = (end + kCacheLine - 1) / kCacheLine * kCacheLine;
      }
      program_.scratch_bytes.push_back(end);
    }
  }

  Place place(const Version& v) const {
    switch (v.home) {
      case Home::input:
        return {Memory::input, block_of(v.slot).input};
      case Home::output:
        return {Memory::output, block_of(v.slot).output};
      case Home::scratch0:
        return {Memory::scratch, scratch_[0][cell(v.rank, v.slot)]};
      case Home::scratch1:
        return {Memory::scratch, scratch_[1][cell(v.rank, v.slot)]};
    }
    return {};
  }

  // --- operations ---------------------------------------------------------------------------

  // Blocks of one rank together, so that neighbours become one operation.
  void sort_by_place(std::vector<int>& versions) {
    std::sort(versions.begin(), versions.end(), [this](int a, int b) {
      return cell(at(a).rank, at(a).slot) < cell(at(b).rank, at(b).slot);
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
    std::vector<Source> sources;
    std::vector<int> earlier;
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      Version& v = versions_[i];
      if (v.round == kStaging) continue;
      // The language's order of additions (schedule.h), the same whoever adds.
      std::stable_sort(v.sources.begin(), v.sources.end(),
                       [this](int a, int b) { return at(a).lowest < at(b).lowest; });
      sources.clear();
      for (const int s : v.sources) {
        sources.push_back({at(s).rank, place(at(s)), at(s).operation});
      }
      earlier.clear();
      const int occupant = occupant_before(v);
      if (occupant != kNone) {
        for (const int reader : at(occupant).readers) {
          // Without renaming (a mutant) a reader may come later; else all are of earlier rounds.
          if (at(reader).rank == v.rank || at(reader).operation == kNone) continue;
          earlier.push_back(at(reader).operation);
        }
      }
      Operation op{v.rank, v.round, place(v), block_of(v.slot).bytes};
      op.replaces = v.previous != kNone;
      op.completes = v.contributions == goal_.ranks && v.sources.size() > 1;
      v.operation = add(op, sources, earlier);
    }
  }

  // The version whose memory v takes over. (Readers of versions before that one were waited for
  // when that one was written.)
  int occupant_before(const Version& v) {
    for (int u = v.previous; u != kNone; u = at(u).previous) {
      const bool input_under_output =
          shared_ && at(u).home == Home::input && v.home == Home::output;
      if (at(u).home == v.home || input_under_output) return u;
    }
    return kNone;
  }

  // Appends an operation, or lengthens the last one where the new one continues it everywhere.
  int add(Operation op, const std::vector<Source>& sources, const std::vector<int>& earlier) {
    auto& ops = program_.operations;
    if (!ops.empty() && continues(ops.back(), op, sources, earlier)) {
      Operation& last = ops.back();
      for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& s = program_.sources[static_cast<std::size_t>(last.first_source) + i];
        s.producer = std::max(s.producer, sources[i].producer);
      }
      for (const int e : earlier) {
        program_.earlier.push_back(e);
        ++last.earlier;
      }
      last.bytes += op.bytes;
      last.replaces |= op.replaces;
      return static_cast<int>(ops.size()) - 1;
    }
    op.first_source = static_cast<int>(program_.sources.size());
    op.sources = static_cast<int>(sources.size());
    op.first_earlier = static_cast<int>(program_.earlier.size());
    op.earlier = static_cast<int>(earlier.size());
    program_.sources.insert(program_.sources.end(), sources.begin(), sources.end());
    program_.earlier.insert(program_.earlier.end(), earlier.begin(), earlier.end());
    ops.push_back(op);
    return static_cast<int>(ops.size()) - 1;
  }

  bool continues(const Operation& last, const Operation& op, const std::vector<Source>& sources,
                 const std::vector<int>&) const {
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
      const Source& s = program_.sources[static_cast<std::size_t>(last.first_source) + i];
      if (s.rank != sources[i].rank || !follows(s.place, sources[i].place)) return false;
    }
    return true;
  }

  const Schedule& schedule_;
  const Goal& goal_;
  const Layout& layout_;
  const ProgramOptions& options_;
  const bool shared_;         // output may be the same memory as the input
  const bool stage_all_;      // input blocks lie under other blocks' outputs
  std::vector<int> current_;  // per (rank, slot): the version there when the round began
  std::vector<int> born_;     // per (rank, slot): the version that this round makes
  std::vector<Version> versions_;
  std::vector<int> staged_, local_copies_;
  std::vector<std::size_t> scratch_[2];  // per (rank, slot): offsets
  Program program_;
};

}  // namespace

Result<Program> make_program(const Schedule& schedule, const Goal& goal, const Layout& layout,
                             Buffers buffers, const ProgramOptions& options) {
  return Builder(schedule, goal, layout, buffers, options).build();
}

void mark_streams(Program& program) {
  constexpr std::size_t kWorthIt = std::size_t{1} << 20;
  for (Operation& op : program.operations) {
    const bool results = op.destination.memory == Memory::output || op.copies > 0;
    op.streams = results && op.bytes >= kWorthIt && !op.pushed;
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
