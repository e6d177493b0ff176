// The row kernels: against loops in double, bit for bit the same with every instruction set and
// among any number of rows, and at the edges of scaled types.
#include "engine/run/kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace rankine {
namespace {

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};
constexpr DataType kOuts[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::i8,
                              DataType::f8e4m3};
constexpr Isa kAllIsas[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16};
constexpr std::size_t kSizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 130, 4096};

bool is_scaled(DataType type) { return type == DataType::i8 || type == DataType::f8e4m3; }

float number(std::size_t seed, std::size_t i) {
  const auto n = static_cast<std::uint32_t>((i + 7 * seed + 1) * 2654435761U);
  return (static_cast<float>(n % 2001) - 1000.0F) / 250.0F;
}

float widened(DataType type, const std::vector<std::byte>& memory, std::size_t i) {
  return with_element(type, [&]<class T>() -> float {
    T value;
    std::memcpy(&value, &memory[i * sizeof(T)], sizeof(T));
    if constexpr (std::is_constructible_v<float, T> && !Complex<T>)
      return static_cast<float>(value);
    return 0;
  });
}

std::vector<std::byte> vector_of(DataType type, std::size_t count, std::size_t seed) {
  std::vector<std::byte> out(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const auto put = [&](auto value) {
      std::memcpy(&out[i * sizeof(value)], &value, sizeof(value));
    };
    const float x = number(seed, i);
    if (type == DataType::f32) put(x);
    if (type == DataType::f16) put(Half(x));
    if (type == DataType::bf16) put(BFloat16(x));
  }
  return out;
}

// What a kernel is given, and what it leaves.
struct Case {
  DataType type, out_type;
  std::size_t rows, elements;
  std::vector<std::byte> in, bias, residual, weight, shift, out;
  std::vector<float> scales, scratch;
  RowWork work;

  Case(DataType type_, DataType out_type_, std::size_t rows_, std::size_t elements_)
      : type(type_),
        out_type(out_type_),
        rows(rows_),
        elements(elements_),
        in(vector_of(type, rows * elements, 1)),
        bias(vector_of(type, elements, 2)),
        residual(vector_of(type, rows * elements, 3)),
        weight(vector_of(type, elements, 4)),
        shift(vector_of(type, elements, 5)),
        out(rows * elements * size_of(out_type)),
        scales(rows),
        scratch(scratch_floats(elements)) {
    work = {.rows = in.data(),
            .count = rows,
            .elements = elements,
            .epsilon = 1e-5F,
            .out = out.data(),
            .scales = is_scaled(out_type) ? scales.data() : nullptr,
            .scratch = scratch.data()};
  }
  void run(Isa isa) { find_rows(type, out_type, isa)(work); }
  double result(std::size_t row, std::size_t i) const {
    const std::size_t at = row * elements + i;
    if (out_type == DataType::i8) {
      return static_cast<double>(static_cast<std::int8_t>(out[at])) * scales[row];
    }
    const double x = widened(out_type, out, at);
    return is_scaled(out_type) ? x * scales[row] : x;
  }
};

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

// Row `row`, in double but for the residual, which is rounded. `residual` as it was before.
std::vector<double> expected(const Case& test, const std::vector<std::byte>& residual,
                             std::size_t row) {
  const RowWork& work = test.work;
  std::vector<double> x;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < test.elements; ++i) {
    const std::size_t at = row * test.elements + i;
    float v = widened(test.type, test.in, at);
    if (work.bias != nullptr) v += widened(test.type, test.bias, i);
    if (work.residual != nullptr) {
      v += widened(test.type, residual, at);
      if (test.type == DataType::f16) v = static_cast<float>(Half(v));
      if (test.type == DataType::bf16) v = static_cast<float>(BFloat16(v));
      EXPECT_EQ(v, widened(test.type, test.residual, at));
    }
    x.push_back(v);
    sum += v;
  }
  const auto n = static_cast<double>(test.elements);
  const double mean = work.norm == Norm::layer ? sum / n : 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  for (std::size_t i = 0; i < test.elements; ++i) {
    if (work.norm != Norm::none) {
      x[i] = (x[i] - mean) / std::sqrt(squares / n + work.epsilon);
      if (work.weight != nullptr) x[i] *= widened(test.type, test.weight, i);
      if (work.shift != nullptr) x[i] += widened(test.type, test.shift, i);
    }
    x[i] = activated(x[i], work.activation);
  }
  return x;
}

// How far a result may be from x: what storing rounds, and what floats do.
double tolerance(DataType out, double x, double largest) {
  const double computed = 1e-5 * std::max(1.0, largest);
  switch (out) {
    case DataType::f16:
      return computed + std::abs(x) * 0x1p-11 + 0x1p-25;
    case DataType::bf16:
      return computed + std::abs(x) * 0x1p-8;
    case DataType::i8:
      return computed + largest / 127 * 0.501;
    case DataType::f8e4m3:
      return computed + std::abs(x) * 0x1p-4 + largest / 448 * 0x1p-10;
    default:
      return computed;
  }
}

template <class Visit>
void for_each_kind(const Visit& visit) {
  for (const DataType type : kTypes) {
    for (const DataType out : kOuts) {
      for (const std::size_t elements : kSizes) {
        for (int kind = 0; kind < 12; ++kind) {
          Case test(type, out, 3, elements);
          if (kind % 2 == 1) test.work.residual = test.residual.data();
          if (kind % 3 == 1) test.work.bias = test.bias.data();
          test.work.norm = static_cast<Norm>(kind % 3);
          if (test.work.norm != Norm::none && kind > 3) test.work.weight = test.weight.data();
          if (test.work.norm == Norm::layer && kind > 5) test.work.shift = test.shift.data();
          test.work.activation = static_cast<Activation>(kind % 4);
          visit(test);
          if (testing::Test::HasFailure()) {
            ADD_FAILURE() << name_of(type) << " to " << name_of(out) << ", " << elements
                          << " elements, kind " << kind;
            return;
          }
        }
      }
    }
  }
}

TEST(Rows, AreWhatTheFormulasSay) {
  for_each_kind([](Case& test) {
    const auto residual = test.residual;
    test.run(best_isa());
    for (std::size_t row = 0; row < test.rows; ++row) {
      const std::vector<double> want = expected(test, residual, row);
      double largest = 0;
      for (const double x : want) largest = std::max(largest, std::abs(x));
      for (std::size_t i = 0; i < test.elements; ++i) {
        ASSERT_NEAR(test.result(row, i), want[i], tolerance(test.out_type, want[i], largest))
            << "row " << row << ", element " << i;
      }
    }
  });
}

// The row alone decides: not the instruction set, not the rows beside it.
TEST(Rows, HaveTheSameBitsEverywhere) {
  for_each_kind([](Case& test) {
    Case first = test;
    const auto bind = [](Case& c) {
      c.work.rows = c.in.data();
      c.work.out = c.out.data();
      c.work.scratch = c.scratch.data();
      if (c.work.bias != nullptr) c.work.bias = c.bias.data();
      if (c.work.weight != nullptr) c.work.weight = c.weight.data();
      if (c.work.shift != nullptr) c.work.shift = c.shift.data();
      if (c.work.residual != nullptr) c.work.residual = c.residual.data();
      if (c.work.scales != nullptr) c.work.scales = c.scales.data();
    };
    bind(first);
    first.run(Isa::portable);
    for (const Isa isa : kAllIsas) {
      Case other = test;
      bind(other);
      // Row by row, the last one first.
      const RowWork all = other.work;
      for (std::size_t row = test.rows; row-- > 0;) {
        const std::size_t at = row * test.elements;
        RowWork& one = other.work;
        one = all;
        one.count = 1;
        one.rows = &other.in[at * size_of(test.type)];
        one.out = &other.out[at * size_of(test.out_type)];
        if (one.residual != nullptr) one.residual = &other.residual[at * size_of(test.type)];
        if (one.scales != nullptr) one.scales = &other.scales[row];
        other.run(isa);
      }
      ASSERT_EQ(other.out, first.out) << name_of(isa);
      ASSERT_EQ(other.residual, first.residual) << name_of(isa);
      ASSERT_EQ(other.scales, first.scales) << name_of(isa);
    }
  });
}

// Nothing behind a row is written.
TEST(Rows, EndWhereTheyEnd) {
  for (const Isa isa : kAllIsas) {
    for (const DataType out : kOuts) {
      Case test(DataType::bf16, out, 1, 37);
      test.out.resize(37 * size_of(out) + 64, std::byte{0x5a});
      test.residual.resize(37 * 2 + 64, std::byte{0x5a});
      test.work.out = test.out.data();
      test.work.residual = test.residual.data();
      test.run(isa);
      for (std::size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(test.out[37 * size_of(out) + i], std::byte{0x5a});
        ASSERT_EQ(test.residual[37 * 2 + i], std::byte{0x5a});
      }
    }
  }
}

TEST(Rows, OfScaledTypesSayWhatTheyCannotHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DataType out : {DataType::i8, DataType::f8e4m3}) {
    for (const Isa isa : kAllIsas) {
      for (const float odd : {0.0F, 1e-38F, infinity, -infinity, std::nanf("")}) {
        Case test(DataType::f32, out, 2, 50);
        auto* in = reinterpret_cast<float*>(test.in.data());
        if (odd == 0.0F || odd == 1e-38F) std::fill_n(in, 50, 0.0F);
        in[17] = odd;
        test.run(isa);
        const float scale = test.scales[0];
        if (std::isnan(odd)) {
          EXPECT_TRUE(std::isnan(scale));
        } else {
          EXPECT_EQ(scale, std::isinf(odd) ? infinity : 0.0F);
        }
        for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(test.out[i], std::byte{0});
        // The next row is not touched by it.
        EXPECT_TRUE(std::isfinite(test.scales[1]) && test.scales[1] > 0);
      }
    }
  }
}

TEST(Rows, ReachTheLargestScaledValue) {
  Case test(DataType::f32, DataType::i8, 1, 4);
  const float in[] = {-8.0F, 8.0F, 4.0F, 0.0F};
  std::memcpy(test.in.data(), in, sizeof(in));
  test.run(best_isa());
  EXPECT_EQ(test.scales[0], 8.0F / 127.0F);
  const std::int8_t want[] = {-127, 127, 64, 0};  // 63.5 to even
  EXPECT_EQ(std::memcmp(test.out.data(), want, sizeof(want)), 0);
}

TEST(Rows, KeepNanAndInfinityInFloats) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Isa isa : kAllIsas) {
    for (const DataType out : {DataType::f32, DataType::f16, DataType::bf16}) {
      for (const Activation activation :
           {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::silu}) {
        Case test(DataType::f32, out, 1, 20);
        test.work.activation = activation;
        auto* in = reinterpret_cast<float*>(test.in.data());
        in[3] = std::bit_cast<float>(0x7fffffffU);
        in[19] = infinity;
        in[5] = -100.0F;
        test.run(isa);
        EXPECT_TRUE(std::isnan(test.result(0, 3)));
        EXPECT_EQ(test.result(0, 19), infinity);
        EXPECT_EQ(test.result(0, 5), activation == Activation::none ? -100.0 : 0.0);
      }
    }
  }
}

// The exponential, over all of its range.
TEST(Rows, ActivateToTheLastPlaces) {
  constexpr std::size_t kMany = 20'000;
  for (const Activation activation : {Activation::gelu_tanh, Activation::silu}) {
    Case test(DataType::f32, DataType::f32, 1, kMany);
    test.work.activation = activation;
    auto* in = reinterpret_cast<float*>(test.in.data());
    for (std::size_t i = 0; i < kMany; ++i) in[i] = (static_cast<float>(i) - 8000.0F) / 1000.0F;
    test.run(best_isa());
    for (std::size_t i = 0; i < kMany; ++i) {
      const double want = activated(in[i], activation);
      // tanh of the double loop loses what lies below its last place near -1.
      ASSERT_NEAR(test.result(0, i), want, std::abs(want) * 1e-6 + 1e-7) << in[i];
    }
  }
}

// All codes there and back, and what lies between them and beyond them.
template <class T>
void expect_conversions() {
  std::vector<T> codes(std::size_t{1} << (8 * sizeof(T)));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = T::from_bits(static_cast<decltype(T::bits)>(i));
  }
  std::vector<float> between;
  for (std::size_t i = 0; i + 1 < codes.size(); ++i) {
    const auto low = static_cast<float>(codes[i]), high = static_cast<float>(codes[i + 1]);
    for (const float part : {0.25F, 0.5F, 0.75F}) between.push_back(low + (high - low) * part);
    between.push_back(low * 2);
  }
  for (const Isa isa : kAllIsas) {
    const Conversions kernels = find_conversions(data_type_of<T>, isa);
    for (const std::size_t skipped : {0, 1, 5}) {
      const std::size_t n = codes.size() - skipped;
      std::vector<float> wide(n);
      kernels.widen(wide.data(), codes.data() + skipped, n);
      std::vector<T> back(n);
      kernels.narrow(back.data(), wide.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const T code = codes[i + skipped];
        const auto want = static_cast<float>(code);
        if (want != want) {
          EXPECT_TRUE(wide[i] != wide[i] && static_cast<float>(back[i]) != static_cast<float>(back[i]));
          continue;
        }
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(want));
        ASSERT_EQ(back[i].bits, T(want).bits) << want;
      }
    }
    std::vector<T> rounded(between.size());
    kernels.narrow(rounded.data(), between.data(), between.size());
    for (std::size_t i = 0; i < between.size(); ++i) {
      if (between[i] != between[i]) continue;
      ASSERT_EQ(rounded[i].bits, T(between[i]).bits) << between[i] << ", " << name_of(isa);
    }
  }
}

TEST(Conversions, AreThoseOfTheScalarTypes) {
  expect_conversions<Half>();
  expect_conversions<BFloat16>();
  expect_conversions<Float8E4M3>();
  expect_conversions<Float8E5M2>();
  EXPECT_EQ(find_conversions(DataType::f32, Isa::portable).widen, nullptr);
}

TEST(Rows, HaveKernelsForWhatTheySay) {
  for (const DataType type : {DataType::f64, DataType::i8, DataType::f8e4m3}) {
    EXPECT_EQ(find_rows(type, DataType::f32, Isa::portable), nullptr);
  }
  EXPECT_EQ(find_rows(DataType::f32, DataType::f64, Isa::avx512), nullptr);
  EXPECT_EQ(find_rows(DataType::f32, DataType::f8e5m2, Isa::avx2), nullptr);
}

}  // namespace
}  // namespace rankine
