#include "engine/faults/soak.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/api/processes/identity.h"
#include "engine/api/split.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/child_process.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/fixture.h"
#include "engine/run/call_sites.h"
#include "numa/system_calls.h"

namespace rankine::faults {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// A wait that lasts longer is a stall of the machine: the ranks go on behind it, and it is counted.
constexpr std::chrono::milliseconds kPatience = 30s;
// Attempts in a row to find the other ranks, after which a process gives up.
constexpr int kAttempts = 200;

// Counts of latencies by size. Shared.
class Histogram {
 public:
  void add(std::int64_t ns) {
    // Relaxed: counts, read when the processes have ended.
    counts_[static_cast<std::size_t>(TimeClasses::of(ns))].fetch_add(1, std::memory_order_relaxed);
  }
  SoakLatencies latencies() const {
    SoakLatencies out;
    for (int c = 0; c < TimeClasses::kClasses; ++c) out.samples += count_of(c);
    out.p50 = seconds_at(0.5);
    out.p90 = seconds_at(0.9);
    out.p99 = seconds_at(0.99);
    out.p999 = seconds_at(0.999);
    out.most = seconds_at(1);
    return out;
  }

 private:
  std::int64_t count_of(int c) const {
    return counts_[static_cast<std::size_t>(c)].load(std::memory_order_relaxed);
  }
  // The upper end of that time's class.
  double seconds_at(double part) const {
    const int of = TimeClasses::quantile(part, [this](int c) { return count_of(c); });
    return of < 0 ? 0 : (TimeClasses::begin(of) + TimeClasses::width(of)) / 1e9;
  }
  std::array<std::atomic<std::int64_t>, TimeClasses::kClasses> counts_{};
};

enum Event : int {
  calls,
  bytes,
  messages,
  groups,
  deaths,
  deaths_in_grow,
  revocations,
  shrinks,
  grows,
  failed_grows,
  failed_meetings,
  stalls,
  kEvents
};
constexpr std::string_view kEventNames[kEvents] = {
    "calls",       "bytes",   "messages", "groups",       "kills",        "kills in meetings",
    "revocations", "shrinks", "grows",    "failed grows", "failed joins", "stalls of 30 s"};

// What all processes share. Relaxed atomics: counts, and states that processes poll.
struct Page {
  std::atomic<int> phase;  // kSoakPhases: the end
  std::array<std::atomic<std::int64_t>, kEvents> events;
  std::array<Histogram, kSoakPhases> small, any;
  Histogram shrinks, grows;
  struct Place {
    std::atomic<bool> is_new;   // it has not come to the others yet
    std::atomic<bool> may_die;  // it has set a timer for its end
    char broken[1024];          // read when the process has ended
  };
  std::array<Place, SoakOptions::kMostRanks> places;
  std::array<SoakCounts, kSoakPhases> counts;

  void note(Event event, std::int64_t n = 1) {
    events[static_cast<std::size_t>(event)].fetch_add(n, std::memory_order_relaxed);
  }
};

// The engine's mappings of this process.
std::atomic<std::int64_t> mapped_bytes{0};
SystemCalls counting_calls() {
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void* address, std::size_t size, int protection, int flags, int file,
                  off_t offset) {
    void* const result = real_system_calls().mmap(address, size, protection, flags, file, offset);
    if (result != MAP_FAILED) mapped_bytes += static_cast<std::int64_t>(size);
    return result;
  };
  calls.munmap = [](void* address, std::size_t size) {
    const int result = real_system_calls().munmap(address, size);
    if (result == 0) mapped_bytes -= static_cast<std::int64_t>(size);
    return result;
  };
  return calls;
}

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void broken(const std::string& what, const Status& status) {
  throw Broken(what + ": " + std::string(name_of(status.code())) + ": " + status.text());
}

// One process of the soak.
class SoakWorker {
 public:
  SoakWorker(const SoakOptions& options, const std::string& name, Page& page, int place, int life)
      : options_(options),
        name_(name),
        page_(page),
        place_(place),
        dice_(options.seed * 1000 + static_cast<std::uint64_t>(place) + 7919u * life) {}

  // Plays until the end. `rank`: in the first meeting; -1: a new process, for a place of a lost
  // one.
  void play(Rank rank) {
    watch_blocks(true);
    const ScopedSystemCalls counted(counting_calls());
    while (phase_ < kSoakPhases) {
      if (rank >= 0) {
        begin(rank);
      } else {
        come_in();
      }
      for (next_phase_.reset(); !next_phase_;) {
        const Status status = turn();
        if (!status.ok()) go_on_after(status);
      }
      rank = me_->rank();
      me_.reset();
      if (place_ == 0) count();
      phase_ = *next_phase_;
    }
  }

 private:
  CommunicatorOptions options() const {
    return {.ranks = options_.ranks, .timeout = kPatience, .name = name_};
  }

  // All ranks are there, in the order that they had.
  void begin(Rank rank) {
    CommunicatorOptions as = options();
    const std::string name = name_ + "." + std::to_string(phase_);
    as.rank = rank;
    as.name = name;
    for (int i = 0;; ++i) {
      auto made = Communicator::create(as);
      if (made.ok()) {
        me_ = (*made)->join(rank).value();
        return;
      }
      if (made.status().code() != Code::timeout || i == kAttempts) {
        broken("a meeting of all ranks failed", made.status());
      }
      page_.note(stalls);
    }
  }

  // This process replaces a lost one: it takes the last free number.
  void come_in() {
    Page::Place& mine = page_.places[static_cast<std::size_t>(place_)];
    for (int i = 0;; ++i) {
      CommunicatorOptions as = options();
      Rank rank = options_.ranks - 1;
      for (int p = place_ + 1; p < options_.ranks; ++p) {
        if (page_.places[static_cast<std::size_t>(p)].is_new.load()) --rank;
      }
      as.rank = rank;
      if (i == 0 && dice_.one_in(6)) end_soon(3'000, deaths_in_grow);
      auto made = Communicator::create(as);
      if (made.ok()) {
        me_ = (*made)->join(rank).value();
        mine.is_new.store(false);
        return;
      }
      const Code code = made.status().code();
      // Members that are lost, and numbers that no longer are the free ones.
      const bool may_be =
          code == Code::rank_lost || code == Code::timeout || code == Code::invalid_argument;
      if (!may_be || i == kAttempts) broken("a new rank cannot come in", made.status());
      page_.note(failed_meetings);
    }
  }

  // This process is killed within `us`.
  void end_soon(int us, Event event) {
    if (place_ == 0) return;  // it lasts
    page_.places[static_cast<std::size_t>(place_)].may_die.store(true);
    page_.note(event);
    if (!send_signal_later(SIGKILL, dice_.below(us))) raise(SIGKILL);
  }

  // All ranks make the same calls in a turn, chosen by its number. A new process takes the numbers
  // of the others.
  Status turn() {
    std::array<std::int64_t, 4> words{turn_ + 1, phase_, page_.phase.load(), me_->rank()};
    if (Status status = me_->barrier(); !status.ok()) return status;
    const std::int64_t begin_ns = now_ns();
    if (Status status = me_->all_reduce(std::span(words), ReduceOp::max); !status.ok()) {
      return status;
    }
    const std::int64_t took_ns = now_ns() - begin_ns;
    page_.note(calls, 2);
    if (words[3] != me_->ranks() - 1) throw Broken("an all-reduce has lost a rank");
    turn_ = words[0];
    phase_ = static_cast<int>(words[1]);
    page_.small[static_cast<std::size_t>(phase_)].add(took_ns);
    if (words[2] != phase_) return end_phase(static_cast<int>(words[2]));
    Dice dice(options_.seed + static_cast<std::uint64_t>(turn_));
    if (dice.one_in(options_.turns)) strike(dice);
    if (Status status = make_a_call(dice); !status.ok()) return status;
    if (dice.one_in(8)) {
      if (Status status = pass_round(dice); !status.ok()) return status;
    }
    return dice.one_in(32) ? divide(dice) : Status();
  }

  // One rank dies soon, or revokes the communicator.
  void strike(Dice& dice) {
    const bool revokes = dice.one_in(5);
    if (dice.below(me_->ranks()) != me_->rank()) return;
    if (!revokes) return end_soon(2'000, deaths);
    page_.note(revocations);
    me_->revoke();
  }

  // The ranks' timers for their ends have fired when this barrier has passed.
  Status end_phase(int next) {
    sleep_ns(30'000'000);
    Status status = me_->barrier();
    if (status.ok()) next_phase_ = next;
    return status;
  }

  Status make_a_call(Dice& dice) {
    constexpr Collective kKinds[] = {Collective::all_reduce,     Collective::all_reduce,
                                     Collective::all_reduce,     Collective::all_gather,
                                     Collective::reduce_scatter, Collective::all_to_all,
                                     Collective::broadcast,      Collective::reduce,
                                     Collective::gather,         Collective::scatter};
    constexpr DataType kTypes[] = {DataType::f32, DataType::bf16, DataType::u8, DataType::i64};
    CollectiveCase test{.collective = kKinds[dice.below(static_cast<int>(std::size(kKinds)))],
                        .ranks = me_->ranks()};
    // Tokens of 128 elements: mostly few, as in decoding, and sometimes a prompt.
    const int tokens = 1 + dice.below(dice.one_in(8) ? 512 : 16);
    test.count = 128 * static_cast<std::size_t>(tokens);
    test.type = kTypes[dice.below(static_cast<int>(std::size(kTypes)))];
    test.root = dice.below(test.ranks);
    test.seed = dice.next();
    const bool in_place = dice.one_in(3);
    test.in_place = in_place && (test.collective == Collective::all_reduce ||
                                 test.collective == Collective::all_to_all);
    buffers_.fill(test, me_->rank());
    const Call call = call_of(test, buffers_);
    const std::int64_t begin_ns = now_ns();
    const Status status = me_->call(call);
    page_.any[static_cast<std::size_t>(phase_)].add(now_ns() - begin_ns);
    page_.note(calls);
    page_.note(bytes, static_cast<std::int64_t>(test.count * size_of(test.type)));
    if (!status.ok()) return status;
    if (const std::string fault = buffers_.check(); !fault.empty()) {
      throw Broken("rank " + std::to_string(me_->rank()) + ", " + to_string(test) + ": " + fault);
    }
    return {};
  }

  Status pass_round(Dice& dice) {
    const int n = me_->ranks();
    if (n == 1) return {};
    const Rank right = (me_->rank() + 1) % n, left = (me_->rank() + n - 1) % n;
    sent_.assign(static_cast<std::size_t>(1 + dice.below(5'000)), me_->rank());
    got_.assign(sent_.size(), -1);
    const Status status = me_->exchange(std::span<const std::int32_t>(sent_), right,
                                        std::span<std::int32_t>(got_), left);
    page_.note(messages);
    if (!status.ok()) return status;
    const auto is_wrong = [&](std::int32_t word) { return word != left; };
    if (std::any_of(got_.begin(), got_.end(), is_wrong)) throw Broken("a message has wrong data");
    return {};
  }

  Status divide(Dice& dice) {
    auto part = me_->split(dice.below(4) <= me_->rank() ? 1 : 0, -me_->rank());
    if (!part.ok()) return part.status();
    std::int32_t one = 1;
    const Status status = (*part)->all_reduce(std::span(&one, 1));
    page_.note(groups);
    if (status.ok() && one != (*part)->ranks()) throw Broken("a group's sum is wrong");
    return status;
  }

  // After a failed call: the survivors shrink, and grow to all ranks again.
  void go_on_after(const Status& why) {
    const bool is_known =
        why.code() == Code::rank_lost || why.code() == Code::aborted || why.code() == Code::timeout;
    if (!is_known) broken("a call", why);
    if (why.code() == Code::timeout) page_.note(stalls);
    Status last;
    for (int i = 0; i < kAttempts; ++i) {
      const std::int64_t begin_ns = now_ns();
      if (!me_->communicator().health().ok()) {
        auto smaller = me_->shrink();
        if (!smaller.ok()) broken("shrink()", smaller.status());
        me_ = std::move(*smaller);
        page_.shrinks.add(now_ns() - begin_ns);
        page_.note(shrinks);
        continue;
      }
      if (me_->ranks() == options_.ranks) return;
      if (dice_.one_in(12)) end_soon(3'000, deaths_in_grow);
      auto larger = me_->grow(options());
      if (larger.ok()) {
        me_ = std::move(*larger);
        page_.grows.add(now_ns() - begin_ns);
        page_.note(grows);
        return;
      }
      page_.note(failed_grows);
      last = larger.status();
      const Code code = last.code();
      if (code != Code::rank_lost && code != Code::timeout && code != Code::invalid_argument) break;
    }
    broken("the communicator does not grow", last);
  }

  // At the end of a phase.
  void count() {
    const Holdings held = Holdings::now();
    const SoakCounts counts{.blocks = blocks_alive(),
                            .mapped_bytes = mapped_bytes.load(),
                            .descriptors = static_cast<std::int64_t>(held.descriptors),
                            .threads = static_cast<std::int64_t>(held.threads),
                            .shared_mappings = static_cast<std::int64_t>(held.shared_mappings),
                            .address_space = static_cast<std::int64_t>(held.address_space)};
    // An early end leaves phases out.
    for (int p = phase_; p < *next_phase_; ++p) page_.counts[static_cast<std::size_t>(p)] = counts;
  }

  const SoakOptions& options_;
  const std::string name_;
  Page& page_;
  const int place_;
  Dice dice_;  // of this process
  std::unique_ptr<Member> me_;
  CaseBuffers buffers_;
  std::vector<std::int32_t> sent_, got_;
  std::int64_t turn_ = 0;
  int phase_ = 0;
  std::optional<int> next_phase_;  // when all ranks have ended this one
};

int run_worker(SoakWorker worker, Rank rank, Page::Place& place) {
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  set_warning_sink([](std::string_view, std::string_view) {});
  try {
    worker.play(rank);
    return 0;
  } catch (const std::exception& error) {
    std::strncpy(place.broken, error.what(), sizeof(place.broken) - 1);
    return 1;
  }
}

// Computes half of the time.
int compute() {
  for (;;) {
    const std::int64_t until_ns = now_ns() + 20'000'000;
    while (now_ns() < until_ns) {
    }
    sleep_ns(20'000'000);
  }
}

// A tuning table for the processes to come: the costs of another machine.
class TunedCosts {
 public:
  TunedCosts()
      : path_((std::filesystem::temp_directory_path() /
               ("rankine_soak_" + std::to_string(getpid()) + ".json"))
                  .string()) {
    const Costs costs = costs_with({{&Costs::claim_copy_min_bytes, 8192}});
    is_there_ = save_tuning(TuningTable(read_hardware(), "now", {}, {}, costs), path_).ok();
    if (is_there_) setenv("RANKINE_TUNING", path_.c_str(), 1);
  }
  ~TunedCosts() {
    if (!is_there_) return;
    unsetenv("RANKINE_TUNING");
    unlink(path_.c_str());
  }
  TunedCosts(const TunedCosts&) = delete;
  TunedCosts& operator=(const TunedCosts&) = delete;

 private:
  const std::string path_;
  bool is_there_ = false;
};

// Files in which the ranks of this soak have met.
std::vector<std::string> files_left(const std::string& name) {
  std::vector<std::string> left;
  const std::string ours = shared_path(name);
  for (const auto& entry : std::filesystem::directory_iterator(kSharedFolder)) {
    const std::string path = entry.path().string();
    if (path == ours || path.starts_with(ours + ".")) left.push_back(path);
  }
  return left;
}

SoakReport report_of(const Page& page) {
  SoakReport report;
  for (int e = 0; e < kEvents; ++e) {
    const auto i = static_cast<std::size_t>(e);
    report.events.push_back({kEventNames[i], page.events[i].load(std::memory_order_relaxed)});
  }
  for (std::size_t p = 0; p < kSoakPhases; ++p) {
    report.small[p] = page.small[p].latencies();
    report.any[p] = page.any[p].latencies();
  }
  report.shrinks = page.shrinks.latencies();
  report.grows = page.grows.latencies();
  report.counts = page.counts;
  return report;
}

// What the lasting process has more at the end than after the warm-up.
void add_leaks(SoakReport& report, const std::string& name, int last) {
  for (const SoakCount& count : kSoakCounts) {
    const std::int64_t before = report.counts.front().*count.value;
    const std::int64_t after = report.counts[static_cast<std::size_t>(last)].*count.value;
    if (after <= before) continue;
    report.broken.push_back(std::string(count.name) + ": " + std::to_string(before) +
                            " after the warm-up, " + std::to_string(after) + " at the end");
  }
  for (const std::string& path : files_left(name)) report.broken.push_back("left behind: " + path);
}

}  // namespace

Result<SoakReport> soak(const SoakOptions& options) {
  const TunedCosts tuned;
  void* const memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto refused = [](const char* what) {
    return make_error(Code::system,
                      [&] { return std::string(what) + ": " + std::strerror(errno); });
  };
  if (memory == MAP_FAILED) return refused("mmap");
  const std::unique_ptr<Page, void (*)(Page*)> owner(
      new (memory) Page, [](Page* page) { munmap(page, sizeof(Page)); });
  Page& page = *owner;
  const std::string name = "soak_" + std::to_string(getpid());
  std::vector<ChildProcess> load, ranks(static_cast<std::size_t>(options.ranks));
  std::vector<int> lives(ranks.size(), 0);
  for (unsigned core = 0; options.other_load && core < std::thread::hardware_concurrency();
       ++core) {
    load.emplace_back(compute);
  }
  const std::int64_t begin_ns = now_ns();
  const auto seconds = [&] { return static_cast<double>(now_ns() - begin_ns) / 1e9; };
  SoakReport report;
  std::size_t done = 0;
  bool goes_on = true;
  double told = 0;
  while (done < ranks.size() && report.broken.empty()) {
    const double warm = options.seconds / 10, share = (options.seconds - warm) / 4;
    const int phase = seconds() < warm ? 0 : 1 + static_cast<int>((seconds() - warm) / share);
    page.phase.store(goes_on ? std::min(phase, kSoakPhases) : kSoakPhases);
    done = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Page::Place& place = page.places[i];
      std::optional<int> status;
      if (lives[i] > 0) status = ranks[i].wait({});
      if (status && *status == 0) ++done;
      if (lives[i] > 0 && (!status || *status == 0)) continue;
      if (status && !place.may_die.load()) {
        report.broken.push_back("process " + std::to_string(i) + " ended with " +
                                describe_end(*status) + ": " + place.broken);
        continue;
      }
      const Rank rank = lives[i] == 0 ? static_cast<Rank>(i) : -1;
      place.may_die.store(false);
      place.is_new.store(rank < 0);
      ranks[i] = ChildProcess([&, life = lives[i]] {
        return run_worker(SoakWorker(options, name, page, static_cast<int>(i), life), rank, place);
      });
      if (!ranks[i].runs()) return refused("fork");
      ++lives[i];
    }
    if (options.progress && seconds() - told >= 0.1) {
      told = seconds();
      goes_on = options.progress(told, report_of(page)) && goes_on;
    }
    sleep_ns(2'000'000);
  }
  std::vector<std::string> broken = std::move(report.broken);
  ranks.clear();
  report = report_of(page);
  report.broken = std::move(broken);
  if (!report.broken.empty()) return report;
  add_leaks(report, name, kSoakPhases - 1);
  return report;
}

}  // namespace rankine::faults
