#include "numa/memory.h"

#include <fmt/core.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <utility>

#include "numa/refusals.h"
#include "numa/system_calls.h"

namespace rankine {
namespace {

constexpr char kDirectory[] = "/sys/kernel/mm/transparent_hugepage/";
constexpr std::size_t kUsualHugePageBytes = std::size_t{2} << 20;

}  // namespace

std::size_t page_bytes() noexcept {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 4096;
}

std::size_t huge_page_bytes(const std::string& root) {
  std::ifstream file(root + kDirectory + "hpage_pmd_size");
  std::size_t bytes = 0;
  const bool is_power_of_two = file >> bytes && bytes != 0 && (bytes & (bytes - 1)) == 0;
  return is_power_of_two && bytes > page_bytes() ? bytes : kUsualHugePageBytes;
}

bool huge_pages_switched_off(const std::string& root) {
  std::ifstream file(root + kDirectory + "enabled");
  std::string line;  // "always [madvise] never": the brackets mark the mode in force
  return std::getline(file, line) && line.find("[never]") != std::string::npos;
}

std::size_t Residency::resident_bytes() const {
  std::size_t sum = 0;
  for (const auto& [node, bytes] : bytes_on_node) sum += bytes;
  return sum;
}

std::size_t Residency::bytes_elsewhere(int node) const {
  std::size_t sum = 0;
  for (const auto& [number, bytes] : bytes_on_node) sum += number == node ? 0 : bytes;
  return sum;
}

void Residency::add(const Residency& other) {
  for (const auto& [node, bytes] : other.bytes_on_node) bytes_on_node[node] += bytes;
  untouched_bytes += other.untouched_bytes;
  if (error == 0) error = other.error;
}

Residency residency_of(const MemoryRange& range) {
  Residency result;
  if (range.bytes == 0) return result;
  const std::size_t page = page_bytes();
  auto at = reinterpret_cast<std::uintptr_t>(range.base) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(range.base) + range.bytes;
  std::array<void*, 512> pages;
  std::array<int, 512> status;
  while (at < end) {
    std::size_t count = 0;
    for (; count < pages.size() && at < end; ++count, at += page) {
      pages[count] = reinterpret_cast<void*>(at);
    }
    status.fill(-ENOENT);
    if (system_calls().move_pages(0, count, pages.data(), nullptr, status.data(), 0) < 0) {
      return {{}, 0, errno};
    }
    for (std::size_t i = 0; i < count; ++i) {
      // Negative: no page yet (ENOENT), or the shared zero page (EFAULT). ENOENT also occurs for
      // pages that automatic NUMA balancing hides for a while to detect their readers; it does so
      // only if no node was requested.
      if (status[i] >= 0) {
        result.bytes_on_node[status[i]] += page;
      } else {
        result.untouched_bytes += page;
      }
    }
  }
  return result;
}

Residency residency_of(const std::vector<MemoryRange>& ranges) {
  Residency sum;
  for (const MemoryRange& range : ranges) sum.add(residency_of(range));
  return sum;
}

std::string to_string(const Residency& residency) {
  if (residency.error != 0) {
    return fmt::format("unknown: move_pages: {}", std::strerror(residency.error));
  }
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [node, bytes] : residency.bytes_on_node) {
    add(fmt::format("node {}: {} KiB", node, bytes / 1024));
  }
  if (residency.untouched_bytes > 0) {
    add(fmt::format("{} KiB untouched", residency.untouched_bytes / 1024));
  }
  return text.empty() ? "nothing" : text;
}

namespace {

constexpr std::size_t kBitsPerWord = std::numeric_limits<unsigned long>::digits;

// 0 or the errno.
int set_policy(void* base, std::size_t bytes, int mode, const NodeSet& nodes) noexcept {
  std::array<unsigned long, kMaxNodes / kBitsPerWord> mask{};
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node]) mask[node / kBitsPerWord] |= 1UL << (node % kBitsPerWord);
  }
  // The kernel reads one bit less than the given number: hence + 1.
  return system_calls().mbind(base, bytes, mode, mask.data(), kMaxNodes + 1, 0) == 0 ? 0 : errno;
}

Enforcement refuse(const char* key, const char* what, int error, const char* then) noexcept {
  char text[160];
  std::snprintf(text, sizeof(text), "%s: %s; %s", what, std::strerror(error), then);
  warn_once(key, text);
  return Enforcement::refusal(error, text);
}

}  // namespace

Enforcement prefer_node(void* base, std::size_t bytes, int node) noexcept {
  int error = EINVAL;
  if (node >= 0 && node < kMaxNodes) {
    error = set_policy(base, bytes, MPOL_PREFERRED, NodeSet().set(static_cast<std::size_t>(node)));
  }
  if (error == 0) return Enforcement::done();
  char what[64];
  std::snprintf(what, sizeof(what), "memory not bound to node %d: mbind", node);
  return refuse("numa.mbind", what, error, "first touch decides");
}

Enforcement interleave_over(void* base, std::size_t bytes, const NodeSet& nodes) noexcept {
  const int error = nodes.none() ? EINVAL : set_policy(base, bytes, MPOL_INTERLEAVE, nodes);
  if (error == 0) return Enforcement::done();
  return refuse("numa.mbind", "memory not interleaved: mbind", error, "first touch decides");
}

Enforcement lock_in_memory(void* base, std::size_t bytes) noexcept {
  if (system_calls().mlock2(base, bytes, MLOCK_ONFAULT) == 0) return Enforcement::done();
  return refuse("numa.mlock", "memory not locked: mlock2", errno, "it may be swapped out");
}

struct Arena::Chunk {
  void* base;
  std::size_t bytes;
  Chunk* older;
};

namespace {

bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Smallest multiple of the power of two `unit` that is >= n; 0 on overflow.
std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) & ~(unit - 1); }

// Bytes from `p` to the next multiple of the power of two `unit`.
std::size_t gap_before(const char* p, std::size_t unit) {
  return (unit - reinterpret_cast<std::uintptr_t>(p) % unit) % unit;
}

std::size_t huge_page_bytes_once() noexcept {
  static const std::size_t bytes = [] {
    try {
      return huge_page_bytes();
    } catch (...) {
      return std::size_t{2} << 20;
    }
  }();
  return bytes;
}

bool huge_pages_switched_off_now() noexcept {
  try {
    return huge_pages_switched_off();
  } catch (...) {
    return false;  // no memory for the check: rely on madvise
  }
}

Enforcement refuse(const char* key, int error, const char* text) noexcept {
  warn_once(key, text);
  return Enforcement::refusal(error, text);
}

}  // namespace

Arena::Arena(const ArenaOptions& options) noexcept
    : options_(options), next_chunk_bytes_(std::max<std::size_t>(options.chunk_bytes, 1)) {}

Arena::~Arena() { release(); }

Arena::Arena(Arena&& other) noexcept
    : options_(other.options_), next_chunk_bytes_(other.next_chunk_bytes_) {
  *this = std::move(other);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  options_ = other.options_;
  chunks_ = std::exchange(other.chunks_, nullptr);
  cursor_ = std::exchange(other.cursor_, nullptr);
  end_ = std::exchange(other.end_, nullptr);
  next_chunk_bytes_ = other.next_chunk_bytes_;
  bytes_used_ = std::exchange(other.bytes_used_, 0);
  bytes_reserved_ = std::exchange(other.bytes_reserved_, 0);
  error_ = std::exchange(other.error_, 0);
  binding_ = std::exchange(other.binding_, {});
  huge_pages_ = std::exchange(other.huge_pages_, {});
  locking_ = std::exchange(other.locking_, {});
  return *this;
}

void Arena::release() noexcept {
  while (chunks_ != nullptr) {
    Chunk* const chunk = std::exchange(chunks_, chunks_->older);
    system_calls().munmap(chunk->base, chunk->bytes);
    delete chunk;
  }
  cursor_ = end_ = nullptr;
}

std::vector<MemoryRange> Arena::chunks() const {
  std::vector<MemoryRange> ranges;
  for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->older) {
    ranges.push_back({chunk->base, chunk->bytes});
  }
  return ranges;
}

void* Arena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (!is_power_of_two(alignment)) {
    error_ = EINVAL;
    return nullptr;
  }
  alignment = std::max(alignment, kCacheLineBytes);
  const std::size_t padded = round_up(std::max<std::size_t>(bytes, 1), kCacheLineBytes);
  if (padded == 0) {  // overflow
    error_ = ENOMEM;
    return nullptr;
  }
  const auto fits = [&] {
    if (cursor_ == nullptr) return false;
    const auto room = static_cast<std::size_t>(end_ - cursor_);
    const auto gap = gap_before(cursor_, alignment);
    return gap <= room && padded <= room - gap;
  };
  if (!fits()) {
    // A chunk begins on a page; only a coarser alignment can need a gap in front.
    const std::size_t gap = alignment > page_bytes() ? alignment : 0;
    if (padded > std::numeric_limits<std::size_t>::max() - gap) {
      error_ = ENOMEM;
      return nullptr;
    }
    if (!grow(padded + gap)) return nullptr;
  }
  char* const result = cursor_ + gap_before(cursor_, alignment);
  bytes_used_ += padded;
  cursor_ = result + padded;
  return result;
}

bool Arena::grow(std::size_t bytes) noexcept {
  const SystemCalls& calls = system_calls();
  const std::size_t huge = huge_page_bytes_once();
  std::size_t size = round_up(std::max(bytes, next_chunk_bytes_), page_bytes());
  const bool large = options_.huge_pages && size >= huge;
  if (large) size = round_up(size, huge);
  // The kernel forms huge pages only at their natural borders: map one more, then give back both
  // ends.
  const std::size_t slack = large ? huge : 0;
  if (size == 0 || size > std::numeric_limits<std::size_t>::max() - slack) {
    error_ = ENOMEM;
    return false;
  }
  Chunk* const chunk = new (std::nothrow) Chunk{};
  if (chunk == nullptr) {
    error_ = ENOMEM;
    return false;
  }
  void* const mapped =
      calls.mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    error_ = errno;
    delete chunk;
    return false;
  }
  char* const begin = static_cast<char*>(mapped);
  char* const base = large ? begin + gap_before(begin, huge) : begin;
  char* const end = begin + size + slack;
  if (base > begin) calls.munmap(begin, static_cast<std::size_t>(base - begin));
  if (end > base + size) calls.munmap(base + size, static_cast<std::size_t>(end - (base + size)));

  *chunk = {base, size, chunks_};
  chunks_ = chunk;
  cursor_ = base;
  end_ = base + size;
  bytes_reserved_ += size;
  if (next_chunk_bytes_ < options_.max_chunk_bytes) {
    next_chunk_bytes_ = std::min(2 * next_chunk_bytes_, options_.max_chunk_bytes);
  }
  // Make all requests before the first touch: existing pages would stay in place.
  if (options_.interleave.any()) {
    binding_.add(interleave_over(base, size, options_.interleave));
  } else if (options_.node != kAnyNode) {
    binding_.add(prefer_node(base, size, options_.node));
  }
  if (large) advise(base, size);
  if (options_.lock) locking_.add(lock_in_memory(base, size));
  return true;
}

void Arena::advise(void* base, std::size_t bytes) noexcept {
  const int error = system_calls().madvise(base, bytes, MADV_HUGEPAGE) == 0 ? 0 : errno;
  if (error != 0) {
    char text[160];
    std::snprintf(text, sizeof(text), "no huge pages: madvise: %s; small pages are used",
                  std::strerror(error));
    huge_pages_.add(refuse("numa.huge_pages", error, text));
  } else if (huge_pages_switched_off_now()) {
    huge_pages_.add(
        refuse("numa.huge_pages", 0,
               "no huge pages: switched off in /sys/kernel/mm/transparent_hugepage/enabled; "
               "small pages are used"));
  } else {
    huge_pages_.add(Enforcement::done());
  }
}

}  // namespace rankine
