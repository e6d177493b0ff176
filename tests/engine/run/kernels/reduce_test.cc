// Tests of the kernels that reduce, scale and copy vectors.

#include <sys/mman.h>
#include <unistd.h>

#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/string_copy.h"
#include "tests/engine/run/kernels/scalar_reference.h"
#include "tests/testing.h"

namespace rankine {

// Memory between two inaccessible pages: an access outside it ends the test at once, even for
// accesses that sanitizers do not check (masked loads, streaming stores).
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        size_((bytes + page_ - 1) / page_ * page_) {
    void* mapped = mmap(nullptr, size_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) ADD_FAILURE() << "mmap";
    base_ = static_cast<char*>(mapped);
    if (mprotect(begin(), size_, PROT_READ | PROT_WRITE) != 0) ADD_FAILURE() << "mprotect";
  }
  ~GuardedPages() { munmap(base_, size_ + 2 * page_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  char* begin() const { return base_ + page_; }
  char* end() const { return begin() + size_; }

 private:
  std::size_t page_;
  std::size_t size_;  // between the guards
  char* base_;
};

// Compares every kernel of every instruction set of this machine with the scalar reference and, bit
// for bit, with the portable kernel.

namespace {

constexpr int kMostSources = 9;
constexpr int kNoAlias = -1;
constexpr std::size_t kMostBytes = std::size_t{160} << 10;
constexpr char kCanary = '\xa5';

using Random = std::mt19937_64;

int below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
}

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, std::min(sizeof(T), sizeof(bits)));
  return value;
}

template <class T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, std::min(sizeof(T), sizeof(bits)));
  return bits;
}

// Bit patterns that are special in some type: zeros, the smallest and largest subnormals and
// normals, ones, infinities, quiet and signalling NaNs, and the ends of the integers.
template <class T>
std::vector<T> specials() {
  std::vector<std::uint64_t> bits;
  if constexpr (Complex<T>) {
    std::vector<T> values;
    const auto parts = specials<typename T::value_type>();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      values.emplace_back(parts[i], parts[i * 7 % parts.size()]);
    }
    return values;
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {Bool(false), Bool(true)};
  } else if constexpr (std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>) {
    for (std::uint64_t code = 0; code < 0x80; ++code) bits.push_back(code);
  } else if constexpr (std::is_same_v<T, float>) {
    bits = {0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc01234};
  } else if constexpr (std::is_same_v<T, double>) {
    bits = {0,
            1,
            0xfffffffffffff,
            0x10000000000000,
            0x3ff0000000000000,
            0x7fefffffffffffff,
            0x7ff0000000000000,
            0x7ff0000000000001,
            0x7ff8000000001234};
  } else if constexpr (std::is_same_v<T, Half>) {
    bits = {0, 1, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7e12, 0x7fff};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    bits = {0, 1, 0x7f, 0x80, 0x3f80, 0x7f7f, 0x7f80, 0x7f81, 0x7fc1, 0x7fff};
  } else {
    bits = {0,
            1,
            2,
            0x7f,
            std::uint64_t{1} << (8 * sizeof(T) - 1),
            ~std::uint64_t{0},
            ~std::uint64_t{0} >> (65 - 8 * sizeof(T))};
  }
  std::vector<T> values;
  for (const std::uint64_t b : bits) {
    values.push_back(from_bits<T>(b));
    if constexpr (reference::kIsFloat<T>) {
      values.push_back(from_bits<T>(b | std::uint64_t{1} << (8 * sizeof(T) - 1)));
    }
  }
  return values;
}

// Mostly ordinary numbers, so that not all sums are NaN; also any bits, and special values.
template <class T>
T any_value(Random& random, const std::vector<T>& special) {
  if constexpr (std::is_same_v<T, Bool>) {
    return special[random() % 2];
  } else if constexpr (Complex<T>) {
    using Part = typename T::value_type;
    static const std::vector<Part> parts = specials<Part>();
    return T(any_value<Part>(random, parts), any_value<Part>(random, parts));
  } else {
    const int dice = below(random, 16);
    if (dice == 0) return special[random() % special.size()];
    if (dice < 4 || !reference::kIsFloat<T>) return from_bits<T>(random());
    const float value = std::uniform_real_distribution<float>(-4.0F, 4.0F)(random);
    if constexpr (reference::kIsSmallFloat<T>) {
      return reference::narrow<T>(value);
    } else {
      return static_cast<T>(value);
    }
  }
}

// Made once per type; inputs are slices at any place.
template <class T>
std::vector<T> some_values(Random& random, std::size_t count) {
  static const std::vector<T> pool = [] {
    Random seed(1);
    const std::vector<T> special = specials<T>();
    std::vector<T> values(2 * kMostBytes / sizeof(T));
    for (T& value : values) value = any_value(seed, special);
    return values;
  }();
  const auto first = static_cast<std::ptrdiff_t>(random() % (pool.size() - count));
  return {pool.begin() + first, pool.begin() + first + static_cast<std::ptrdiff_t>(count)};
}

// NaN's sign and payload are free, except in min and max.
template <class T>
bool same(ReduceOp op, T x, T y) {
  if constexpr (Complex<T>) {
    return same(op, x.real(), y.real()) && same(op, x.imag(), y.imag());
  }
  if (op != ReduceOp::min && op != ReduceOp::max && reference::is_nan(x)) {
    return reference::is_nan(y);
  }
  return to_bits(x) == to_bits(y);
}

struct Shape {
  std::size_t count;
  int sources;
  int alias = kNoAlias;  // the source that is also dst
  int divisor = 0;
  bool streaming = false;
};

std::string text(const Shape& shape) {
  return "count " + std::to_string(shape.count) + " sources " + std::to_string(shape.sources) +
         " alias " + std::to_string(shape.alias) + " divisor " + std::to_string(shape.divisor) +
         (shape.streaming ? " streaming" : "");
}

// The place of a buffer between its guards: against one of them, or at any place (usually unaligned
// then).
enum class Place { front, back, anywhere };

class Arenas {
 public:
  Arenas() {
    for (int i = 0; i <= kMostSources; ++i) {
      pages_.push_back(std::make_unique<GuardedPages>(kMostBytes + 4096));
    }
  }
  char* place(int arena, Place where, std::size_t bytes, Random& random) const {
    const GuardedPages& pages = *pages_[static_cast<std::size_t>(arena)];
    if (where == Place::front) return pages.begin();
    if (where == Place::back) return pages.end() - bytes;
    return pages.begin() + random() % 4096;
  }
  const GuardedPages& operator[](int arena) const {
    return *pages_[static_cast<std::size_t>(arena)];
  }

 private:
  std::vector<std::unique_ptr<GuardedPages>> pages_;
};

const Arenas& arenas() {
  static const Arenas all;
  return all;
}

// Canaries of at least a line on both sides, as far as the pages reach.
struct Surroundings {
  char *before, *begin, *end, *after;
  Surroundings(const GuardedPages& pages, char* at, std::size_t bytes)
      : before(std::max(pages.begin(), at - 160)),
        begin(at),
        end(at + bytes),
        after(std::min(pages.end(), at + bytes + 160)) {
    std::fill(before, begin, kCanary);
    std::fill(end, after, kCanary);
  }
  bool intact() const {
    const auto is_canary = [](char c) { return c == kCanary; };
    return std::all_of(before, begin, is_canary) && std::all_of(end, after, is_canary);
  }
};

template <class T>
const char* as_chars(const std::vector<T>& values) {
  return reinterpret_cast<const char*>(values.data());
}

auto find(DataType type, ReduceOp op, Isa isa, bool streaming) {
  return [=](void* dst, const void* const* srcs, int n_srcs, std::size_t count, int divisor) {
    if (streaming) {
      find_spread(type, op, isa)(&dst, 1, srcs, n_srcs, count, divisor, true);
    } else {
      find_reduce(type, op, isa)(dst, srcs, n_srcs, count, divisor);
    }
  };
}

using Param = std::tuple<DataType, ReduceOp, Isa>;

class ReduceTest : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    if (isa() > hardware_isa()) GTEST_SKIP() << "not on this machine";
  }
  DataType type() const { return std::get<0>(GetParam()); }
  ReduceOp op() const { return std::get<1>(GetParam()); }
  Isa isa() const { return std::get<2>(GetParam()); }

  template <class T>
  void run(const Shape& shape, Place where, Random& random) {
    const auto count = static_cast<std::ptrdiff_t>(shape.count);
    const std::size_t bytes = shape.count * sizeof(T);
    char* at[kMostSources];
    const void* srcs[kMostSources];
    std::vector<std::vector<T>> inputs;
    for (int s = 0; s < shape.sources; ++s) {
      std::vector<T> input = some_values<T>(random, shape.count);
      at[s] = arenas().place(s, where, bytes, random);
      std::copy_n(as_chars(input), bytes, at[s]);
      srcs[s] = at[s];
      inputs.push_back(std::move(input));
    }
    const int home = shape.alias == kNoAlias ? kMostSources : shape.alias;
    char* dst = shape.alias == kNoAlias ? arenas().place(home, where, bytes, random) : at[home];
    const Surroundings surroundings(arenas()[home], dst, bytes);

    std::vector<T> portable(shape.count);
    find(type(), op(), Isa::portable, shape.streaming)(portable.data(), srcs, shape.sources,
                                                       shape.count, shape.divisor);
    find(type(), op(), isa(), shape.streaming)(dst, srcs, shape.sources, shape.count,
                                               shape.divisor);

    ASSERT_TRUE(surroundings.intact()) << text(shape);
    for (int s = 0; s < shape.sources; ++s) {
      if (s == shape.alias) continue;
      ASSERT_TRUE(std::equal(at[s], at[s] + bytes, as_chars(inputs[static_cast<std::size_t>(s)])))
          << "source " << s << " changed, " << text(shape);
    }
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      T column[kMostSources];
      for (int s = 0; s < shape.sources; ++s) {
        column[s] = inputs[static_cast<std::size_t>(s)][static_cast<std::size_t>(i)];
      }
      const T expected = reference::reduce(op(), column, shape.sources, shape.divisor);
      T result;
      std::memcpy(&result, dst + i * static_cast<std::ptrdiff_t>(sizeof(T)), sizeof(T));
      ASSERT_TRUE(same(op(), expected, result))
          << std::hex << "element " << i << ": expected " << to_bits(expected) << ", got "
          << to_bits(result) << ", first sources " << to_bits(column[0]) << " "
          << to_bits(column[shape.sources > 1]) << std::dec << ", " << text(shape);
      ASSERT_TRUE(same(op(), portable[static_cast<std::size_t>(i)], result))
          << "portable differs at " << i << ", " << text(shape);
    }
  }

  // A divisor for avg, including none, one, powers of two and more than small integers can hold.
  int some_divisor(Random& random) const {
    static constexpr int kDivisors[] = {0,   1,   2,   3,    4,     5,       6,         7,
                                        8,   9,   10,  64,   100,   127,     128,       129,
                                        255, 256, 257, 1024, 65537, 1 << 30, 2147483647};
    return op() == ReduceOp::avg ? kDivisors[below(random, std::size(kDivisors))] : 0;
  }
};

// Several destinations at once: each gets the result of a call with one destination, and no byte
// beside it changes. One destination may be a source. All may have equal skews (then streaming
// stores are possible) or different ones.
TEST_P(ReduceTest, EveryNumberOfDestinations) {
  with_element(type(), [&]<class T>() {
    Random random(4);
    constexpr std::size_t kGuard = 128;
    constexpr int kMost = 5;
    for (int i = 0; i < 400; ++i) {
      const std::size_t count = below(random, i % 2 == 0 ? 140 : 1200);
      const std::size_t bytes = count * sizeof(T);
      const int sources = 1 + below(random, 4), destinations = 1 + below(random, kMost);
      const int divisor = some_divisor(random);
      std::vector<std::vector<T>> inputs;
      const void* srcs[4];
      for (int s = 0; s < sources; ++s) {
        inputs.push_back(some_values<T>(random, count));
        srcs[s] = inputs.back().data();
      }
      std::vector<T> expected(count);
      find_reduce(type(), op(), isa())(expected.data(), srcs, sources, count, divisor);
      std::vector<std::vector<char>> memory;
      void* dsts[kMost];
      const std::size_t skew = below(random, 64);
      for (int d = 0; d < destinations; ++d) {
        memory.emplace_back(bytes + 2 * kGuard + 128, kCanary);
        const auto at = reinterpret_cast<std::uintptr_t>(memory.back().data());
        const std::size_t mine = random() % 4 == 0 ? below(random, 64) : skew;
        dsts[d] = memory.back().data() + kGuard + (64 - at % 64) % 64 + mine;
      }
      if (random() % 3 == 0) {
        const int d = below(random, destinations), s = below(random, sources);
        if (bytes > 0) std::memcpy(dsts[d], srcs[s], bytes);
        srcs[s] = dsts[d];
      }
      find_spread(type(), op(), isa())(dsts, destinations, srcs, sources, count, divisor,
                                       random() % 2 == 0);
      for (int d = 0; d < destinations; ++d) {
        const std::vector<char>& all = memory[static_cast<std::size_t>(d)];
        const char* begin = static_cast<const char*>(dsts[d]);
        const auto is_canary = [](char c) { return c == kCanary; };
        ASSERT_TRUE(std::all_of(all.data(), begin, is_canary));
        ASSERT_TRUE(std::all_of(begin + bytes, all.data() + all.size(), is_canary));
        for (std::size_t e = 0; e < count; ++e) {
          T got;
          std::memcpy(&got, begin + e * sizeof(T), sizeof(T));
          ASSERT_TRUE(same(op(), expected[e], got))
              << "element " << e << " of destination " << d << " of " << destinations;
        }
      }
    }
  });
}

// Every count of a few lines, long vectors, and vectors beyond 128 KiB, where the kernels prefetch,
// also past the end; any number of sources, dst apart or any of the sources; cached and streaming.
TEST_P(ReduceTest, EveryShape) {
  with_element(type(), [&]<class T>() {
    Random random(2);
    const auto any = [&](std::size_t count, int sources, Place where) {
      const int alias = below(random, sources + 1) - 1;
      run<T>({count, sources, alias, some_divisor(random), random() % 2 == 0}, where, random);
    };
    for (std::size_t count = 0; count <= 130 && !HasFatalFailure(); ++count) {
      for (int sources = 1; sources <= kMostSources; ++sources) {
        any(count, sources, static_cast<Place>(random() % 3));
      }
    }
    for (const std::size_t count : {1009U, 4099U}) {
      for (int sources = 1; sources <= 5; ++sources) any(count, sources, Place::anywhere);
    }
    const std::size_t far = (std::size_t{131} << 10) / sizeof(T) + 3;
    for (int i = 0; i < 3 && !HasFatalFailure(); ++i) any(far, 3, Place::back);
    for (int sources = 1; sources <= kMostSources && !HasFatalFailure(); ++sources) {
      for (int alias = kNoAlias; alias < sources; ++alias) {
        for (const bool streaming : {false, true}) {
          const auto count = static_cast<std::size_t>(1 + below(random, 1300));
          run<T>({count, sources, alias, some_divisor(random), streaming}, Place::anywhere, random);
        }
      }
    }
    const void* nothing[] = {nullptr, nullptr, nullptr};
    for (const bool streaming : {false, true})
      find(type(), op(), isa(), streaming)(nullptr, nothing, 3, 0, 3);
  });
}

// Every ordered pair of special values.
TEST_P(ReduceTest, SpecialValuesMeetEachOther) {
  with_element(type(), [&]<class T>() {
    std::vector<T> first;
    std::vector<T> second;
    for (const T& x : specials<T>()) {
      for (const T& y : specials<T>()) {
        first.push_back(x);
        second.push_back(y);
      }
    }
    for (const int divisor : {0, 1, 2, 3, 128, 256}) {
      if (divisor != 0 && op() != ReduceOp::avg) continue;
      const void* srcs[] = {first.data(), second.data()};
      std::vector<T> result(first.size());
      find_reduce(type(), op(), isa())(result.data(), srcs, 2, first.size(), divisor);
      for (std::size_t i = 0; i < first.size(); ++i) {
        const T column[] = {first[i], second[i]};
        const T expected = reference::reduce(op(), column, 2, divisor);
        ASSERT_TRUE(same(op(), expected, result[i]))
            << std::hex << to_bits(first[i]) << " with " << to_bits(second[i]) << ": expected "
            << to_bits(expected) << ", got " << to_bits(result[i]) << " divisor " << divisor;
      }
    }
  });
}

std::vector<Param> supported_params() {
  std::vector<Param> params;
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      for (int i = 0; i < kIsas; ++i) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        if (supports(type, op)) params.emplace_back(type, op, static_cast<Isa>(i));
      }
    }
  }
  return params;
}

std::string param_name(const ::testing::TestParamInfo<Param>& param) {
  const auto& [type, op, isa] = param.param;
  return (std::string(name_of(type)) + "_").append(name_of(op)).append("_").append(name_of(isa));
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest, ::testing::ValuesIn(supported_params()), param_name);

// All quotients of 8 bits, and the neighbourhood of multiples in 32 bits, at which a rounded
// reciprocal would be wrong.
template <class T>
void check_quotients(const std::vector<T>& totals, int divisor) {
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    std::vector<T> result(totals.size());
    const void* srcs[] = {totals.data()};
    find_reduce(data_type_of<T>, ReduceOp::avg, static_cast<Isa>(i))(result.data(), srcs, 1,
                                                                     totals.size(), divisor);
    for (std::size_t k = 0; k < totals.size(); ++k) {
      const auto wide = static_cast<std::int64_t>(totals[k]);
      ASSERT_EQ(static_cast<std::int64_t>(result[k]), wide / divisor)
          << wide << " / " << divisor << " " << name_of(static_cast<Isa>(i));
    }
  }
}

TEST(IntegerAverageTest, TruncatesEvery8BitQuotient) {
  std::vector<std::int8_t> totals_i8;
  std::vector<std::uint8_t> totals_u8;
  for (int x = 0; x < 256; ++x) {
    totals_i8.push_back(static_cast<std::int8_t>(x - 128));
    totals_u8.push_back(static_cast<std::uint8_t>(x));
  }
  for (int divisor = 1; divisor < 600; ++divisor) {
    check_quotients(totals_i8, divisor);
    check_quotients(totals_u8, divisor);
  }
}

TEST(IntegerAverageTest, Truncates32BitsAroundMultiples) {
  Random random(12);
  for (int round = 0; round < 400; ++round) {
    const int divisor =
        round < 200 ? round + 1 : static_cast<int>(random() % 0x7fffffffU >> (random() % 31)) + 1;
    std::vector<std::int32_t> totals_i32 = {std::numeric_limits<std::int32_t>::min(), -1, 0, 1,
                                            std::numeric_limits<std::int32_t>::max()};
    std::vector<std::uint32_t> totals_u32 = {0, 1, ~0U, ~0U - 1};
    for (int i = 0; i < 40; ++i) {
      const auto multiple = static_cast<std::uint32_t>(random() >> (random() % 64)) /
                            static_cast<std::uint32_t>(divisor) *
                            static_cast<std::uint32_t>(divisor);
      for (const std::uint32_t total : {multiple - 1, multiple, multiple + 1}) {
        totals_u32.push_back(total);
        totals_i32.push_back(static_cast<std::int32_t>(total));
      }
    }
    check_quotients(totals_i32, divisor);
    check_quotients(totals_u32, divisor);
  }
}

TEST(FindReduceTest, NullExactlyWhereUnsupported) {
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      for (int i = 0; i < kIsas; ++i) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        const auto isa = static_cast<Isa>(i);
        EXPECT_EQ(find_reduce(type, op, isa) != nullptr, supports(type, op));
        EXPECT_EQ(find_spread(type, op, isa) != nullptr, supports(type, op));
      }
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      EXPECT_EQ(find_reduce(type, op), find_reduce(type, op, best_isa()));
    }
  }
}

// x * factor, as defined in reduce.h; in noncommutative cases the factor is on the left.
template <class T, class Factor>
T product(T x, Factor factor) {
  if constexpr (Complex<T>) {
    const T both[] = {factor, x};
    return reference::reduce(ReduceOp::prod, both, 2, 0);
  } else {
    return reference::narrow<T>(
        static_cast<reference::Accumulator<T>>(reference::widen(x) * reference::widen(factor)));
  }
}

TEST(ScaleTest, MultipliesAnyLengthInAndOutOfPlaceWithEveryInstructionSet) {
  EXPECT_EQ(find_scale(DataType::b8, Isa::portable), nullptr);
  for (int t = 0; t < kDataTypes; ++t) {
    with_element(static_cast<DataType>(t), [&]<class T>() {
      if constexpr (!std::is_same_v<T, Bool>) {
        using Factor = std::conditional_t<SmallFloat<T>, float, T>;
        Random random(t);
        const std::vector<Factor> special = specials<Factor>();
        for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
          const auto scale = find_scale(static_cast<DataType>(t), static_cast<Isa>(i));
          for (std::size_t count = 0; count < 300; count += 1 + count / 20) {
            const Factor factor = any_value<Factor>(random, special);
            const std::vector<T> in = some_values<T>(random, count);
            std::vector<T> out(count), in_place = in;
            scale(out.data(), in.data(), count, &factor);
            scale(in_place.data(), in_place.data(), count, &factor);
            for (std::size_t e = 0; e < count; ++e) {
              const T expected = product(in[e], factor);
              ASSERT_TRUE(same(ReduceOp::prod, expected, out[e]))
                  << name_of(data_type_of<T>) << " element " << e << " of " << count << ", isa "
                  << i << std::hex << ": " << to_bits(in[e]) << " times " << to_bits(factor)
                  << " is " << to_bits(out[e]) << ", should be " << to_bits(expected);
              ASSERT_TRUE(same(ReduceOp::prod, expected, in_place[e]));
            }
          }
        }
      }
    });
  }
}

TEST(WeightedTest, AddsUpAnyNumberOfSourcesWithEveryInstructionSet) {
  for (int t = 0; t < kDataTypes; ++t) {
    with_element(static_cast<DataType>(t), [&]<class T>() {
      const auto found = find_weighted(data_type_of<T>, Isa::portable);
      if constexpr (!SmallFloat<T> && !std::is_same_v<T, float>) {
        EXPECT_EQ(found, nullptr);
      } else {
        Random random(t);
        std::vector<float> special = specials<float>();
        for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
          const auto weighted = find_weighted(data_type_of<T>, static_cast<Isa>(i));
          for (std::size_t count = 0; count < 300; count += 1 + count / 20) {
            const std::size_t sources = random() % 10;
            std::vector<std::vector<T>> in;
            std::vector<const void*> srcs;
            std::vector<float> weights;
            for (std::size_t s = 0; s < sources; ++s) {
              srcs.push_back(in.emplace_back(some_values<T>(random, count)).data());
              const float weight = any_value<float>(random, special);
              weights.push_back(weight == weight ? weight
                                                 : std::numeric_limits<float>::quiet_NaN());
            }
            std::vector<T> out(count + 1);
            const T behind = out[count];
            weighted(out.data(), srcs.data(), weights.data(), static_cast<int>(sources), count);
            EXPECT_EQ(to_bits(out[count]), to_bits(behind));
            for (std::size_t e = 0; e < count; ++e) {
              float sum = 0;
              for (std::size_t s = 0; s < sources; ++s) {
                sum += static_cast<float>(reference::widen(in[s][e])) * weights[s];
              }
              T expected;
              if constexpr (SmallFloat<T>) {
                expected = reference::narrow<T>(sum);
              } else {
                expected = sum;
              }
              ASSERT_TRUE(same(ReduceOp::sum, expected, out[e]))
                  << name_of(data_type_of<T>) << " element " << e << " of " << count << ", isa "
                  << i << ", " << sources << " sources";
            }
          }
        }
      }
    });
  }
}

using Copy = void (*)(void* dst, const void* src, std::size_t bytes);
constexpr Copy kCopies[] = {
    [](void* dst, const void* src, std::size_t bytes) { copy_bytes(dst, src, bytes); },
    [](void* dst, const void* src, std::size_t bytes) { copy_bytes_claiming(dst, src, bytes); },
    [](void* dst, const void* src, std::size_t bytes) {
      copy_bytes_spread(nullptr, 0, src, bytes, true);
      copy_bytes_spread(&dst, 1, src, bytes, true);
    },
    // Each way of copying, at any size.
    [](void* dst, const void* src, std::size_t bytes) {
      copy_bytes(dst, src, bytes,
                 costs_with({{&Costs::loop_copy_min_bytes, 0},
                             {&Costs::string_copy_min_bytes, ~std::size_t{0}}}));
    },
    [](void* dst, const void* src, std::size_t bytes) {
      copy_bytes(
          dst, src, bytes,
          costs_with({{&Costs::loop_copy_min_bytes, 0}, {&Costs::string_copy_min_bytes, 0}}));
    },
    [](void* dst, const void* src, std::size_t bytes) {
      copy_bytes_claiming(dst, src, bytes, costs_with({{&Costs::claim_copy_min_bytes, 1}}));
    },
};

TEST(CopyTest, CopiesAnyLengthAtAnyAddress) {
  Random random(14);
  const auto check = [&](std::size_t bytes, Place where) {
    char* src = arenas().place(0, where, bytes, random);
    char* dst = arenas().place(1, where, bytes, random);
    for (const auto copy : kCopies) {
      for (std::size_t i = 0; i < bytes; ++i) src[i] = static_cast<char>(random());
      const Surroundings surroundings(arenas()[1], dst, bytes);
      copy(dst, src, bytes);
      ASSERT_TRUE(surroundings.intact()) << bytes;
      ASSERT_EQ(std::memcmp(dst, src, bytes), 0) << bytes;
      copy(dst, dst, bytes);
      ASSERT_EQ(std::memcmp(dst, src, bytes), 0) << bytes << " onto itself";
    }
  };
  for (std::size_t bytes = 0; bytes < 700; ++bytes) {
    for (const Place where : {Place::front, Place::back, Place::anywhere}) {
      check(bytes, where);
      if (HasFatalFailure()) return;
    }
  }
  for (const std::size_t bytes : {Costs{}.claim_copy_min_bytes - 1, Costs{}.claim_copy_min_bytes,
                                  Costs{}.claim_copy_min_bytes + 1, std::size_t{65'535},
                                  std::size_t{65'536}, std::size_t{131'071}}) {
    check(bytes, Place::anywhere);
  }
  for (const auto copy : kCopies) {
    copy(nullptr, nullptr, 0);
  }
}

TEST(StringCopyTest, KnowsWhereItIsSlow) {
  alignas(4096) static char memory[3 * 4096];
  const auto lie_well = [&](std::size_t dst, std::size_t src) {
    return lie_well_for_strings(memory + dst, memory + src);
  };
  for (const std::size_t src : {4096, 4097, 4196, 8096, 8191}) {
    EXPECT_TRUE(lie_well(src, src)) << src;
    EXPECT_TRUE(lie_well(src - 4096, src)) << src;
    EXPECT_FALSE(lie_well(src + 1, src)) << src;
    EXPECT_FALSE(lie_well(src + 31, src)) << src;
    EXPECT_TRUE(lie_well(src + 32, src)) << src;
    EXPECT_TRUE(lie_well(src - 1, src)) << src;
    EXPECT_FALSE(lie_well(src - 4096 + 16, src)) << src << ", in an earlier page";
  }
}

}  // namespace
}  // namespace rankine
