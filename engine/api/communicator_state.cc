#include "engine/api/communicator_state.h"

#include <pthread.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "algorithms/catalogue.h"
#include "engine/api/member_state.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/files.h"
#include "engine/run/machine.h"
#include "numa/memory.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// The share of a page for a rank with a separate page: a divisor of the page size, so that no
// rank's lines cross a page boundary.
constexpr std::size_t kSpread = 512;
static_assert(sizeof(RankLines) <= kSpread);

ArenaOptions one_mapping(std::span<const ArenaOptions> arenas, std::size_t bytes) {
  ArenaOptions options;
  options.huge_pages = false;
  options.chunk_bytes = bytes;
  options.lock = std::any_of(arenas.begin(), arenas.end(), [](const auto& a) { return a.lock; });
  return options;
}

bool on_one_node(std::span<const ArenaOptions> arenas) {
  return std::all_of(arenas.begin(), arenas.end(),
                     [&](const auto& a) { return a.node == arenas.front().node; });
}

}  // namespace

PlacedLines::PlacedLines(int ranks, std::span<const ArenaOptions> arenas)
    : bindings_(static_cast<std::size_t>(ranks)) {
  const auto n = static_cast<std::size_t>(ranks);
  const bool together = on_one_node(arenas);
  if (!together) memory_.stride = page_bytes() + kSpread;
  const std::size_t bytes = n * memory_.stride;
  arena_ = Arena(one_mapping(arenas, bytes));
  memory_.base = static_cast<std::byte*>(arena_.allocate(bytes, page_bytes()));
  if (memory_.base == nullptr) throw std::bad_alloc();
  if (arenas.empty()) return;
  if (together) {
    if (arenas.front().node == kAnyNode) return;
    std::fill(bindings_.begin(), bindings_.end(),
              prefer_node(memory_.base, bytes, arenas.front().node));
    return;
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (arenas[r].node == kAnyNode) continue;
    const std::size_t page = r * memory_.stride / page_bytes() * page_bytes();
    bindings_[r] = prefer_node(memory_.base + page, page_bytes(), arenas[r].node);
  }
}

// Mailboxes and boards, in which ranks post to each other. A plan that first needs them makes them.

MailboxShape mailbox_shape(int ranks) {
  const auto slots_for = [](std::size_t payload) {
    return static_cast<std::uint32_t>(stride_for(payload));
  };
  if (ranks <= 2) return {kSlots, slots_for(2048)};
  if (ranks <= 4) return {kSlots, slots_for(1024)};
  if (ranks <= 8) return {kSlots, slots_for(512)};
  if (ranks <= 16) return {kSlots, slots_for(256)};
  if (ranks <= 32) return {kSlots, slots_for(64)};
  return {kSlots / 2, slots_for(kSmallPayload)};
}

ProcessRanks::Posts posts_of_processes(int ranks, const Costs& costs) {
  const MailboxShape mail = mailbox_shape(ranks);
  // There are as many pairs as mailboxes, so the mailboxes of pairs are equally small.
  const auto among = [&](int few) {
    return PostsShape{.board_stride = board_stride(board_bytes(few, costs)),
                      .slots = mail.slots,
                      .slot_stride = mail.stride,
                      .clock_channel = NetworkClock::kChannelBytes};
  };
  return {.all = among(ranks), .pairs = among(2)};
}

namespace {

void set_up(const Mailbox& mailbox, std::uint32_t first_count) {
  for (std::uint32_t i = 0; i < mailbox.capacity; ++i) {
    (new (mailbox.slots + std::size_t{i} * mailbox.stride) PostHeader)
        ->flag.store(first_count, std::memory_order_relaxed);
  }
}

void set_up(Counter* credit, std::uint32_t first_count) {
  (new (credit) Counter)->value.store(first_count, std::memory_order_relaxed);
}

// Sets up the halves that lie in the rank's own memory.
void set_up_halves(int ranks, std::size_t rank, const Board& board, std::uint32_t first_count) {
  for (const std::uint32_t number : {0U, 1U}) {
    if (half_place(ranks, rank, number).rank != rank) continue;
    (new (&board.half(number)) PostHeader)->flag.store(first_count, std::memory_order_relaxed);
  }
}

}  // namespace

void CommunicatorShared::share_posts() {
  const Rank near = wire != nullptr ? wire->here.front() : 0;
  for (Rank q = 0; q < ranks; ++q) {
    const auto i = static_cast<std::size_t>(q);
    boards[i] = processes->board(q);
    for (Rank to = 0; to < ranks; ++to) {
      if (are_far(q, to)) continue;
      mailboxes[i * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to)] =
          processes->mailbox(q, to);
    }
  }
  for (Rank r = 0; r < ranks; ++r) {
    if (!processes->sets_up(r) || are_far(r, near)) continue;
    for (Rank q = 0; q < ranks; ++q) {
      if (are_far(q, r)) continue;
      set_up(processes->mailbox(q, r), first_count);
      set_up(processes->mailbox(r, q).credit, first_count);
    }
    set_up_halves(ranks, static_cast<std::size_t>(r), processes->board(r), first_count);
  }
}

Status CommunicatorShared::provide_mailboxes(const Plan& plan) {
  if (processes != nullptr) return {};
  for (Rank from = 0; from < plan.ranks; ++from) {
    for (const Traffic& traffic : plan.rank[static_cast<std::size_t>(from)].traffic) {
      if (traffic.sent == 0 || are_far(from, traffic.peer)) continue;
      const auto to = static_cast<std::size_t>(traffic.peer);
      Mailbox& mailbox = mailboxes[static_cast<std::size_t>(from * ranks) + to];
      if (mailbox.slots != nullptr) continue;
      auto* slots =
          static_cast<std::byte*>(arenas[to].allocate(std::size_t{mail.slots} * mail.stride));
      // The sender reads the credit and the reader writes it. It has a separate line, near the rank
      // that waits for it, like the slots.
      void* credit = arenas[static_cast<std::size_t>(from)].allocate(sizeof(Counter));
      if (slots == nullptr || credit == nullptr) {
        return {Code::out_of_memory,
                "no memory for mailboxes of " + rank_control.name(static_cast<Rank>(to)) + ": " +
                    std::to_string(std::size_t{mail.slots} * mail.stride) + " bytes"};
      }
      mailbox = {slots, mail.stride, static_cast<Counter*>(credit), mail.slots};
      // Arena memory is zeroed, so a count of 0 needs no store: the pages stay untouched until the
      // ranks use them, in parallel.
      if (first_count == 0) continue;
      set_up(mailbox.credit, first_count);
      set_up(mailbox, first_count);
    }
  }
  return {};
}

Status CommunicatorShared::provide_boards(const Plan& plan) {
  if (!uses_boards(plan) || processes != nullptr) return {};
  const std::uint32_t stride = board_stride(board_bytes(ranks, costs));
  if (boards.front().halves[1] != nullptr) return {};
  const std::size_t bytes = halves_of_a_rank(ranks) * stride;
  // halves[0] of each board is the beginning of the rank's own halves (half_place()).
  for (std::size_t r = 0; r < boards.size(); ++r) {
    std::byte*& own = boards[r].halves[0];
    if (own != nullptr) continue;  // from an earlier attempt, in which another board failed
    own = static_cast<std::byte*>(arenas[r].allocate(bytes));
    if (own == nullptr) {
      return {Code::out_of_memory, "no memory for the board of " +
                                       rank_control.name(static_cast<Rank>(r)) + ": " +
                                       std::to_string(bytes) + " bytes"};
    }
  }
  for (std::size_t r = 0; r < boards.size(); ++r) {
    boards[r] = board_of(ranks, r, stride, [this](std::size_t of) { return boards[of].halves[0]; });
    set_up_halves(ranks, r, boards[r], first_count);
  }
  return {};
}

PayloadMemory::~PayloadMemory() {
  if (const auto owner = owner_.lock()) owner->free(base_);
}

PayloadMemory& PayloadMemory::operator=(PayloadMemory&& other) noexcept {
  PayloadMemory taken(std::move(other));
  std::swap(owner_, taken.owner_);
  std::swap(base_, taken.base_);
  return *this;
}

Status CommunicatorShared::record_calls(std::string_view name, std::string_view group) {
  if (!recorder.has_times()) return {};
  std::vector<Rank> here;
  for (Rank r = 0; wire == nullptr && r < ranks; ++r) {
    if (!is_elsewhere(r)) here.push_back(r);
  }
  if (wire != nullptr) here = wire->here;
  auto file = CallSiteFile::make(name, group, ranks, here);
  if (!file.ok()) return file.status();
  call_sites = std::move(*file);
  for (std::size_t i = 0; i < here.size(); ++i) {
    recorder.track_of(here[i]).timer.figures = &call_sites->calls(i);
  }
  return {};
}

Status Member::set_call_site(std::string_view name) {
  MemberState& s = *state_;
  if (s.shared->forked()) return forked_status();
  SharedText& site = s.shared->rank_control.slow_waits(rank()).site;
  site.set(name);
  for (const auto* ends : {&s.sending, &s.receiving}) {
    for (const auto& end : *ends) {
      if (end != nullptr) static_cast<void>(end->set_call_site(name));  // forked as this one
    }
  }
  if (s.track->timer.figures == nullptr) return {};
  const ProgressEngine::Turn turn(*s.progress_engine);  // the helper begins calls, too
  s.track->call_site = s.track->timer.figures->site_of(site);
  return {};
}

std::string Member::call_site() const {
  return state_->shared->rank_control.slow_waits(rank()).site.get();
}

namespace {

Status check_elements(std::size_t n, std::size_t element_bytes) {
  const std::size_t most =
      std::size_t{PTRDIFF_MAX} / element_bytes;  // a pointer difference must fit
  if (n <= most) return {};
  return invalid_argument("n is " + std::to_string(n) + "; allowed are up to " +
                          std::to_string(most) + " elements of " + std::to_string(element_bytes) +
                          " bytes");
}

}  // namespace

Result<PayloadMemory> Payloads::allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                         std::size_t element_bytes) {
  if (Status status = check_elements(n, element_bytes); !status.ok()) return status;
  ArenaOptions options = near;
  options.chunk_bytes = 1;  // grows to the size needed
  Arena arena(options);
  void* const base = arena.allocate(n * element_bytes);
  if (base == nullptr) {
    return Status(Code::out_of_memory, "n is " + std::to_string(n) + "; no memory for " +
                                           std::to_string(n * element_bytes) + " bytes near rank " +
                                           std::to_string(rank) + ": " +
                                           std::strerror(arena.error()));
  }
  const std::lock_guard lock(mutex_);
  in_use_.emplace(base, std::move(arena));
  return PayloadMemory(weak_from_this(), base);
}

Result<PayloadMemory> Payloads::allocate_shared(const std::shared_ptr<ProcessRanks>& processes,
                                                Rank rank, std::size_t n,
                                                std::size_t element_bytes) {
  if (Status status = check_elements(n, element_bytes); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  auto base = processes->payloads(rank).allocate(n * element_bytes);
  if (!base.ok()) {
    return Status(base.status().code(), "n is " + std::to_string(n) + " of rank " +
                                            std::to_string(rank) + ": " + base.status().text());
  }
  processes_ = processes;
  rank_ = rank;
  shared_.insert(*base);
  return PayloadMemory(weak_from_this(), *base);
}

Payloads::~Payloads() {
  if (!home_.is_this()) return;
  for (const void* base : shared_) processes_->payloads(rank_).free(base);
}

void Payloads::free(const void* base) noexcept {
  if (!home_.is_this()) return;
  const std::lock_guard lock(mutex_);
  if (shared_.erase(base) > 0) {
    processes_->payloads(rank_).free(base);
  } else {
    in_use_.erase(base);
  }
}

void Payloads::add_to(RankMemory& memory) const {
  const std::lock_guard lock(mutex_);
  for (const void* base : shared_) {
    const std::size_t bytes = processes_->payloads(rank_).bytes_of(base);
    memory.payloads.bytes += bytes;
    memory.payloads.ranges.push_back({const_cast<void*>(base), bytes});
    memory.huge_pages.add(processes_->payloads(rank_).huge_pages_of(base));
  }
  for (const auto& [base, arena] : in_use_) {
    memory.payloads.bytes += arena.bytes_reserved();
    for (const MemoryRange& range : arena.chunks()) memory.payloads.ranges.push_back(range);
    memory.binding.add(arena.binding());
    memory.huge_pages.add(arena.huge_pages());
    memory.locking.add(arena.locking());
  }
}

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

// "?" for algorithms outside the catalogue, or if a call that began meanwhile has torn the record.
std::string_view algorithm_of(Fingerprint print) {
  const auto line = static_cast<std::size_t>(print.algorithm());
  return line < catalogue().size() ? catalogue()[line].name : "?";
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

Json json_of(const FlightRecorder::Call& call, std::int64_t since_ns) {
  Json json = {{"call", call.number},
               {"what", describe(call.fingerprint)},
               {"algorithm", algorithm_of(call.fingerprint)},
               {"root", call.fingerprint.root()}};
  if (call.begin_ns != 0) json["began_us"] = microseconds(call.begin_ns - since_ns);
  if (call.end_ns != 0) json["took_us"] = microseconds(call.end_ns - call.begin_ns);
  return json;
}

Json json_of(const SlowWait& wait, std::int64_t since_ns) {
  Json json = {{"call", wait.call},
               {"for", wait.peer},
               {"round", wait.round},
               {"began_us", microseconds(wait.begin_ns - since_ns)}};
  if (wait.end_ns != 0) {
    json["took_us"] = microseconds(wait.end_ns - wait.begin_ns);
    json["end"] = name_of(wait.end);
  }
  return json;
}

// The earliest time recorded.
std::int64_t begin_of(const FlightRecord& record) {
  std::int64_t since_ns = std::numeric_limits<std::int64_t>::max();
  for (const FlightRecord::RankRecord& rank : record.ranks) {
    for (const FlightRecorder::Call& call : rank.calls) {
      if (call.begin_ns != 0) since_ns = std::min(since_ns, call.begin_ns);
    }
    for (const SlowWait& wait : rank.waits) since_ns = std::min(since_ns, wait.begin_ns);
  }
  return since_ns;
}

void write_file(const FlightRecord& record, const std::string& path) noexcept {
  try {
    std::string error;
    {
      WholeFile file(path);
      write_json(record, [&](std::string_view text) { file.append(text); });
      file.append("\n");
      error = file.finish();
    }
    if (error.empty()) return;
    warn_once("api.flight_record",
              "RANKINE_FLIGHT_RECORD is '" + path + "', which cannot be written: " + error);
  } catch (const std::exception& error) {
    warn_once("api.flight_record", error.what());
  }
}

// Starts a thread with all signals blocked, because signals belong to the program's threads.
template <class Body>
void start_thread(const Body& body) {
  struct NoSignals {
    sigset_t before;
    NoSignals() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } const no_signals;
  std::thread(body).detach();
}

}  // namespace

void write_json(const FlightRecord& record, const std::function<void(std::string_view)>& append) {
  const Status& health = record.health;
  append("{\n \"health\": " +
         dump(health.ok() ? "ok" : std::string(name_of(health.code())) + ": " + health.text()) +
         ",\n \"ranks\": [");
  const std::int64_t since_ns = begin_of(record);
  for (std::size_t r = 0; r < record.ranks.size(); ++r) {
    const FlightRecord::RankRecord& of_rank = record.ranks[r];
    Json rank = {{"rank", r},
                 {"calls", of_rank.calls.empty() ? 0 : of_rank.calls.back().number},
                 {"state", of_rank.state},
                 {"last", Json::array()},
                 {"slow_waits", Json::array()},
                 {"trials", Json::array()}};
    for (const auto& call : of_rank.calls) rank["last"].push_back(json_of(call, since_ns));
    for (const auto& wait : of_rank.waits) rank["slow_waits"].push_back(json_of(wait, since_ns));
    for (std::size_t i = 0; i < kTrialClasses; ++i) {
      const FormFigures& trial = of_rank.trials[i];
      Json took = Json::object();
      for (std::size_t form = 0; form < kForms; ++form) {
        if (trial.took_ns[form] != 0)
          took[std::string(name_of(static_cast<Form>(form)))] = microseconds(trial.took_ns[form]);
      }
      if (took.empty()) continue;
      const TrialKind& kind = kTrialKinds[i / kTrialSizes];
      rank["trials"].push_back({{"collective", name_of(kind.collective)},
                                {"bytes", kTrialLeastBytes << i % kTrialSizes},
                                {"in_place", kind.in_place},
                                {"took_us", took},
                                {"form", name_of(trial.form)}});
    }
    append((r == 0 ? "\n" : ",\n") + dump(rank));
  }
  append("\n ]\n}");
}

void FlightRecordFile::leave(const std::function<FlightRecord()>& make) noexcept {
  if (path_.empty() || begun_.exchange(true)) return;
  try {
    const auto record = std::make_shared<const FlightRecord>(make());
    try {
      start_thread([record, path = path_, done = done_] {
        write_file(*record, path);
        done->store(true, std::memory_order_release);  // pairs with wait()
      });
      return;
    } catch (const std::system_error&) {  // no more threads
      write_file(*record, path_);
    }
  } catch (const std::exception& error) {
    warn_once("api.flight_record", error.what());
  }
  done_->store(true, std::memory_order_release);  // pairs with wait()
}

void FlightRecordFile::wait(std::chrono::nanoseconds most) const noexcept {
  // Relaxed: a thread that has begun the write itself sees it; other threads see it soon enough.
  if (!begun_.load(std::memory_order_relaxed)) return;
  const std::int64_t until_ns = now_ns() + most.count();
  std::int64_t nap_ns = 20'000;
  while (!done_->load(std::memory_order_acquire) && now_ns() < until_ns) {  // pairs with leave()
    sleep_ns(nap_ns);
    nap_ns = std::min<std::int64_t>(2 * nap_ns, 2'000'000);
  }
}

}  // namespace rankine
