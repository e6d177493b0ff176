#include "numa/memory.h"

#include <numaif.h>
#include <sys/mman.h>

#include "numa/system_calls.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool is_aligned(const void* p, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

// The record of the fakes below. It is global because function pointers cannot capture; the fixture
// resets it.
struct Seen {
  std::map<void*, std::size_t> mapped;  // the mappings after trims, by base
  int mmaps = 0, mbinds = 0, madvises = 0;
  int failing_mmap = -1;  // which mmap fails, from 0; -1: none
  int error = 0;          // errno of the failing mmap
  unsigned long node_word = 0;
  int mode = -1;
  std::size_t border = 0, behind = 0;  // placing_mmap() maps `behind` bytes after a `border`
} seen;

void* watching_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                    off_t offset) {
  if (seen.mmaps++ == seen.failing_mmap) {
    errno = seen.error;
    return MAP_FAILED;
  }
  void* const result = ::mmap(address, bytes, protection, flags, file, offset);
  if (result != MAP_FAILED) seen.mapped[result] = bytes;
  return result;
}

int watching_munmap(void* address, std::size_t bytes) {
  char* const begin = static_cast<char*>(address);
  auto range = seen.mapped.upper_bound(address);
  if (range == seen.mapped.begin()) ADD_FAILURE() << "munmap of what was not mapped";
  --range;
  char* const base = static_cast<char*>(range->first);
  const std::size_t size = range->second;
  EXPECT_LE(begin + bytes, base + size) << "munmap beyond a mapping";
  seen.mapped.erase(range);
  if (begin > base) seen.mapped[base] = static_cast<std::size_t>(begin - base);
  if (begin + bytes < base + size) {
    seen.mapped[begin + bytes] = static_cast<std::size_t>(base + size - (begin + bytes));
  }
  return ::munmap(address, bytes);
}

// A kernel that chooses the address of a mapping itself.
void* placing_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                   off_t offset) {
  const std::size_t wide_bytes = bytes + 2 * seen.border;
  char* const wide =
      static_cast<char*>(watching_mmap(address, wide_bytes, protection, flags, file, offset));
  const std::size_t over = reinterpret_cast<std::uintptr_t>(wide) % seen.border;
  char* const base = wide + (seen.border - over) + seen.behind;
  watching_munmap(wide, static_cast<std::size_t>(base - wide));
  watching_munmap(base + bytes, static_cast<std::size_t>(wide + wide_bytes - (base + bytes)));
  return base;
}

std::size_t mapped_bytes() {
  std::size_t sum = 0;
  for (const auto& [base, bytes] : seen.mapped) sum += bytes;
  return sum;
}

class ArenaTest : public testing::Test {
 protected:
  ArenaTest() {
    seen = {};
    calls_.mmap = watching_mmap;
    calls_.munmap = watching_munmap;
  }
  ~ArenaTest() override { EXPECT_TRUE(seen.mapped.empty()) << "leaked mappings"; }

  SystemCalls calls_ = real_system_calls();
  CapturedWarnings captured_;
};

TEST_F(ArenaTest, AlignedZeroedDisjoint) {
  ScopedSystemCalls scope(calls_);
  ArenaOptions options;
  options.chunk_bytes = 4096;
  Arena arena(options);
  std::vector<std::pair<char*, std::size_t>> blocks;
  std::uint32_t random = 1;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525u + 1013904223u;
    const std::size_t bytes = (random >> 8) % 3000;
    const std::size_t alignment = std::size_t{1} << ((random >> 24) % 14);  // 1 .. 8192
    char* const p = static_cast<char*>(arena.allocate(bytes, alignment));
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(is_aligned(p, std::max(alignment, kCacheLineBytes)));
    EXPECT_TRUE(std::all_of(p, p + bytes, [](char c) { return c == 0; }));
    std::memset(p, 0xA5, bytes);
    blocks.emplace_back(p, std::max<std::size_t>(bytes, 1));
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const char* const last = blocks[i - 1].first + blocks[i - 1].second - 1;
    EXPECT_LT(reinterpret_cast<std::uintptr_t>(last) / kCacheLineBytes,
              reinterpret_cast<std::uintptr_t>(blocks[i].first) / kCacheLineBytes)
        << "two allocations share a cache line";
  }
  EXPECT_EQ(arena.bytes_reserved(), mapped_bytes());
  EXPECT_LE(arena.bytes_used(), arena.bytes_reserved());
  EXPECT_EQ(arena.error(), 0);
}

TEST_F(ArenaTest, ChunksDoubleUpToTheLimit) {
  ScopedSystemCalls scope(calls_);
  ArenaOptions options;
  options.chunk_bytes = 8192;
  options.max_chunk_bytes = 32768;
  Arena arena(options);
  std::vector<std::size_t> growth;
  std::size_t before = 0;
  while (growth.size() < 5) {
    ASSERT_NE(arena.allocate(4096), nullptr);
    if (arena.bytes_reserved() != before) growth.push_back(arena.bytes_reserved() - before);
    before = arena.bytes_reserved();
  }
  EXPECT_EQ(growth, (std::vector<std::size_t>{8192, 16384, 32768, 32768, 32768}));
  EXPECT_EQ(seen.mmaps, 5);
}

TEST_F(ArenaTest, CoarseAlignmentsWhereverTheKernelMaps) {
  calls_.mmap = placing_mmap;
  ScopedSystemCalls scope(calls_);
  seen.border = 8 * kMiB;
  // The first chunk, of 1 MiB, begins right behind a border and contains no other, so the gap up to
  // the next border must be mapped too.
  seen.behind = page_bytes();
  {
    Arena arena;
    EXPECT_TRUE(is_aligned(arena.allocate(100, page_bytes()), page_bytes()));
    EXPECT_EQ(seen.mmaps, 1);
    EXPECT_TRUE(is_aligned(arena.allocate(100, 8 * kMiB), 8 * kMiB));
    EXPECT_EQ(seen.mmaps, 2);
    EXPECT_GT(arena.bytes_reserved(), 8 * kMiB);
    EXPECT_EQ(arena.bytes_reserved(), mapped_bytes());
  }
  // If the mapping begins a page before a border, the chunk has room behind it.
  seen.behind = 8 * kMiB - page_bytes();
  seen.mmaps = 0;
  Arena arena;
  EXPECT_NE(arena.allocate(100), nullptr);
  EXPECT_TRUE(is_aligned(arena.allocate(100, 8 * kMiB), 8 * kMiB));
  EXPECT_EQ(seen.mmaps, 1);
  EXPECT_EQ(arena.bytes_reserved(), kMiB);
}

TEST_F(ArenaTest, BadAlignmentIsAnError) {
  ScopedSystemCalls scope(calls_);
  Arena arena;
  for (std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{96}}) {
    EXPECT_EQ(arena.allocate(8, alignment), nullptr);
    EXPECT_EQ(arena.error(), EINVAL);
  }
  EXPECT_EQ(seen.mmaps, 0);
}

TEST_F(ArenaTest, ImpossibleSizesAreErrors) {
  ScopedSystemCalls scope(calls_);
  Arena arena;
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes : {kMax, kMax - 63, kMax - 4096, kMax - 2 * kMiB, kMax / 2, kMax / 4}) {
    EXPECT_EQ(arena.allocate(bytes), nullptr) << bytes;
    EXPECT_EQ(arena.error(), ENOMEM) << bytes;
    EXPECT_EQ(arena.allocate(bytes, 8 * kMiB), nullptr) << bytes;
    EXPECT_EQ(arena.allocate(bytes, std::size_t{1} << 62), nullptr) << bytes;
  }
  EXPECT_EQ(arena.allocate_array<double>(kMax / 4), nullptr);
  EXPECT_EQ(arena.bytes_reserved(), 0u);
  EXPECT_EQ(arena.bytes_used(), 0u);
  EXPECT_NE(arena.allocate(100), nullptr) << "a refused request does no harm";
}

TEST_F(ArenaTest, EnomemAtEveryMmapIsAValue) {
  ScopedSystemCalls scope(calls_);
  for (int k = 0; k < 4; ++k) {
    seen.mmaps = 0;
    seen.failing_mmap = k;
    seen.error = ENOMEM;
    ArenaOptions options;
    options.chunk_bytes = 4096;
    options.max_chunk_bytes = 4096;
    Arena arena(options);
    for (int i = 0; i < 4; ++i) {
      void* const p = arena.allocate(4096);
      EXPECT_EQ(p == nullptr, i == k);
    }
    EXPECT_EQ(arena.error(), ENOMEM);
    EXPECT_EQ(arena.bytes_reserved(), 3 * 4096u);
    EXPECT_EQ(arena.bytes_used(), 3 * 4096u);
    EXPECT_NE(arena.allocate(64), nullptr) << "goes on once there is memory";
  }
}

TEST_F(ArenaTest, LargeChunksAreAlignedTrimmedAndAdvised) {
  calls_.madvise = [](void* address, std::size_t bytes, int advice) {
    ++seen.madvises;
    EXPECT_TRUE(is_aligned(address, huge_page_bytes()));
    EXPECT_EQ(bytes % huge_page_bytes(), 0u);
    EXPECT_EQ(advice, MADV_HUGEPAGE);
    return 0;
  };
  ScopedSystemCalls scope(calls_);
  Arena arena;
  ASSERT_NE(arena.allocate(64), nullptr);
  EXPECT_EQ(seen.madvises, 0) << "a small chunk is left alone";
  EXPECT_EQ(arena.huge_pages().state, Enforcement::State::not_asked);
  ASSERT_NE(arena.allocate(5 * kMiB), nullptr);
  EXPECT_EQ(seen.madvises, 1);
  EXPECT_EQ(arena.bytes_reserved(), mapped_bytes());
  EXPECT_NE(arena.huge_pages().enforced(), huge_pages_switched_off());
}

TEST_F(ArenaTest, RefusedHugePagesWarnOnce) {
  calls_.madvise = [](void*, std::size_t, int) {
    errno = EINVAL;
    return -1;
  };
  ScopedSystemCalls scope(calls_);
  for (int i = 0; i < 3; ++i) {
    Arena arena;
    for (int j = 0; j < 2; ++j) {
      char* const p = static_cast<char*>(arena.allocate(4 * kMiB));
      ASSERT_NE(p, nullptr);
      p[0] = 1;
    }
    EXPECT_TRUE(arena.huge_pages().refused());
    EXPECT_EQ(arena.huge_pages().error, EINVAL);
  }
  ASSERT_EQ(captured_.lines.size(), 1u);
  EXPECT_EQ(captured_.lines[0].first, "numa.huge_pages");
}

TEST_F(ArenaTest, BindsEveryChunkToItsNode) {
  calls_.mbind = [](void*, unsigned long, int mode, const unsigned long* mask,
                    unsigned long max_node, unsigned) -> long {
    ++seen.mbinds;
    seen.mode = mode;
    seen.node_word = mask[1];
    EXPECT_EQ(mask[0], 0u);
    EXPECT_EQ(max_node, 1025u);
    return 0;
  };
  ScopedSystemCalls scope(calls_);
  ArenaOptions options;
  options.node = 67;
  options.chunk_bytes = options.max_chunk_bytes = 4096;
  Arena arena(options);
  for (int i = 0; i < 3; ++i) ASSERT_NE(arena.allocate(4096), nullptr);
  EXPECT_EQ(seen.mbinds, 3);
  EXPECT_EQ(seen.mode, MPOL_PREFERRED);
  EXPECT_EQ(seen.node_word, 1ul << 3);
  EXPECT_TRUE(arena.binding().enforced());
  EXPECT_EQ(arena.node(), 67);
  EXPECT_TRUE(captured_.lines.empty());
}

TEST_F(ArenaTest, OneRefusedChunkSpoilsTheClaim) {
  calls_.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                    unsigned) -> long {
    errno = ENOMEM;
    return seen.mbinds++ == 1 ? -1 : 0;
  };
  ScopedSystemCalls scope(calls_);
  ArenaOptions options;
  options.node = 0;
  options.chunk_bytes = options.max_chunk_bytes = 4096;
  Arena arena(options);
  ASSERT_NE(arena.allocate(4096), nullptr);
  EXPECT_TRUE(arena.binding().enforced());
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(arena.allocate(4096), nullptr);
    EXPECT_TRUE(arena.binding().refused());
  }
}

TEST_F(ArenaTest, NodesThatDoNotExist) {
  for (int node : {1023, 1024, 1 << 30, -7}) {
    ArenaOptions options;
    options.node = node;
    Arena arena(options);
    ASSERT_NE(arena.allocate(64), nullptr);
    EXPECT_TRUE(arena.binding().refused()) << node;
    if (node != 1023) {
      EXPECT_EQ(arena.binding().error, EINVAL) << node;  // 1023 is left to the kernel
    }
  }
  EXPECT_EQ(captured_.lines.size(), 1u);
}

TEST_F(ArenaTest, MovesWithItsMemory) {
  ScopedSystemCalls scope(calls_);
  Arena a;
  char* const p = static_cast<char*>(a.allocate(64));
  ASSERT_NE(p, nullptr);
  p[0] = 7;
  Arena b(std::move(a));
  EXPECT_EQ(p[0], 7);
  EXPECT_EQ(b.bytes_used(), 64u);
  EXPECT_EQ(a.bytes_reserved(), 0u);  // NOLINT(bugprone-use-after-move): moved-from means empty
  EXPECT_NE(a.allocate(64), nullptr) << "and usable again";
  b = std::move(a);
  EXPECT_EQ(b.bytes_reserved(), mapped_bytes()) << "what b had before is gone";
}

// No fakes: the memory works on this machine, with or without the kernel's permissions.
TEST(ArenaOnThisMachine, MemoryIsUsable) {
  CapturedWarnings captured;
  ArenaOptions options;
  options.node = 0;
  Arena arena(options);
  char* const p = static_cast<char*>(arena.allocate(4 * kMiB));
  ASSERT_NE(p, nullptr);
  std::memset(p, 1, 4 * kMiB);
  EXPECT_NE(arena.binding().state, Enforcement::State::not_asked);
  // Checks the node requested for the pages, not the node that holds them: it may be full.
  int mode = -1;
  unsigned long nodes[1024 / 8 / sizeof(unsigned long)] = {};
  if (arena.binding().enforced() &&
      get_mempolicy(&mode, nodes, sizeof(nodes) * 8, p, MPOL_F_ADDR) == 0) {
    EXPECT_EQ(mode, MPOL_PREFERRED);
    EXPECT_EQ(nodes[0], 1u);
  }
}

}  // namespace
}  // namespace rankine
