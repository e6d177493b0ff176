#include "engine/api/tuning/choose.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/run/form_trials.h"
#include "engine/run/plan.h"

namespace rankine {
namespace {

using enum Collective;

// The cost that limits the data of boards among that many ranks.
std::size_t Costs::*board_cost(int ranks, const Costs& costs) {
  if (ranks <= 2) return &Costs::pair_board_bytes;
  return static_cast<std::size_t>(ranks) <= costs.fixed_board_max_ranks
             ? &Costs::fixed_board_bytes
             : &Costs::shrinking_board_bytes_n2;
}

// Decision answers the questions of a choice and notes the costs that answered.
class Decision {
 public:
  Decision(const Costs& costs, std::vector<std::size_t Costs::*>& by) : costs_(costs), by_(by) {}

  bool up_to(std::size_t Costs::*field, std::size_t n) {
    note(field);
    return n <= costs_.*field;
  }
  // True if `bytes` fit in every rank's board.
  bool fits_boards(int ranks, std::size_t bytes) {
    note(board_cost(ranks, costs_));
    return bytes <= board_bytes(ranks, costs_);
  }

 private:
  void note(std::size_t Costs::*field) {
    if (std::find(by_.begin(), by_.end(), field) == by_.end()) by_.push_back(field);
  }

  const Costs& costs_;
  std::vector<std::size_t Costs::*>& by_;
};

// Each round costs a synchronisation, and reading a vector twice costs bandwidth: one shot for
// small vectors, two shots for large ones. Small vectors are posted, so that a rank does not wait
// for its readers. Between two ranks posting pays up to larger sizes: they exchange the halves of
// their boards, so each line crosses once (engine/run/mailbox.h). A store to a line that many ranks
// have read is expensive, so more than two ranks read longer vectors in place.
bool takes_one_shot(int ranks, std::size_t bytes, Buffers buffers, Decision& decision) {
  if (ranks <= 2) {
    return decision.fits_boards(ranks, bytes) &&
           decision.up_to(&Costs::pair_board_call_max_bytes, bytes);
  }
  const std::size_t all = bytes * static_cast<std::size_t>(ranks);
  if (decision.fits_boards(ranks, bytes) && decision.up_to(&Costs::one_shot_max_total_bytes, all))
    return true;
  return buffers == Buffers::apart && decision.up_to(&Costs::one_shot_read_max_total_bytes, all);
}

// If each of 1024 ranks hears directly from each, the plan has two million messages, more than a
// communicator keeps for all its plans. Relaying costs rounds, but that is little if that many
// ranks share few cores. So only all_to_all has messages between all pairs then. A small vector is
// not worth the log2 N rounds of a tree: one leader per group does it in three.
std::string_view name_among_many(Collective collective, std::size_t bytes, Decision& decision) {
  switch (collective) {
    case all_reduce:
      return decision.up_to(&Costs::leaders_max_bytes, bytes) ? "leaders" : "binary_tree";
    case all_gather:
      return "bruck";
    case reduce_scatter:
      return "two_level";
    case broadcast:
    case Collective::reduce:
      return decision.up_to(&Costs::one_round_max_bytes, bytes) ? "linear" : "binary_tree";
    case scan:
      return decision.up_to(&Costs::one_round_max_bytes, bytes) ? "hillis_steele" : "chain";
    case exscan:
      return decision.up_to(&Costs::one_round_max_bytes, bytes) ? "doubling_123" : "chain";
    default:
      return "";
  }
}

// In shared memory every rank reaches every other rank directly, so relaying gains nothing for
// small vectors, and in a scan each rank reads all earlier inputs. For larger vectors each rank of
// a scan reads one vector, in segments that follow one another. Rooted collectives take one round
// for small vectors. For larger ones a reduce is faster in two rounds, in which all ranks add, and
// so is a broadcast if there are more ranks than can read from one rank at full speed.
std::string_view name_for(Collective collective, int ranks, std::size_t bytes, Buffers buffers,
                          Decision& decision) {
  if (!decision.up_to(&Costs::direct_max_ranks, static_cast<std::size_t>(ranks))) {
    const auto name = name_among_many(collective, bytes, decision);
    if (!name.empty()) return name;
  }
  switch (collective) {
    case all_reduce:
      return takes_one_shot(ranks, bytes, buffers, decision) ? "direct_one_shot"
                                                             : "direct_two_shot";
    case all_gather:
    case reduce_scatter:
    case all_to_all:  // each byte is copied once, by its receiver
      return "direct";
    case broadcast:
      return decision.up_to(&Costs::one_round_max_bytes, bytes) ||
                     decision.up_to(&Costs::one_round_broadcast_max_ranks,
                                    static_cast<std::size_t>(ranks))
                 ? "linear"
                 : "direct_two_shot";
    case Collective::reduce: {
      const auto n = static_cast<std::size_t>(ranks);
      const bool one_round =
          decision.up_to(&Costs::one_round_max_bytes, bytes) &&
          (n <= 2 || decision.up_to(&Costs::root_reduce_max_bytes_n2, bytes * n * n));
      return one_round ? "linear" : "direct_two_shot";
    }
    case gather:
    case scatter:
      return "linear";
    case scan:
    case exscan: {
      const std::size_t all = bytes * static_cast<std::size_t>(ranks);
      const bool one_shot = decision.up_to(&Costs::one_shot_max_total_bytes, all) ||
                            decision.up_to(&Costs::one_shot_read_max_total_bytes, all);
      return one_shot ? "direct" : "chain";
    }
    default:
      return "";
  }
}

// The algorithm of that name; without a name, the first algorithm of the catalogue that takes this
// N.
const Algorithm& entry_of(Collective collective, int ranks, std::string_view name) {
  if (const Algorithm* entry = find_algorithm(collective, name)) return *entry;
  const Algorithm* first = nullptr;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != collective || !entry.other_bits.empty()) continue;
    if (first == nullptr) first = &entry;
    Params params;
    params.ranks = ranks;
    if (!entry.refusal(params)) return entry;
  }
  return *first;
}

// Algorithms with such brackets, for any number of ranks or for most: one shot, or two if reading a
// vector N times costs more than another round.
std::vector<std::string_view> names_for(Bracket bracket, Collective collective, bool one_shot) {
  const bool flat = bracket == Bracket::flat;
  switch (collective) {
    case all_reduce:
      if (flat) return {one_shot ? "direct_one_shot" : "direct_two_shot"};
      return {one_shot ? "direct_one_shot" : "direct_two_shot",
              one_shot ? "recursive_doubling" : "halving_doubling", "binomial_far"};
    case Collective::reduce:
      if (flat) return {"direct_two_shot"};
      return {"direct_two_shot", "binomial_far"};
    case reduce_scatter:
      return {"direct"};
    case scan:
    case exscan:
      if (flat) return {"direct"};
      return {};
    default:
      return {};
  }
}

// All algorithms with a c_real for a similar number of ranks, with expected times. Empty if the
// model has no answer; then the costs decide.
std::vector<Candidate> weighed(Collective collective, int ranks, std::size_t bytes,
                               const TuningTable& table, const Costs& costs) {
  const std::span<const MeasuredCReal> measured = table.c_real_near(collective, ranks);
  const auto machine = machine_fabric(table.model());
  if (measured.empty() || !machine.ok()) return {};
  const int among = measured.front().ranks;
  if (std::max(ranks, among) > kRanksReach * std::min(ranks, among)) return {};
  std::vector<Candidate> out;
  for (const MeasuredCReal& one : measured) {
    const auto candidate = predict_on_threads(*one.algorithm, ranks, bytes, *machine, costs);
    if (candidate.ok() && candidate->ok()) out.push_back(*candidate);
  }
  const auto of = [&](const Algorithm& entry) { return c_real_of(measured, entry); };
  if (!weigh(out, of, *machine).ok()) return {};
  return out;
}

}  // namespace

std::size_t board_bytes(int ranks, const Costs& costs) {
  const auto field = board_cost(ranks, costs);
  const std::size_t cost = costs.*field;
  if (field != &Costs::shrinking_board_bytes_n2) return cost;
  const auto n = static_cast<std::size_t>(ranks);
  return std::max<std::size_t>(64, cost / (n * n));
}

Choice choose(Collective collective, int ranks, std::size_t bytes, Buffers buffers,
              const TuningTable* table, const Costs& costs) {
  Choice choice;
  // Tables have all-reduces out of place; in place, another algorithm is best.
  const bool covered = collective != all_reduce || buffers == Buffers::apart;
  choice.row = table != nullptr && covered ? table->find(collective, ranks, bytes) : nullptr;
  if (choice.row != nullptr) {
    choice.algorithm = choice.row->algorithm;
    return choice;
  }
  Decision decision(costs, choice.by);
  choice.algorithm =
      &entry_of(collective, ranks, name_for(collective, ranks, bytes, buffers, decision));
  if (table == nullptr || !covered) return choice;
  choice.by_model = weighed(collective, ranks, bytes, *table, costs);
  for (const Candidate& standard : choice.by_model) {
    if (standard.algorithm != choice.algorithm) continue;
    const Candidate& best = choice.by_model.front();
    choice.by_c_real = standard.expected() > kMargin * best.expected();
    if (choice.by_c_real) choice.algorithm = best.algorithm;
    break;
  }
  return choice;
}

std::vector<const Algorithm*> lines_to_try(Bracket bracket, Collective collective, int ranks,
                                           std::size_t bytes, Buffers buffers, const Costs& costs) {
  std::vector<std::size_t Costs::*> by;
  Decision decision(costs, by);
  const bool one_shot = takes_one_shot(ranks, bytes, buffers, decision);
  std::vector<const Algorithm*> entries;
  for (const std::string_view name : names_for(bracket, collective, one_shot)) {
    entries.push_back(find_algorithm(collective, name));
  }
  for (const Algorithm& entry : catalogue()) {
    const bool is_first = std::find(entries.begin(), entries.end(), &entry) != entries.end();
    if (entry.collective == collective && entry.other_bits.empty() && !is_first) {
      entries.push_back(&entry);
    }
  }
  return entries;
}

std::optional<std::size_t> trial_class_of(Collective collective, int ranks, std::size_t bytes,
                                          Buffers buffers, const Costs& costs) {
  const auto n = static_cast<std::size_t>(ranks);
  if (n < 2 || n > costs.fixed_board_max_ranks || bytes < costs.trial_min_bytes ||
      bytes > costs.trial_max_bytes / (n - 1) / (n - 1)) {
    return std::nullopt;
  }
  return trial_class({collective, buffers == Buffers::in_place}, bytes);
}

// In an all-reduce, posted data and separate buffers can be added in one round. In an all-reduce
// and a reduce, ranks that store results share the work.
const Algorithm& algorithm_of(Form form, const Algorithm& first, Buffers buffers) {
  if (first.collective == all_reduce) {
    const bool one_shot = form == Form::posts || (form == Form::reads && buffers == Buffers::apart);
    return *find_algorithm(all_reduce, one_shot ? "direct_one_shot" : "direct_two_shot");
  }
  if (first.collective == Collective::reduce)
    return *find_algorithm(Collective::reduce, stores_results(form) ? "direct_two_shot" : "linear");
  return first;
}

// Among many ranks no single fold has a plan that fits (name_among_many()). A short reduce adds
// vectors as they arrive, in one round; a single fold takes two rounds. In a single fold of a
// prefix a rank reads (N + 1) / 2 vectors on average and writes one. A chain in f32 widens (e + 4
// bytes per element), adds (12) and narrows (4 + e).
bool one_fold_is_faster(Collective collective, int ranks, std::size_t bytes,
                        std::size_t element_bytes, const Costs& costs) {
  const auto n = static_cast<std::size_t>(ranks);
  if (n > costs.direct_max_ranks) return false;
  if (collective == Collective::reduce) {
    return default_algorithm(collective, ranks, bytes, Buffers::apart, costs).name != "linear";
  }
  const bool prefix = collective == scan || collective == exscan;
  return !prefix || (n + 3) * element_bytes <= 2 * (20 + 2 * element_bytes);
}

std::string brackets_in_words(const Algorithm& entry, const Params& params) {
  const Params taken = entry.only_taken(params);
  const Schedule schedule = entry.make(taken);
  const CollectiveSpec goal = goal_of(entry, taken, schedule);
  const std::vector<std::size_t> counts(
      static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks)),
      static_cast<std::size_t>(schedule.blocks));
  const auto versions = SsaForm::of(schedule, goal, make_layout(goal, counts, 1, Borders::plain));
  if (!versions.ok()) return "";
  const Brackets found = brackets_of(**versions);
  if (found.flat && found.canonical) return "flat, canonical";
  return found.flat ? "flat" : found.canonical ? "canonical" : "other";
}

const Algorithm& default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   Buffers buffers, const Costs& costs) {
  return *choose(collective, ranks, bytes, buffers, nullptr, costs).algorithm;
}

Result<Candidate> predict_on_threads(const Algorithm& algorithm, int ranks, std::size_t bytes,
                                     const Fabric& machine, const Costs& costs) {
  Params params;
  params.ranks = ranks;
  params.peer = ranks > 1 ? 1 : 0;
  params = algorithm.only_taken(params);
  params.segments = choose_segments(algorithm, ranks, bytes, costs);
  return predict_one(algorithm, std::move(params), bytes, machine);
}

int choose_segments(const Algorithm& algorithm, int ranks, std::size_t bytes, const Costs& costs) {
  if (!algorithm.takes("segments") || ranks <= 2) return 1;
  return static_cast<int>(std::clamp<std::size_t>(bytes / costs.pipeline_segment_bytes, 1,
                                                  costs.pipeline_max_segments));
}

}  // namespace rankine
