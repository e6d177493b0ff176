#include "engine/run/kernels/types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "tests/engine/run/kernels/scalar_reference.h"

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
  EXPECT_EQ(parse_data_type("float"), DataType::f32);
  EXPECT_EQ(parse_data_type("Float32"), DataType::f32);
  EXPECT_EQ(parse_data_type("double"), DataType::f64);
  EXPECT_EQ(parse_data_type("half"), DataType::f16);
  EXPECT_EQ(parse_data_type("float16"), DataType::f16);
  EXPECT_EQ(parse_data_type("bfloat16"), DataType::bf16);
  EXPECT_EQ(parse_data_type("BF16"), DataType::bf16);
  EXPECT_EQ(parse_data_type("int8"), DataType::i8);
  EXPECT_EQ(parse_data_type("uint8"), DataType::u8);
  EXPECT_EQ(parse_data_type("int32"), DataType::i32);
  EXPECT_EQ(parse_data_type("uint32"), DataType::u32);
  EXPECT_EQ(parse_data_type("int64"), DataType::i64);
  EXPECT_EQ(parse_data_type("uint64"), DataType::u64);
  EXPECT_EQ(parse_data_type("f8e4m3"), DataType::f8e4m3);
  EXPECT_EQ(parse_data_type("float8_e4m3fn"), DataType::f8e4m3);
  EXPECT_EQ(parse_data_type("float8_e5m2"), DataType::f8e5m2);
  EXPECT_EQ(parse_data_type("bool"), DataType::b8);
  EXPECT_EQ(parse_data_type("complex64"), DataType::c64);
  EXPECT_EQ(parse_data_type("complex128"), DataType::c128);
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

template <class T>
class SixteenBitFloatTest : public ::testing::Test {};
using SixteenBitFloats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBitFloatTest, SixteenBitFloats);

TYPED_TEST(SixteenBitFloatTest, EveryCodeDecodesAndComesBack) {
  for (std::uint32_t code = 0; code < 0x10000U; ++code) {
    const auto value = TypeParam::from_bits(static_cast<std::uint16_t>(code));
    const float decoded = static_cast<float>(value);
    const double expected = reference::Format<TypeParam>::decode(value.bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(decoded)))) << code;
      ASSERT_EQ(std::signbit(decoded), code >= 0x8000U) << code;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded),
                std::bit_cast<std::uint32_t>(static_cast<float>(expected)))
          << code;
      ASSERT_EQ(TypeParam(decoded).bits, code);
    }
  }
}

// Between any two neighbours: the midpoint goes to the even one, the floats beside it to the nearer
// one.
TYPED_TEST(SixteenBitFloatTest, RoundsToNearestEven) {
  const auto infinity = TypeParam(std::numeric_limits<float>::infinity()).bits;
  for (std::uint32_t code = 0; code < infinity; ++code) {
    const auto low = reference::Format<TypeParam>::decode(static_cast<std::uint16_t>(code));
    // What would come after the largest number rounds to infinity from its midpoint on.
    const double high =
        code + 1U < infinity
            ? reference::Format<TypeParam>::decode(static_cast<std::uint16_t>(code + 1U))
            : 2 * low - reference::Format<TypeParam>::decode(static_cast<std::uint16_t>(code - 1U));
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float sign : {1.0F, -1.0F}) {
      const std::uint32_t bit = sign < 0 ? 0x8000U : 0U;
      ASSERT_EQ(TypeParam(sign * middle).bits, (bit | code) + (code & 1U)) << code;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, 0.0F)).bits, bit | code) << code;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, INFINITY)).bits, bit | (code + 1U)) << code;
    }
  }
}

TYPED_TEST(SixteenBitFloatTest, ExtremesAndNan) {
  using Limits = std::numeric_limits<float>;
  const auto infinity = TypeParam(Limits::infinity()).bits;
  EXPECT_EQ(TypeParam(Limits::max()).bits, infinity);
  EXPECT_EQ(TypeParam(-Limits::max()).bits, infinity | 0x8000U);
  EXPECT_EQ(TypeParam(Limits::denorm_min()).bits, 0);
  EXPECT_EQ(TypeParam(-Limits::denorm_min()).bits, 0x8000U);
  // A NaN whose payload lies entirely in the bits that are dropped must not become infinity.
  for (const std::uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(nan))))) << nan;
  }
}

template <class T>
class EightBitFloatTest : public ::testing::Test {};
using EightBitFloats = ::testing::Types<Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(EightBitFloatTest, EightBitFloats);

TYPED_TEST(EightBitFloatTest, EveryCodeDecodesAndComesBack) {
  for (int code = 0; code < 0x100; ++code) {
    const auto value = TypeParam::from_bits(static_cast<std::uint8_t>(code));
    const float decoded = static_cast<float>(value);
    const double expected = reference::Format<TypeParam>::decode(value.bits);
    ASSERT_EQ(std::signbit(decoded), code >= 0x80) << code;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(decoded)))) << code;
      continue;
    }
    ASSERT_EQ(static_cast<double>(decoded), expected) << code;
    const int back =
        std::isinf(decoded) ? static_cast<int>(TypeParam::kLargest) | (code & 0x80) : code;
    ASSERT_EQ(TypeParam(decoded).bits, back) << code;
  }
}

TYPED_TEST(EightBitFloatTest, RoundsToNearestEvenAndSaturates) {
  using Reference = reference::Format<TypeParam>;
  for (std::uint32_t code = 0; code < TypeParam::kLargest; ++code) {
    const auto low = Reference::decode(static_cast<std::uint8_t>(code));
    const auto high = Reference::decode(static_cast<std::uint8_t>(code + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float sign : {1.0F, -1.0F}) {
      const std::uint32_t bit = sign < 0 ? 0x80U : 0U;
      ASSERT_EQ(TypeParam(sign * middle).bits, (bit | code) + (code & 1U)) << code;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, 0.0F)).bits, bit | code) << code;
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, INFINITY)).bits, bit | (code + 1U)) << code;
    }
  }
  const auto largest = static_cast<float>(Reference::decode(TypeParam::kLargest));
  EXPECT_EQ(largest, TypeParam::kHasInfinity ? 57344.0F : 448.0F);
  for (const float beyond : {largest, largest * 1.2F, 1e30F, INFINITY}) {
    EXPECT_EQ(TypeParam(beyond).bits, TypeParam::kLargest) << beyond;
    EXPECT_EQ(TypeParam(-beyond).bits, TypeParam::kLargest | 0x80U) << beyond;
  }
}

}  // namespace
}  // namespace rankine
