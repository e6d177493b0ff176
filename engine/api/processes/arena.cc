#include "engine/api/processes/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "algorithms/catalogue.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/run/flight_recorder.h"
#include "engine/run/mailbox.h"
#include "numa/memory.h"

namespace rankine {

void SharedEnding::end(const Status& reason) noexcept {
  bool over = false;
  if (!ended_.compare_exchange_strong(over, true, std::memory_order_seq_cst)) return;
  say(reason.code(), reason.text().c_str());
}

// 0 if code and text cannot come from say().
std::uint64_t SharedEnding::reason_checksum() const noexcept {
  const std::size_t length = strnlen(text_, sizeof(text_));
  if (code_ == 0 || code_ >= kCodes || length == sizeof(text_)) return 0;
  std::uint64_t hash = mixed(kSplitMixStep, code_);
  for (std::size_t i = 0; i < length; ++i) hash = mixed(hash, static_cast<unsigned char>(text_[i]));
  return hash | 1;
}

void SharedEnding::say(Code code, const char* text) noexcept {
  code_ = static_cast<std::uint32_t>(code);
  const std::size_t length = std::min(std::strlen(text), sizeof(text_) - 1);
  std::memcpy(text_, text, length);
  text_[length] = '\0';
  check_ = reason_checksum();
  said_.store(true, std::memory_order_release);  // pairs with why()
}

Status SharedEnding::why() const noexcept {
  constexpr std::int64_t kPatienceNs = 200'000'000;
  const std::int64_t until = now_ns() + kPatienceNs;
  while (!said_.load(std::memory_order_acquire)) {  // pairs with say()
    if (now_ns() >= until) {
      return make_error(Code::rank_lost, [] {
        return "the process that ended the communicator has ended before it wrote its error";
      });
    }
    sleep_ns(20'000);
  }
  const std::uint64_t check = check_;
  if (check != 0 && check == reason_checksum()) {
    return make_error(static_cast<Code>(code_), [this] { return std::string(text_); });
  }
  return make_error(Code::system, [] {
    return "a program has written over the memory that processes share, and over the error that "
           "ended the communicator; end its processes, and make a new communicator";
  });
}

}  // namespace rankine

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace rankine {
namespace {

// Two regions that neither the kernel nor libraries choose; the first one is also free under the
// thread and address sanitizers.
constexpr std::uint64_t kHigh = 0x7e9000000000, kLow = 0x600000000000;
constexpr int kBases = ReservedBases::kBases, kHighBases = 28;
// Enough to find a common address although each process has used others, and few enough to leave
// some for communicators that are being made.
constexpr int kEnough = 16;

std::uint64_t base_of(int i) {
  return i < kHighBases ? kHigh + static_cast<std::uint64_t>(i) * kProcessSpan
                        : kLow + static_cast<std::uint64_t>(i - kHighBases) * kProcessSpan;
}

void* address_of(int i) { return reinterpret_cast<void*>(base_of(i)); }

// The i-th address to try.
int base_in_turn(int i, std::uint64_t seed) {
  return static_cast<int>((seed % kBases + static_cast<std::uint64_t>(i)) % kBases);
}

// Adds parts one after the other; each begins at a cache line.
struct Parts {
  std::size_t end = 0;
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = whole_lines(end);
    end = begin + bytes;
    return begin;
  }
};

}  // namespace

CallsLayout CallsLayout::of(int ranks, std::size_t head_bytes, const PostsShape& shape) {
  const auto n = static_cast<std::size_t>(ranks);
  CallsLayout out;
  Parts common{head_bytes};
  out.lines = common.add(n * sizeof(RankLines));
  out.slow_waits = common.add(n * sizeof(SlowWaits));
  out.common_bytes = whole_pages(common.end);
  Parts own;
  out.mailbox_bytes = std::size_t{shape.slots} * shape.slot_stride;
  out.board = own.add(halves_of_a_rank(ranks) * shape.board_stride);
  out.slots = own.add(n * out.mailbox_bytes);
  out.credits = own.add(n * kCacheLine);
  out.records = own.add(FlightRecorder::kBytesPerRank);
  out.rank_bytes = whole_pages(own.end);
  out.clock = out.of_rank(ranks);
  out.clock_bytes = whole_pages(kCacheLine + n * n * shape.clock_channel);
  out.bytes = out.clock + out.clock_bytes;
  return out;
}

ProcessLayout ProcessLayout::of(int ranks, std::size_t lobby_bytes, const PostsShape& calls,
                                const PostsShape& messages, const std::vector<bool>& far) {
  const auto n = static_cast<std::size_t>(ranks);
  ProcessLayout out;
  out.ranks = ranks;
  Parts head{lobby_bytes};
  std::size_t letters = 0;
  for (const Algorithm& entry : catalogue()) letters += entry.name.size() + 1;
  out.names = head.add(letters);
  out.pairs_made = head.add(n * n * sizeof(Atomic<PairMade>));
  out.calls = CallsLayout::of(ranks, head.end, calls);
  out.pair = CallsLayout::of(2, sizeof(SharedEnding), messages);
  out.pairs = out.calls.bytes;
  std::size_t near = 0;
  for (const bool is_far : far) out.places.push_back(is_far ? 0 : static_cast<int>(near++));
  if (far.empty()) near = n;
  out.own = whole_huge_pages(out.pairs + (far.empty() ? n * n * out.pair.bytes : 0));
  const std::size_t four_pages = 4 * kHugePage;
  out.own_bytes = (kProcessSpan - out.own) / near / four_pages * four_pages;
  return out;
}

void ReservedBases::let_go() noexcept {
  for (int i = 0; i < kBases; ++i) {
    if (reserved_.test(static_cast<std::size_t>(i))) munmap(address_of(i), kProcessSpan);
  }
  reserved_.reset();
}

ReservedBases::Set ReservedBases::reserve(std::uint64_t seed) noexcept {
  int found = 0;
  for (int i = 0; i < kBases && found < kEnough; ++i) {
    const int base = base_in_turn(i, seed);
    void* const at = mmap(address_of(base), kProcessSpan, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) continue;
    if (at != address_of(base)) {  // this kernel does not know the flag
      munmap(at, kProcessSpan);
      continue;
    }
    reserved_.set(static_cast<std::size_t>(base));
    ++found;
  }
  return reserved_;
}

std::byte* ReservedBases::map(const Set& common, std::uint64_t seed, int file) noexcept {
  errno = 0;
  for (int i = 0; i < kBases; ++i) {
    const int base = base_in_turn(i, seed);
    const auto bit = static_cast<std::size_t>(base);
    if (!common.test(bit) || !reserved_.test(bit)) continue;
    // If a program locks all its mappings (mlockall), the kernel takes pages of a readable mapping
    // at once. A mapping that becomes readable later gets and locks its pages when they are needed.
    void* const at = mmap(address_of(base), kProcessSpan, PROT_NONE,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
    if (at == MAP_FAILED || mprotect(at, kProcessSpan, PROT_READ | PROT_WRITE) != 0) return nullptr;
    reserved_.reset(bit);
    let_go();
    return static_cast<std::byte*>(at);
  }
  return nullptr;
}

Status take_pages(const KeptFile& file, std::byte* at, std::size_t offset, std::size_t bytes,
                  const std::string& what) {
  const auto refused = [&](int error) {
    return make_error(error == ENOSPC || error == ENOMEM ? Code::out_of_memory : Code::system, [&] {
      return what + ": /dev/shm has no " + std::to_string(bytes) +
             " bytes: " + std::string(std::strerror(error));
    });
  };
  const int number = file.number();
  if (number < 0) {
    if (bytes == 0 || madvise(at, whole_pages(bytes), MADV_POPULATE_WRITE) == 0) return {};
    if (errno == EFAULT) return refused(ENOSPC);  // a store would raise SIGBUS
    if (errno != EINVAL) return refused(errno);
    return make_error(Code::system, [&] {
      return what + ": the program has closed the descriptor of the memory that processes share, " +
             "and this kernel (before 5.14) gives no pages without it; close only " +
             "descriptors that the program has opened";
    });
  }
  // Linux before 6.10 undoes an interrupted fallocate. A program with a timer faster than the
  // allocation of these pages would never get them in one call, so ask for fewer each time.
  std::size_t at_once = bytes;
  for (std::size_t taken = 0; taken < bytes;) {
    at_once = std::min(at_once, bytes - taken);
    if (fallocate(number, 0, static_cast<off_t>(offset + taken), static_cast<off_t>(at_once)) ==
        0) {
      taken += at_once;
      continue;
    }
    if (errno != EINTR) return refused(errno);
    at_once = std::max(at_once / 2, std::min(at_once, page_bytes()));
  }
  return {};
}

void give_pages_back(const KeptFile& file, std::byte* at, std::size_t offset,
                     std::size_t bytes) noexcept {
  const int number = file.number();
  const bool given = number >= 0
                         ? fallocate(number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                     static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                         : madvise(at, bytes, MADV_REMOVE) == 0;
  // Locked memory cannot be given back.
  if (!given) std::memset(at, 0, bytes);
}

}  // namespace rankine
