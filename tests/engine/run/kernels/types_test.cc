#include "engine/run/kernels/types.h"
#include "engine/base/numbers.h"
#include "engine/run/kernels/reduce.h"
#include "tests/engine/run/kernels/scalar_reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(DataTypeTest, NamesRoundTripAndSizesFit) {
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    EXPECT_EQ(parse_data_type(name_of(type)), type) << name_of(type);
    with_element(type, [&]<class T>() {
      EXPECT_EQ(sizeof(T), size_of(type)) << name_of(type);
      EXPECT_EQ(data_type_of<T>, type) << name_of(type);
      EXPECT_EQ(data_type_of<const T>, type) << name_of(type);
    });
  }
  static_assert(data_type_of<long long> == DataType::i64);
  static_assert(data_type_of<unsigned long> == DataType::u64);
}

TEST(DataTypeTest, ParsesTheSpellingsOfTheField) {
  const std::pair<const char*, DataType> spellings[] = {{"float", DataType::f32},
                                                        {"Float32", DataType::f32},
                                                        {"double", DataType::f64},
                                                        {"half", DataType::f16},
                                                        {"float16", DataType::f16},
                                                        {"bfloat16", DataType::bf16},
                                                        {"BF16", DataType::bf16},
                                                        {"int8", DataType::i8},
                                                        {"uint8", DataType::u8},
                                                        {"int32", DataType::i32},
                                                        {"uint32", DataType::u32},
                                                        {"int64", DataType::i64},
                                                        {"uint64", DataType::u64},
                                                        {"f8e4m3", DataType::f8e4m3},
                                                        {"float8_e4m3fn", DataType::f8e4m3},
                                                        {"float8_e5m2", DataType::f8e5m2},
                                                        {"bool", DataType::b8},
                                                        {"complex64", DataType::c64},
                                                        {"complex128", DataType::c128}};
  for (const auto& [text, type] : spellings) EXPECT_EQ(parse_data_type(text), type) << text;
  for (const char* no :
       {"", "f", "f3", "f322", "float128", "int16", " f32", "f32 ", "complex", "raw"}) {
    EXPECT_EQ(parse_data_type(no), std::nullopt) << no;
  }
}

TEST(ReduceOpTest, ParsesItsNames) {
  for (int o = 0; o < kReduceOps; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    EXPECT_EQ(parse_reduce_op(name_of(op)), op) << name_of(op);
  }
  EXPECT_EQ(parse_reduce_op("SUM"), ReduceOp::sum);
  for (const char* no : {"", "summ", "su", "minimum", "nand"}) {
    EXPECT_EQ(parse_reduce_op(no), std::nullopt) << no;
  }
}

TEST(ReduceOpTest, SaysWhatATypeTakes) {
  EXPECT_EQ(supported_ops(DataType::c64), "c64 takes sum, prod and avg");
  EXPECT_EQ(supported_ops(DataType::f8e5m2), "f8e5m2 takes sum, prod, min, max and avg");
  EXPECT_EQ(supported_ops(DataType::b8), "b8 takes sum, prod, min, max, band, bor and bxor");
  for (int o = 0; o < kReduceOps; ++o) {
    EXPECT_FALSE(supports(DataType::raw, static_cast<ReduceOp>(o)));
  }
  for (int t = 0; t < kDataTypes; ++t) {
    EXPECT_FALSE(supports(static_cast<DataType>(t), ReduceOp::user));
  }
}

TEST(ReduceOpTest, BitOperationsAreForIntegers) {
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (type == DataType::b8 || is_complex(type)) continue;  // above
      const bool bits = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
      const bool number = with_element(type, []<class T>() { return !std::is_integral_v<T>; });
      EXPECT_EQ(supports(type, op), !(bits && number)) << name_of(type) << " " << name_of(op);
    }
  }
}

// The small floats, compared with their definitions: every code, and between any two neighbours the
// midpoint and the floats beside it; then floats beyond both ends.
template <class T>
void expect_as_defined() {
  using Defined = reference::Format<T>;
  using Code = decltype(T::bits);
  const auto expect_rounded = [](float value) {
    ASSERT_EQ(T(value).bits, Defined::encode(static_cast<double>(value))) << value;
    ASSERT_EQ(T(-value).bits, Defined::encode(-static_cast<double>(value))) << value;
  };
  double before = 0;
  for (int code = 0; code < 1 << (8 * sizeof(T) - 1); ++code) {
    for (const int sign : {0, 1 << (8 * sizeof(T) - 1)}) {
      const auto value = T::from_bits(static_cast<Code>(code | sign));
      const auto decoded = static_cast<float>(value);
      const double defined = Defined::decode(value.bits);
      ASSERT_EQ(std::signbit(decoded), sign != 0) << code;
      ASSERT_EQ(std::isnan(decoded), std::isnan(defined)) << code;
      if (std::isnan(defined)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(T(decoded)))) << code;
      } else {
        ASSERT_EQ(static_cast<double>(decoded), defined) << code;
      }
    }
    const double here = Defined::decode(static_cast<Code>(code));
    if (std::isnan(here)) continue;
    expect_rounded(static_cast<float>(here));
    if (std::isinf(here)) continue;
    const auto middle = static_cast<float>((before + here) / 2);
    for (const float value :
         {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      expect_rounded(value);
    }
    before = here;
  }
  using Limits = std::numeric_limits<float>;
  const auto largest = static_cast<float>(before);
  for (const float value : {largest * 1.0001F, largest * 1.01F, largest * 1.2F, 1e30F,
                            Limits::max(), Limits::infinity(), Limits::denorm_min(), 0.0F}) {
    expect_rounded(value);
  }
  // A NaN whose payload lies entirely in the dropped bits must not become infinity.
  for (const std::uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(T(std::bit_cast<float>(nan))))) << nan;
  }
}

TEST(SmallFloats, AreAsDefined) {
  expect_as_defined<Half>();
  expect_as_defined<BFloat16>();
  expect_as_defined<Float8E4M3>();
  expect_as_defined<Float8E5M2>();
}

// The row kernels, compared with loops in double; bit for bit equal for every instruction set and
// number of rows; and at the edges of scaled types.

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};
constexpr DataType kOuts[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::i8,
                              DataType::f8e4m3};
constexpr auto kAllIsas = [] {
  std::array<Isa, kIsas> all{};
  for (int i = 0; i < kIsas; ++i) all[i] = static_cast<Isa>(i);
  return all;
}();
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

// The inputs and outputs of a row kernel.
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

// Row `row` in double; only the residual is rounded. `residual` holds the values before the call.
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

// The largest distance of a result from x: the rounding of the stored type and of float arithmetic.
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

// A row's bits depend on the row only, not on the instruction set or the rows beside it.
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
      // Row by row, beginning with the last one.
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

// The kernel writes nothing behind a row.
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
        // The kernel does not touch the next row.
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
  const std::int8_t want[] = {-127, 127, 64, 0};  // 63.5 rounds to even
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

// The exponential, over its whole range.
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
      // tanh of the double loop loses the digits below its last place near -1.
      ASSERT_NEAR(test.result(0, i), want, std::abs(want) * 1e-6 + 1e-7) << in[i];
    }
  }
}

// Converts all codes to float and back, and converts floats between and beyond them.
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
          EXPECT_TRUE(wide[i] != wide[i] &&
                      static_cast<float>(back[i]) != static_cast<float>(back[i]));
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

// Packs blocks of many sizes on all instruction sets as a scalar loop does: whole and partial
// registers, a last block that is partly zeros, one that is all zeros, tiny values, an infinity.
template <class T, class As>
void expect_packing() {
  constexpr DataType kType = data_type_of<T>, kAs = data_type_of<As>;
  constexpr float kLargest = kAs == DataType::i8 ? 127.0F : 448.0F;
  constexpr std::size_t kCount = 1000;
  std::vector<T> in;
  std::uint64_t random = 1;
  for (std::size_t i = 0; i < kCount; ++i) {
    random = splitmix(random + kSplitMixStep);
    const float part = static_cast<float>(static_cast<std::int64_t>(random) >> 40) * 0x1p-23F;
    in.push_back(T(i / 100 == 3 ? part * 0x1p-130F : std::ldexp(part, static_cast<int>(i / 64))));
  }
  in[777] = T(-std::numeric_limits<float>::infinity());
  for (const std::size_t block : {1, 7, 32, 64, 100, 128, 999}) {
    const std::size_t blocks = (kCount - 1) / block + 2, stride = blocks * (block + 4);
    std::vector<float> scales(blocks);
    std::vector<As> bytes(blocks * block);
    std::vector<T> sums(kCount);
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto value = [&](std::size_t i) {
        return i < kCount ? static_cast<float>(in[i]) : 0.0F;
      };
      float most = 0;
      for (std::size_t i = b * block; i < (b + 1) * block; ++i) {
        most = std::max(most, std::abs(value(i)));
      }
      const bool is_number = most <= std::numeric_limits<float>::max();
      scales[b] = std::max(most * (1 / kLargest), 0x1p-126F);
      const float factor = 1 / scales[b];
      if (!is_number) scales[b] = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t i = b * block; i < (b + 1) * block; ++i) {
        const float scaled = is_number ? value(i) * factor : 0;
        bytes[i] = As(kAs == DataType::i8 ? std::nearbyint(scaled) : scaled);
        float sum = 0;  // of this and once more
        for (int twice = 0; twice < 2; ++twice) sum += static_cast<float>(bytes[i]) * scales[b];
        if (i < kCount) sums[i] = T(sum);
      }
    }
    for (const Isa isa : kAllIsas) {
      const Packing kernels = find_packing(kType, kAs, isa);
      std::vector<std::byte> packed(2 * stride + 1, std::byte{0xa5});
      for (const std::size_t at : {std::size_t{0}, stride}) {
        kernels.pack({packed.data() + at, packed.data() + at + 4 * blocks}, in.data(), kCount,
                     block, blocks);
      }
      ASSERT_EQ(std::memcmp(packed.data() + 4 * blocks, bytes.data(), bytes.size()), 0)
          << name_of(isa) << ", block " << block;
      EXPECT_EQ(packed.back(), std::byte{0xa5});
      std::vector<T> out(kCount + 1, T(3.0F));
      kernels.unpack(out.data(), {packed.data(), packed.data() + 4 * blocks}, stride, 2, kCount,
                     block);
      EXPECT_EQ(static_cast<float>(out.back()), 3);
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto got = static_cast<float>(out[i]), want = static_cast<float>(sums[i]);
        ASSERT_TRUE(want != want ? got != got : got == want)
            << name_of(isa) << ", block " << block << ", " << i << ": " << got << ", " << want;
      }
      // Each source has bytes of its own.
      std::fill_n(packed.data() + stride + 4 * blocks, bytes.size(), std::byte{0});
      kernels.unpack(out.data(), {packed.data(), packed.data() + 4 * blocks}, stride, 2, kCount,
                     block);
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto got = static_cast<float>(out[i]);
        const auto want = static_cast<float>(T(static_cast<float>(bytes[i]) * scales[i / block]));
        ASSERT_TRUE(want != want ? got != got : got == want)
            << name_of(isa) << ", block " << block << ", " << i << ": " << got << ", " << want;
      }
    }
  }
}

TEST(Packing, IsThatOfAScalarLoop) {
  expect_packing<float, std::int8_t>();
  expect_packing<float, Float8E4M3>();
  expect_packing<Half, std::int8_t>();
  expect_packing<Half, Float8E4M3>();
  expect_packing<BFloat16, std::int8_t>();
  expect_packing<BFloat16, Float8E4M3>();
  EXPECT_EQ(find_packing(DataType::f64, DataType::i8, Isa::portable).pack, nullptr);
  EXPECT_EQ(find_packing(DataType::f32, DataType::u8, hardware_isa()).unpack, nullptr);
}

TEST(Rows, HaveKernelsForWhatTheySay) {
  for (const DataType type : {DataType::f64, DataType::i8, DataType::f8e4m3}) {
    EXPECT_EQ(find_rows(type, DataType::f32, Isa::portable), nullptr);
  }
  EXPECT_EQ(find_rows(DataType::f32, DataType::f64, hardware_isa()), nullptr);
  EXPECT_EQ(find_rows(DataType::f32, DataType::f8e5m2, hardware_isa()), nullptr);
}

}  // namespace
}  // namespace rankine
