#include "engine/run/kernels/types.h"

#include <algorithm>
#include <array>

namespace rankine {
namespace {

constexpr std::array<std::size_t, kDataTypes> kSizes = {4, 8, 2, 2, 1, 1, 4, 4, 8, 8};
constexpr std::array<std::string_view, kDataTypes> kTypeNames = {
    "f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u32", "i64", "u64"};
constexpr std::array<std::string_view, kReduceOps> kOpNames = {"sum", "prod", "min", "max",
                                                               "avg", "band", "bor", "bxor"};

template <class Value>
struct Spelling {
  std::string_view text;
  Value value;
};

constexpr Spelling<DataType> kTypeAliases[] = {
    {"float32", DataType::f32}, {"float", DataType::f32},     {"fp32", DataType::f32},
    {"single", DataType::f32},  {"float64", DataType::f64},   {"double", DataType::f64},
    {"fp64", DataType::f64},    {"float16", DataType::f16},   {"half", DataType::f16},
    {"fp16", DataType::f16},    {"bfloat16", DataType::bf16}, {"bfloat", DataType::bf16},
    {"int8", DataType::i8},     {"char", DataType::i8},       {"uint8", DataType::u8},
    {"int32", DataType::i32},   {"int", DataType::i32},       {"uint32", DataType::u32},
    {"int64", DataType::i64},   {"uint64", DataType::u64},
};
constexpr Spelling<ReduceOp> kOpAliases[] = {
    {"product", ReduceOp::prod}, {"mean", ReduceOp::avg}, {"average", ReduceOp::avg},
    {"and", ReduceOp::band},     {"or", ReduceOp::bor},   {"xor", ReduceOp::bxor},
};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

template <class Value, class Names, class Aliases>
std::optional<Value> parse(std::string_view text, const Names& names, const Aliases& aliases) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (same_word(text, names[i])) return static_cast<Value>(i);
  }
  for (const auto& alias : aliases) {
    if (same_word(text, alias.text)) return alias.value;
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(DataType type) { return kSizes[static_cast<std::size_t>(type)]; }
std::string_view name_of(DataType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < kTypeNames.size() ? kTypeNames[i] : "unknown";
}
std::string_view name_of(ReduceOp op) {
  const auto i = static_cast<std::size_t>(op);
  return i < kOpNames.size() ? kOpNames[i] : "unknown";
}

std::optional<DataType> parse_data_type(std::string_view text) {
  return parse<DataType>(text, kTypeNames, kTypeAliases);
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  return parse<ReduceOp>(text, kOpNames, kOpAliases);
}

}  // namespace rankine
