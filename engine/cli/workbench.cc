#include "engine/cli/workbench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/base/statistics.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/network/wall.h"
#include "engine/run/kernels/integer_reductions.h"
#include "engine/run/plan.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine::tools {
namespace {

struct ProcessSeat {
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
  struct Place {
    RankReport report;
    int process = 0;
  };
  std::vector<Place> places;  // all ranks; empty on a modelled network, where gathering takes time
};

// Gathers one value from each rank, ordered by rank. All ranks must call it.
template <class Plain>
Result<std::vector<Plain>> gathered(Member& me, const Plain& mine) {
  std::vector<Plain> all(static_cast<std::size_t>(me.ranks()));
  Status status = me.call({.collective = Collective::all_gather,
                           .in = &mine,
                           .out = all.data(),
                           .count = sizeof(Plain),
                           .type = DataType::u8});
  if (!status.ok()) return status;
  return all;
}

// Pins the calling thread, and waits for the other ranks. Errors: Communicator's errors, an invalid
// placement, and errors that another process reports.
Result<ProcessSeat> sit_down(const TeamOptions& options, const ProcessRank& process) {
  const Topology topology = Topology::detect();
  const Placement placement = place_ranks(topology, options.ranks, options.placement);
  if (!placement.ok()) return invalid_argument(placement.error);
  const RankPlace& mine = placement.ranks[static_cast<std::size_t>(process.rank)];
  const std::vector<int> levels = level_groups(topology, placement);
  auto communicator = Communicator::create({.ranks = options.ranks,
                                            .timeout = options.timeout,
                                            .wait = options.wait,
                                            .levels = levels,
                                            .tuned = options.tuned,
                                            .network = options.network,
                                            .order = options.order,
                                            .rank = process.rank,
                                            .name = process.name,
                                            .ports = options.ports});
  if (!communicator.ok()) return communicator.status();
  // Must follow pinning: the waiting policy depends on the cores that the process may use.
  const Enforcement pin = pin_calling_thread(topology, mine);
  ProcessSeat seat{.communicator = std::move(*communicator), .member = {}, .places = {}};
  auto member = seat.communicator->join(process.rank);
  if (!member.ok()) return member.status();
  seat.member = std::move(*member);
  if (options.network != nullptr) return seat;  // gathering places would take model time
  static_assert(std::is_trivially_copyable_v<RankReport>);
  auto places =
      gathered(*seat.member,
               ProcessSeat::Place{make_rank_report(process.rank, topology, mine, pin), getpid()});
  if (!places.ok()) return places.status();
  seat.places = std::move(*places);
  return seat;
}

std::uint64_t mixed(std::uint64_t x) { return splitmix(x + kSplitMixStep); }

// The greatest n such that T holds all whole numbers from 0 to n exactly.
template <class T>
constexpr std::uint64_t kExact = 1;
template <>
constexpr std::uint64_t kExact<float> = std::uint64_t{1} << 24;
template <>
constexpr std::uint64_t kExact<double> = std::uint64_t{1} << 40;  // far below 2^53
template <>
constexpr std::uint64_t kExact<Half> = std::uint64_t{1} << 11;
template <>
constexpr std::uint64_t kExact<BFloat16> = std::uint64_t{1} << 8;
template <>
constexpr std::uint64_t kExact<Float8E4M3> = std::uint64_t{1} << 4;
template <>
constexpr std::uint64_t kExact<Float8E5M2> = std::uint64_t{1} << 3;

template <class T>
T element(double value) {
  if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// The contribution of rank r to column c, as a number that T holds exactly.
template <class T>
double float_value(std::uint64_t random, Rank r, int c, int ranks, ReduceOp op) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t turn = static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(c);
  switch (op) {
    case ReduceOp::prod: {
      // The greatest number of twos or halves in one column: f16 reaches from 2^-14 to 2^15, f8e4m3
      // from 2^-6 to 2^8.
      constexpr std::uint64_t kFactors = sizeof(T) == 1 ? 6 : 14;
      const bool is_unit = turn % ((n + kFactors - 1) / kFactors) != 0;
      const double size = is_unit ? 1 : (random & 2) != 0 ? 2 : 0.5;
      return (random & 1) != 0 ? -size : size;
    }
    case ReduceOp::min:
    case ReduceOp::max:
      return static_cast<double>(random % (2 * kExact<T> + 1)) - static_cast<double>(kExact<T>);
    default: {
      // The sum of all stays within kExact: each rank gets a share, or only some ranks get a one.
      const std::uint64_t share = kExact<T> / n;
      if (share > 0) return static_cast<double>(1 + random % share);
      return turn % ((n + kExact<T> - 1) / kExact<T>) == 0 ? 1 : 0;
    }
  }
}

template <class T>
T integer_value(std::uint64_t random, int ranks, ReduceOp op) {
  constexpr auto kBits = static_cast<std::uint64_t>(sizeof(T) * 8);
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(random | 1);  // two evens per bit, and the product is 0
    case ReduceOp::band:
    case ReduceOp::bor: {
      // About one set bit over all ranks for each bit of the type: neither 0 nor all ones.
      const std::uint64_t rare =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ranks) / kBits);
      const std::uint64_t bits =
          (random >> 8) % rare == 0 ? std::uint64_t{1} << (random % kBits) : 0;
      return static_cast<T>(op == ReduceOp::bor ? bits : ~bits);
    }
    default:
      return static_cast<T>(random);
  }
}

double folded(double a, double b, ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// The contributions of all ranks to column c.
template <class T>
void make_column(int c, int ranks, ReduceOp op, std::uint64_t seed, T* column) {
  const auto random = [&](Rank r) {
    return mixed(mixed(seed * 0x10001 + static_cast<std::uint64_t>(r)) +
                 static_cast<std::uint64_t>(c));
  };
  if constexpr (Complex<T>) {
    // Real and imaginary parts are made separately. In a product the parts mix, so imaginary parts
    // are 0; they stay a zero of the same sign if no factor is negative.
    using Part = typename T::value_type;
    std::vector<Part> parts(static_cast<std::size_t>(ranks));
    make_column<Part>(c, ranks, op, seed, parts.data());
    for (Rank r = 0; r < ranks; ++r) {
      const Part part = parts[static_cast<std::size_t>(r)];
      column[r] = T(op == ReduceOp::prod ? std::abs(part) : part);
    }
    if (op == ReduceOp::prod) return;
    make_column<Part>(c, ranks, op, seed + 1, parts.data());
    for (Rank r = 0; r < ranks; ++r) column[r].imag(parts[static_cast<std::size_t>(r)]);
  } else if constexpr (std::is_same_v<T, Bool>) {
    // Few contributions differ from the operation's neutral value.
    const bool rare = op != ReduceOp::prod && op != ReduceOp::min && op != ReduceOp::band;
    for (Rank r = 0; r < ranks; ++r) {
      column[r] = Bool((random(r) % static_cast<std::uint64_t>(2 * ranks) == 0) == rare);
    }
  } else if constexpr (std::is_integral_v<T>) {
    for (Rank r = 0; r < ranks; ++r) column[r] = integer_value<T>(random(r), ranks, op);
  } else {
    for (Rank r = 0; r < ranks; ++r) {
      column[r] = element<T>(float_value<T>(random(r), r, c, ranks, op));
    }
  }
}

template <class T>
double number(T element) {
  if constexpr (SmallFloat<T>) {
    return static_cast<double>(static_cast<float>(element));
  } else {
    return static_cast<double>(element);
  }
}

// The reduction of the first `ranks` contributions of a column.
template <class T>
T total_of(const T* column, int ranks, ReduceOp op) {
  if constexpr (Complex<T>) {
    using Part = typename T::value_type;
    std::vector<Part> real, imaginary;
    for (Rank r = 0; r < ranks; ++r) {
      real.push_back(column[r].real());
      imaginary.push_back(column[r].imag());
    }
    const Part total = total_of(real.data(), ranks, op);
    return op == ReduceOp::prod ? T(total) : T(total, total_of(imaginary.data(), ranks, op));
  } else if constexpr (std::is_same_v<T, Bool> || std::is_integral_v<T>) {
    T total = column[0];
    for (Rank r = 1; r < ranks; ++r) total = combined(op, total, column[r]);
    if constexpr (std::is_integral_v<T>) {
      if (op == ReduceOp::avg) return average(total, ranks);
    }
    return total;
  } else {
    double total = number(column[0]);
    for (Rank r = 1; r < ranks; ++r) total = folded(total, number(column[r]), op);
    if (op != ReduceOp::avg) return element<T>(total);
    // The engine divides in the type in which it accumulates: float for the small types.
    if constexpr (std::is_same_v<T, double>) {
      return total / ranks;
    } else {
      return element<T>(static_cast<double>(static_cast<float>(total) / static_cast<float>(ranks)));
    }
  }
}

// Calls visit(part of the block in bytes, offset in the period in bytes) along the block.
template <class Visit>
void along_block(int b, std::size_t block_bytes, std::size_t element_bytes,
                 std::size_t period_bytes, const Visit& visit) {
  // Blocks begin at different places of the period.
  std::size_t phase = static_cast<std::size_t>(b) * 37 % TestData::kPeriod * element_bytes;
  for (std::size_t at = 0; at < block_bytes;) {
    const std::size_t bytes = std::min(period_bytes - phase, block_bytes - at);
    visit(at, bytes, phase);
    at += bytes;
    phase = 0;
  }
}

// The contents of a call's buffers, in the collective's natural blocks and with unmoved borders.
CollectiveSpec natural_goal(const Call& call, int ranks) {
  return {call.collective, ranks, natural_blocks(call.collective, ranks), call.root, call.peer};
}

Layout natural_layout(const Call& call, int ranks) {
  return make_layout(natural_goal(call, ranks), natural_counts(call, ranks), size_of(call.type),
                     Borders::plain);
}

}  // namespace

TestData::TestData(Collective collective, int ranks, DataType type, ReduceOp op, std::uint64_t seed)
    : type_(type), element_bytes_(size_of(type)), period_bytes_(element_bytes_ * kPeriod) {
  const auto n = static_cast<std::size_t>(ranks);
  contributions_.resize(n * period_bytes_);
  const bool reducing = rankine::reduces(collective);
  if (reducing) reduced_.resize(is_prefix(collective) ? n * period_bytes_ : period_bytes_);
  const CollectiveSpec goal{.collective = collective, .ranks = ranks};
  const ReduceOp shaping = reducing ? op : ReduceOp::max;  // copies take the widest range
  with_element(type, [&]<class T>() {
    std::vector<T> column(n);
    for (int c = 0; c < kPeriod; ++c) {
      const std::size_t at = static_cast<std::size_t>(c) * sizeof(T);
      make_column<T>(c, ranks, shaping, seed, column.data());
      for (std::size_t r = 0; r < n; ++r) {
        std::memcpy(&contributions_[r * period_bytes_ + at], &column[r], sizeof(T));
      }
      // The reduction over all ranks, or for scans over the ranks from 0 on that rank r hears.
      for (std::size_t r = 0; r < reduced_.size() / period_bytes_; ++r) {
        const int heard = goal.contributors(static_cast<Rank>(r), 0).count;
        if (heard == 0) continue;
        const T total = total_of(column.data(), heard, op);
        std::memcpy(&reduced_[r * period_bytes_ + at], &total, sizeof(T));
      }
    }
  });
}

const std::byte* TestData::period_of(Rank source) const {
  return &contributions_[static_cast<std::size_t>(source) * period_bytes_];
}

void TestData::fill(const CollectiveSpec& goal, const Layout& layout, Rank r,
                    std::byte* input) const {
  const std::byte* period = period_of(r);
  for (int b = 0; b < goal.blocks; ++b) {
    if (!goal.initially_holds(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    along_block(b, home.bytes, element_bytes_, period_bytes_,
                [&](std::size_t at, std::size_t bytes, std::size_t phase) {
                  std::memcpy(input + home.input + at, period + phase, bytes);
                });
  }
}

template <class Visit>
void TestData::for_each_other(const CollectiveSpec& goal, const Layout& layout, Rank r,
                              const std::byte* output, const Visit& visit) const {
  for (int b = 0; b < goal.blocks; ++b) {
    if (!goal.must_hold(r, b)) continue;
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    const Rank source = goal.source_of(b);
    const std::size_t of = is_prefix(goal.collective) ? static_cast<std::size_t>(r) : 0;
    const std::byte* period =
        reduced_.empty() ? period_of(std::max(source, 0)) : &reduced_[of * period_bytes_];
    along_block(b, home.bytes, element_bytes_, period_bytes_,
                [&](std::size_t at, std::size_t bytes, std::size_t phase) {
                  const std::byte* got = output + home.output + at;
                  if (std::memcmp(got, period + phase, bytes) == 0) return;
                  for (std::size_t i = 0; i < bytes; i += element_bytes_) {
                    const std::byte* const want = period + phase + i;
                    if (std::memcmp(got + i, want, element_bytes_) != 0) visit(got + i, want);
                  }
                });
  }
}

std::int64_t TestData::count_wrong(const CollectiveSpec& goal, const Layout& layout, Rank r,
                                   const std::byte* output) const {
  std::int64_t wrong = 0;
  for_each_other(goal, layout, r, output, [&](const std::byte*, const std::byte*) { ++wrong; });
  return wrong;
}

std::int64_t TestData::count_far(const CollectiveSpec& goal, const Layout& layout, Rank r,
                                 const std::byte* output, double bound, double& error) const {
  std::int64_t far = 0;
  for_each_other(goal, layout, r, output, [&](const std::byte* got, const std::byte* want) {
    const double distance = std::abs(value_at(got) - value_at(want));
    error = std::max(error, distance);
    far += distance <= bound ? 0 : 1;  // also a NaN
  });
  return far;
}

double TestData::value_at(const std::byte* element) const {
  const auto value = [element]<class T>(T x) {
    std::memcpy(&x, element, sizeof(x));
    return number(x);
  };
  if (type_ == DataType::f32) return value(float());
  return type_ == DataType::f16 ? value(Half()) : value(BFloat16());
}

std::vector<double> TestData::peaks() const {
  std::vector<double> peaks(contributions_.size() / period_bytes_);
  for (std::size_t at = 0; at < contributions_.size(); at += element_bytes_) {
    double& peak = peaks[at / period_bytes_];
    peak = std::max(peak, std::abs(value_at(&contributions_[at])));
  }
  return peaks;
}

namespace {

// Rounds up to whole cache lines.
std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kLineBytes = 64;
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// The buffers of one rank, on the rank's node.
struct BufferPair {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

constexpr double kShortestBatch = 20e-6;  // seconds
constexpr int kMostCalls = 1 << 20;       // per batch

// The status of a rank that stops because another rank stopped.
Status stopped() { return {Code::aborted, "another rank stopped"}; }

// Trial is one measurement of the workbench. Each rank derives the next step from the reports of
// all ranks. Threads read each other's slots; ranks that are processes have a Trial each, and
// gather the reports.
//
// `buffers` hold `region` bytes each, one pair per rank of this process, and outlive the trial.
// `apart`: this process's rank on a communicator without a network, through which ranks that are
// processes meet; nullptr among threads. `on_network`: calls are on a modelled network, and
// measure() gets a new communicator each time. `seed`: of the first check's data.
class Trial {
 public:
  Trial(const Call& call, const MeasureOptions& options, const Communicator& ranks, Member* apart,
        bool on_network, const std::vector<BufferPair>& buffers, BufferBytes region,
        std::span<Perturbation> delays, std::uint64_t seed = 0);

  // On every rank's thread: measures; out of place first, then in place.
  void measure(Member& me, bool in_place);
  // On every rank's thread: makes one call with the data of the first check.
  void play(Member& me);

  // After measure() or play(): why it was stopped.
  Status status() const;
  Measured result();
  Workbench::Played played() const;

 private:
  // One rank's report to the others.
  struct Told {
    double seconds = 0;
    double model_seconds = 0;
    double now = 0;
    std::int64_t wrong = 0;
    double error = 0;
    bool interrupted = false;
  };
  // Data of one rank, on separate cache lines.
  struct Slot : Arrival {
    Told told;
    Status status;
    std::optional<QuantisedSum> quantised{};
    bool interrupted = false;
    double begin = 0, end = 0;  // of the last checked call
  };
  // The progress of one measurement, equal on all ranks.
  struct Progress {
    BatchSize size;
    int batches = 0;
    std::optional<double> begun{};  // the time from which batches count
    bool done = false;
  };

  Slot& slot_of(const Member& me) { return slots_[static_cast<std::size_t>(me.rank())]; }
  // Returns when all ranks have called it; false after a stop.
  bool wait_for_all(Member& me);
  // As wait_for_all(), and all ranks see the reports of all, until they wait again.
  bool tell_all(Member& me);
  // The buffers of rank r's call number `turn`.
  BufferPair ends(Rank r, std::size_t turn, bool in_place) const;
  // `back`: from peer to root.
  Status make_call(Member& me, const BufferPair& e, bool back = false);
  // Waits while the rank is late, and returns the time from which its batch counts.
  double begin_batch(Rank r) const;
  Status measure_one(Member& me, bool in_place);
  // Makes one call on spoilt outputs; adds the wrong elements to the report.
  Status check(Member& me, const BufferPair& e, const TestData& data);
  double allowed_error(const TestData& data) const;  // of a quantised sum of these data
  double time_of_batch() const;  // combines all ranks' slots by options_.of_ranks
  Status after_batch(Slot& slot, Progress& progress, Series& series) const;

  const Call call_;
  const MeasureOptions options_;
  const std::vector<BufferPair>& buffers_;
  const std::span<Perturbation> delays_;  // by rank, or empty
  const int ranks_;
  Member* const apart_;
  const bool on_network_;
  const CollectiveSpec goal_;
  const Layout layout_;
  std::vector<BufferRule> rules_;
  std::vector<TestData> data_;  // one per check, at least one
  BufferBytes stride_;          // bytes from copy to copy
  std::size_t shift_ = 0;       // bytes by which all copies are shifted
  std::size_t copies_ = 1, step_ = 1;
  const SpinBudget patience_;  // little where ranks outnumber cores
  std::vector<Slot> slots_;
  std::atomic<bool> stopped_{false};
  Measured measured_;  // written by one rank of this process
};

Trial::Trial(const Call& call, const MeasureOptions& options, const Communicator& ranks,
             Member* apart, bool on_network, const std::vector<BufferPair>& buffers,
             BufferBytes region, std::span<Perturbation> delays, std::uint64_t seed)
    : call_(call),
      options_(options),
      buffers_(buffers),
      delays_(delays),
      ranks_(ranks.ranks()),
      apart_(apart),
      on_network_(on_network),
      goal_(natural_goal(call, ranks_)),
      layout_(natural_layout(call, ranks_)),
      shift_(static_cast<std::size_t>(options.unalign) * size_of(call.type)),
      patience_(ranks.wait_policy().mode == WaitPolicy::Mode::spin ? 5000 : 4),
      slots_(static_cast<std::size_t>(ranks_)) {
  for (Rank r = 0; r < ranks_; ++r) {
    rules_.push_back(buffer_rule(layout_, goal_, r));
    stride_.input = std::max(stride_.input, round_up(rules_.back().input_bytes));
    stride_.output = std::max(stride_.output, round_up(rules_.back().output_bytes));
  }
  if (options.off_cache) {
    const BufferBytes left{region.input - std::min(shift_, region.input),
                           region.output - std::min(shift_, region.output)};
    copies_ = std::min(stride_.input > 0 ? left.input / stride_.input : left.input,
                       stride_.output > 0 ? left.output / stride_.output : left.output);
    copies_ = std::max<std::size_t>(1, copies_);
  }
  step_ = static_cast<std::size_t>(static_cast<double>(copies_) * 0.618) | 1;
  while (std::gcd(step_, copies_) != 1) step_ += 2;
  for (int i = 0; i < std::max(1, options.checks); ++i) {
    data_.emplace_back(call.collective, ranks_, call.type, call.op,
                       seed + static_cast<std::uint64_t>(i));
  }
}

bool Trial::wait_for_all(Member& me) {
  if (apart_ != nullptr) return apart_->barrier().ok();
  return meet(slots_.data(), ranks_, me.rank(), patience_, &stopped_);
}

bool Trial::tell_all(Member& me) {
  Told& mine = slot_of(me).told;
  mine.now = seconds_now();
  mine.interrupted = interruption() != 0;
  if (apart_ == nullptr) return wait_for_all(me);
  const auto all = gathered(*apart_, mine);
  if (!all.ok()) return false;
  for (std::size_t r = 0; r < slots_.size(); ++r) slots_[r].told = (*all)[r];
  return true;
}

void Trial::measure(Member& me, bool in_place) {
  Slot& slot = slot_of(me);
  slot.status = measure_one(me, in_place);
  if (!slot.status.ok()) stopped_.store(true, std::memory_order_relaxed);
}

void Trial::play(Member& me) {
  Slot& slot = slot_of(me);
  slot.status = check(me, ends(me.rank(), 0, false), data_[0]);
  if (!slot.status.ok()) stopped_.store(true, std::memory_order_relaxed);
}

Status Trial::status() const {
  bool interrupted = false;
  for (const Slot& slot : slots_) {
    if (!slot.status.ok() && slot.status.code() != Code::aborted) return slot.status;
    interrupted = interrupted || slot.interrupted;
  }
  return interrupted ? Status(Code::aborted, "a signal interrupted the measurement") : Status();
}

Measured Trial::result() {
  for (Series* series : {&measured_.out_of_place, &measured_.in_place}) {
    series->seconds = summarise(series->samples);
  }
  return std::move(measured_);
}

Workbench::Played Trial::played() const {
  Workbench::Played played;
  double begin = slots_.front().begin, end = slots_.front().end;
  for (const Slot& slot : slots_) {
    begin = std::min(begin, slot.begin);
    end = std::max(end, slot.end);
    played.wrong += slot.told.wrong;
  }
  played.seconds = end - begin;
  return played;
}

BufferPair Trial::ends(Rank r, std::size_t turn, bool in_place) const {
  const auto i = static_cast<std::size_t>(r);
  const std::size_t copy = turn * step_ % copies_;
  BufferPair e{buffers_[i].input + copy * stride_.input + shift_,
               buffers_[i].output + copy * stride_.output + shift_};
  const BufferRule& rule = rules_[i];
  if (!in_place || !rule.may_be_in_place) return e;
  if (rule.output_bytes >= rule.input_bytes) {
    e.input = e.output + rule.in_place_offset;
  } else {
    e.output = e.input - rule.in_place_offset;
  }
  return e;
}

Status Trial::make_call(Member& me, const BufferPair& e, bool back) {
  Call call = call_;
  call.in = e.input;
  call.out = options_.to_and_fro ? e.input : e.output;
  if (back) {
    call.root = 1 - call.root;
    call.peer = 1 - call.peer;
  }
  if (auto& sum = slot_of(me).quantised) {
    return sum->all_reduce(call.in, call.count, call.out, call.count, call.type);
  }
  return delays_.empty() ? me.call(call)
                         : me.call(call, delays_[static_cast<std::size_t>(me.rank())]);
}

double Trial::begin_batch(Rank r) const {
  const double begin = seconds_now();
  if (options_.skew <= 0) return begin;
  const double late = options_.skew * r / std::max(1, ranks_ - 1);
  while (seconds_now() < begin + late) sched_yield();
  return begin + options_.skew;
}

double Trial::time_of_batch() const {
  double sum = 0, least = slots_.front().told.seconds, most = least;
  for (const Slot& slot : slots_) {
    sum += slot.told.seconds;
    least = std::min(least, slot.told.seconds);
    most = std::max(most, slot.told.seconds);
  }
  switch (options_.of_ranks) {
    case RankTime::first:
      return slots_.front().told.seconds;
    case RankTime::mean:
      return sum / static_cast<double>(slots_.size());
    case RankTime::least:
      return least;
    case RankTime::most:
      break;
  }
  return most;
}

// The time of the finished batch decides the next step.
Status Trial::after_batch(Slot& slot, Progress& progress, Series& series) const {
  const auto is_interrupted = [](const Slot& one) { return one.told.interrupted; };
  slot.interrupted = std::any_of(slots_.begin(), slots_.end(), is_interrupted);
  if (slot.interrupted) return stopped();
  const double now = slots_.front().told.now;
  const int calls = progress.size.calls;
  const double seconds = time_of_batch() / calls;
  if (!progress.begun) {
    // Ten per cent more calls than needed.
    if (!progress.size.settled) progress.size.learn(seconds, 1.1 * kShortestBatch, 1, kMostCalls);
    if (progress.size.settled) progress.begun = now;
    return {};
  }
  series.samples.push_back(seconds);
  if (options_.each_rank) {
    series.of_rank.resize(slots_.size());
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      series.of_rank[r].push_back(slots_[r].told.seconds / calls);
    }
  }
  const int batches = ++progress.batches;
  progress.done = options_.batches > 0 ? batches >= options_.batches
                                       : batches >= MeasureOptions::kMostBatches ||
                                             (batches >= MeasureOptions::kFewestBatches &&
                                              now - *progress.begun > options_.seconds);
  return {};
}

double Trial::allowed_error(const TestData& data) const {
  return QuantisedSum::largest_error(options_.quantise->as, call_.type, data.peaks());
}

Status Trial::measure_one(Member& me, bool in_place) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  Slot& slot = slot_of(me);
  if (options_.quantise) slot.quantised.emplace(me, *options_.quantise);
  Series series;
  std::size_t turn = 0;
  Status status;
  const auto call = [&] {
    const bool back = options_.to_and_fro && turn % 2 != 0;
    status = make_call(me, ends(r, turn++, in_place), back);
    return status.ok();
  };
  const auto fill = [&] { data_[0].fill(goal_, layout_, r, ends(r, turn, in_place).input); };
  const auto wait = [&] { return wait_for_all(me); };
  const auto begin = [&] { return begin_batch(r); };

  // The ranks meet before calls: filling takes long and must not count as waiting.
  fill();
  if (!wait()) return stopped();
  // The model's time is the time of one call alone, which is a warm-up.
  const int warmups = on_network_ ? std::max(1, options_.warmups) : options_.warmups;
  for (int i = 0; i < warmups; ++i) {
    if (!call()) return status;
    if (i == 0) slot.told.model_seconds = me.model_time();
  }
  if (!tell_all(me)) return stopped();
  if (on_network_) {
    double& seconds = series.model_seconds.emplace(0);
    for (const Slot& one : slots_) seconds = std::max(seconds, one.told.model_seconds);
  }

  Progress progress{.size = {.calls = options_.fresh ? 1 : std::max(1, options_.calls),
                             .settled = options_.fresh || options_.calls > 0}};
  while (!progress.done) {
    std::optional<double> seconds;
    if (options_.fresh) {
      const std::byte* const output = ends(r, turn, in_place).output;
      seconds = time_fresh(fill, wait, begin, seconds_now, call, output, rule.output_bytes);
    } else if (wait()) {
      seconds = time_warm(begin, seconds_now, progress.size.calls, call);
    }
    if (!seconds) return status.ok() ? stopped() : status;
    slot.told.seconds = std::max(0.0, *seconds);
    if (!tell_all(me)) return stopped();
    status = after_batch(slot, progress, series);
    if (!status.ok()) return status;
  }

  if (r == 0) {
    Call plain = call_;
    const BufferPair e = ends(r, 0, in_place);
    plain.in = e.input;
    plain.out = e.output;
    if (options_.quantise) plain = slot.quantised->first_call(plain.count);
    auto plan = me.plan_of(plain);
    if (!plan.ok()) return plan.status();
    // "chain, P = 8, mailbox transport": the middle part is the algorithm's.
    const std::size_t end = plan->find(" transport"), start = plan->rfind(' ', end - 1) + 1;
    series.algorithm = options_.quantise
                           ? "quantised_" + std::string(name_of(options_.quantise->as))
                           : plan->substr(0, plan->find(", "));
    series.transport = plan->substr(start, end - start);
  }
  series.calls = progress.size.calls;
  slot.told.wrong = 0;
  slot.told.error = 0;
  for (int i = 0; i < options_.checks; ++i) {
    status = check(me, ends(r, turn, in_place), data_[static_cast<std::size_t>(i)]);
    if (!status.ok()) return status;
  }
  if (options_.checks > 0) {
    if (!tell_all(me)) return stopped();
    series.wrong = 0;
    for (const Slot& one : slots_) {
      series.wrong += one.told.wrong;
      series.error = std::max(series.error, one.told.error);
    }
    if (options_.quantise) series.allowed_error = allowed_error(data_.front());
  }
  // All ranks of this process have the same series.
  if (apart_ != nullptr || r == 0) {
    (in_place ? measured_.in_place : measured_.out_of_place) = std::move(series);
  }
  return {};
}

Status Trial::check(Member& me, const BufferPair& e, const TestData& data) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  Slot& slot = slot_of(me);
  constexpr int kSpoilt = 0xa5;
  if (rule.output_bytes > 0) std::memset(e.output, kSpoilt, rule.output_bytes);
  if (rule.input_bytes > 0) data.fill(goal_, layout_, r, e.input);
  if (!wait_for_all(me)) return stopped();
  slot.begin = seconds_now();
  Status status = make_call(me, e);
  slot.end = seconds_now();
  if (!status.ok()) return status;
  if (rule.output_bytes == 0) return {};
  slot.told.wrong += options_.quantise ? data.count_far(goal_, layout_, r, e.output,
                                                        allowed_error(data), slot.told.error)
                                       : data.count_wrong(goal_, layout_, r, e.output);
  return {};
}

// Twice the bytes of all last-level caches; a large guess if the machine does not report them.
std::size_t beyond_cache(const Topology& topology) {
  constexpr std::size_t kUnknown = std::size_t{64} << 20;
  const std::size_t all = topology.l3_bytes();
  return 2 * (all != 0 ? all : kUnknown * static_cast<std::size_t>(topology.l3_groups()));
}

// Bytes that one rank allocates for its inputs, and for its outputs.
BufferBytes region_bytes(const Workbench::Options& options, const Topology& topology) {
  BufferBytes region{round_up(options.buffers.input), round_up(options.buffers.output)};
  if (options.off_cache) {
    const std::size_t share =
        round_up(beyond_cache(topology) / static_cast<std::size_t>(options.team.ranks) / 2);
    region.input = std::max(region.input, share);
    region.output = std::max(region.output, share);
  }
  return region;
}

}  // namespace

BufferBytes buffer_bytes(const Call& call, int ranks) {
  const CollectiveSpec goal = natural_goal(call, ranks);
  const Layout layout = natural_layout(call, ranks);
  BufferBytes most;
  for (Rank r = 0; r < ranks; ++r) {
    most.input = std::max(most.input, input_bytes(layout, goal, r));
    most.output = std::max(most.output, output_bytes(layout, goal, r));
  }
  return most;
}

struct Workbench::State {
  TeamOptions options;
  std::unique_ptr<Team> team;  // or:
  std::optional<ProcessRank> process;
  std::optional<ProcessSeat> seat;     // without a network
  std::optional<ProcessSeat> network;  // for one measurement on a modelled network
  int networks = 0;                    // so far
  std::uint64_t plays = 0;             // so far
  ProcessSeat& calls() { return network ? *network : *seat; }
  Communicator& ranks() { return team ? team->communicator() : *calls().communicator; }
  std::vector<PortsInUse> ports;  // by rank, so far
  std::vector<Arena> arenas;
  std::vector<Payload<std::byte>> payloads;  // buffers of processes in shared memory
  bool shared_payloads = false;
  std::vector<BufferPair> buffers;
  BufferBytes region;
};

Workbench::Workbench(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workbench::~Workbench() = default;

std::vector<RankReport> Workbench::places() const {
  if (state_->team) return state_->team->report();
  std::vector<RankReport> all;
  for (const ProcessSeat::Place& one : state_->seat->places) all.push_back(one.report);
  return all;
}

int Workbench::process_of(Rank r) const {
  return state_->team ? getpid() : state_->seat->places[static_cast<std::size_t>(r)].process;
}

Communicator& Workbench::communicator() const { return state_->ranks(); }

std::vector<Perturbation> perturbations(const std::optional<std::uint64_t>& seed, int ranks) {
  std::vector<Perturbation> delays;
  for (Rank r = 0; seed && r < ranks; ++r) delays.emplace_back(*seed, r);
  return delays;
}

Status Workbench::run(const std::function<void(Member&)>& f) {
  if (state_->team) return state_->team->run(f);
  f(*state_->calls().member);
  return state_->calls().communicator->health();
}

Status Workbench::check_memory(const Options& options, std::string_view who, std::size_t spare) {
  const BufferBytes region = region_bytes(options, Topology::detect());
  const auto total =
      (static_cast<unsigned __int128>(region.input) + region.output + options.buffers.output) *
      static_cast<unsigned>(options.team.ranks);
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max());
  return tools::check_memory(static_cast<std::size_t>(std::min(total, kMost)),
                             "buffers and scratch", who, spare);
}

Result<std::unique_ptr<Workbench>> Workbench::create(const Options& options) {
  auto state = std::make_unique<State>();
  state->options = options.team;
  state->shared_payloads = options.shared_payloads;
  if (options.process) {
    state->process = options.process;
    TeamOptions without_network = options.team;
    without_network.network = nullptr;
    auto seat = sit_down(without_network, *options.process);
    if (!seat.ok()) return seat.status();
    state->seat = std::move(*seat);
  } else {
    auto team = machine_team(options.team);
    if (!team.ok()) return team.status();
    state->team = std::move(*team);
  }
  const Topology topology = Topology::detect();
  state->region = region_bytes(options, topology);
  std::unique_ptr<Workbench> bench(new Workbench(std::move(state)));
  if (Status status = bench->allocate(topology); !status.ok()) return status;
  return bench;
}

Status Workbench::allocate(const Topology& topology) {
  State* const state = state_.get();
  for (const RankReport& report : places()) {
    ArenaOptions arena = arena_options(topology, report.place);
    arena.chunk_bytes = 4096;  // each buffer gets a separate chunk
    state->arenas.emplace_back(arena);
  }
  state->buffers.resize(state->arenas.size());
  // Each rank touches its memory first, so that no page is the kernel's shared zero page.
  std::mutex mutex;
  Status failure;
  Status done = run([&](Member& me) {
    BufferPair& mine = state->buffers[static_cast<std::size_t>(me.rank())];
    Arena& arena = state->arenas[static_cast<std::size_t>(me.rank())];
    const BufferBytes& region = state->region;
    std::string why;
    const auto allocate = [&](std::size_t bytes) -> std::byte* {
      if (!state->shared_payloads) return static_cast<std::byte*>(arena.allocate(bytes));
      auto payload = me.allocate<std::byte>(bytes);  // this process plays one rank
      if (!payload.ok()) {
        why = ": " + payload.status().text();
        return nullptr;
      }
      return state->payloads.emplace_back(std::move(*payload)).span().data();
    };
    mine.input = allocate(region.input);
    mine.output = allocate(region.output);
    if (mine.input == nullptr || mine.output == nullptr) {
      const std::lock_guard lock(mutex);
      failure = {Code::out_of_memory, fmt::format("buffers of rank {}: {} bytes{}", me.rank(),
                                                  region.input + region.output, why)};
      return;
    }
    if (region.input > 0) std::memset(mine.input, 0, region.input);
    if (region.output > 0) std::memset(mine.output, 0, region.output);
  });
  return failure.ok() ? done : failure;
}

Status Workbench::check(const Call& call) {
  Status refused;
  Status done = run([&](Member& me) {
    if (state_->team && me.rank() != 0) return;
    const BufferPair& buffers = state_->buffers[static_cast<std::size_t>(me.rank())];
    Call one = call;
    one.in = buffers.input;
    one.out = buffers.output;
    const auto plan = me.plan_of(one);
    if (!plan.ok()) refused = plan.status();
  });
  return refused.ok() ? done : refused;
}

Result<Measured> Workbench::measure(const Call& call, const MeasureOptions& options) {
  Status valid = check_call(call, state_->ranks().ranks());
  if (!valid.ok()) return valid;
  const bool on_network = state_->options.network != nullptr;
  Member* const apart = state_->seat ? &*state_->seat->member : nullptr;
  std::vector<Perturbation> delays = perturbations(options.perturb, state_->ranks().ranks());
  Trial trial(call, options, state_->ranks(), apart, on_network, state_->buffers, state_->region,
              delays);
  for (const bool in_place : {false, true}) {
    if (options.in_place.value_or(in_place) != in_place) continue;
    if (on_network && apart != nullptr) {
      state_->network.reset();
      ProcessRank process = *state_->process;
      process.name += fmt::format("-{}", state_->networks++);
      auto anew = sit_down(state_->options, process);
      if (!anew.ok()) return anew.status();
      state_->network = std::move(*anew);
    } else if (on_network) {
      auto anew = machine_team(state_->options);
      if (!anew.ok()) return anew.status();
      state_->team = std::move(*anew);
    }
    Status done = run([&](Member& me) { trial.measure(me, in_place); });
    Status own = trial.status();
    if (!own.ok()) return own;
    if (!done.ok()) return done;
    add_ports_in_use(state_->ranks(), state_->ports);
  }
  Result<Measured> measured = trial.result();
  if (measured.ok() && (on_network || state_->options.ports > 0)) measured->ports = state_->ports;
  return measured;
}

Result<Workbench::Played> Workbench::play(const Call& call, std::span<Perturbation> delays) {
  state_->ranks().restart_model_time();
  const bool on_network = state_->options.network != nullptr;
  Trial trial(call, {}, state_->ranks(), nullptr, on_network, state_->buffers, state_->region,
              delays, ++state_->plays);
  Status done = run([&](Member& me) { trial.play(me); });
  Status own = trial.status();
  if (!own.ok()) return own;
  if (!done.ok()) return done;
  return trial.played();
}

Result<double> probe_latency(Team& team) {
  const std::vector<RankReport> all = team.report();
  if (all.size() < 2) return 0.0;
  // On one CPU the two ranks would hand over time slices.
  const RankReport &a = all[0], &b = all[1];
  const bool apart = a.place.cpu >= 0 && b.place.cpu >= 0 && a.place.cpu != b.place.cpu &&
                     !a.pin.refused() && !b.pin.refused();
  if (!apart) return 0.0;
  LatencyProbe probe;
  double ns = 0;
  Status done = team.run([&](Member& me) {
    if (me.rank() > 1) return;
    const double mine = probe.play(me.rank());
    if (me.rank() == 0) ns = mine;
  });
  if (!done.ok()) return done;
  return ns;
}

Result<Measured> Workbench::measure_steady(const Call& call, const MeasureOptions& options,
                                           LatencyBracket& bracket) {
  struct Bracketed {
    Result<Measured> measured;
    LatencyBracket bracket{};
  };
  const auto probe = [&] { return state_->team ? probe_latency(*state_->team) : 0.0; };
  const auto once = [&]() -> Bracketed {
    const auto before = probe();
    if (!before.ok()) return {before.status()};
    auto measured = measure(call, options);
    if (!measured.ok()) return {measured.status()};
    const auto after = probe();
    if (!after.ok()) return {after.status()};
    return {std::move(measured), {.before_ns = *before, .after_ns = *after}};
  };
  int repeats = 0;
  Bracketed best = calmest(
      once, [](const Bracketed& b) { return b.measured.ok() ? b.bracket.drift() : 1; }, repeats);
  bracket = best.bracket;
  bracket.repeats = repeats;
  return std::move(best.measured);
}

}  // namespace rankine::tools
