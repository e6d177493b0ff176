#include "engine/run/kernels/types.h"

#include <algorithm>
#include <array>
#include <vector>

namespace rankine {
namespace {

constexpr std::array<std::size_t, kDataTypes> kSizes = {4, 8, 2, 2, 1, 1, 4, 4,
                                                        8, 8, 1, 1, 1, 8, 16};
constexpr std::array<std::string_view, kDataTypes> kTypeNames = {
    "f32", "f64", "f16",    "bf16",   "i8", "u8",  "i32", "u32",
    "i64", "u64", "f8e4m3", "f8e5m2", "b8", "c64", "c128"};
constexpr std::array<std::string_view, kReduceOps> kOpNames = {"sum", "prod", "min", "max",
                                                               "avg", "band", "bor", "bxor"};

template <class Value>
struct Spelling {
  std::string_view text;
  Value value;
};

constexpr Spelling<DataType> kTypeAliases[] = {
    {"float32", DataType::f32},
    {"float", DataType::f32},
    {"fp32", DataType::f32},
    {"single", DataType::f32},
    {"float64", DataType::f64},
    {"double", DataType::f64},
    {"fp64", DataType::f64},
    {"float16", DataType::f16},
    {"half", DataType::f16},
    {"fp16", DataType::f16},
    {"bfloat16", DataType::bf16},
    {"bfloat", DataType::bf16},
    {"int8", DataType::i8},
    {"char", DataType::i8},
    {"uint8", DataType::u8},
    {"int32", DataType::i32},
    {"int", DataType::i32},
    {"uint32", DataType::u32},
    {"int64", DataType::i64},
    {"uint64", DataType::u64},
    {"float8_e4m3fn", DataType::f8e4m3},
    {"fp8_e4m3", DataType::f8e4m3},
    {"float8_e5m2", DataType::f8e5m2},
    {"fp8_e5m2", DataType::f8e5m2},
    {"bool", DataType::b8},
    {"boolean", DataType::b8},
    {"complex64", DataType::c64},
    {"complex128", DataType::c128},
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

std::size_t size_of(DataType type) {
  return type == DataType::raw ? 1 : kSizes[static_cast<std::size_t>(type)];
}
std::string_view name_of(DataType type) {
  const auto i = static_cast<std::size_t>(type);
  if (type == DataType::raw) return "raw";
  return i < kTypeNames.size() ? kTypeNames[i] : "unknown";
}
std::string_view name_of(ReduceOp op) {
  const auto i = static_cast<std::size_t>(op);
  if (op == ReduceOp::user) return "user";
  return i < kOpNames.size() ? kOpNames[i] : "unknown";
}

std::string supported_ops(DataType type) {
  std::vector<std::string_view> takes;
  for (int op = 0; op < kReduceOps; ++op) {
    if (supports(type, static_cast<ReduceOp>(op))) {
      takes.push_back(kOpNames[static_cast<std::size_t>(op)]);
    }
  }
  std::string text = std::string(name_of(type)) + " takes ";
  for (std::size_t i = 0; i < takes.size(); ++i) {
    if (i > 0) text += i + 1 < takes.size() ? ", " : " and ";
    text += takes[i];
  }
  return text;
}

std::optional<DataType> parse_data_type(std::string_view text) {
  return parse<DataType>(text, kTypeNames, kTypeAliases);
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  return parse<ReduceOp>(text, kOpNames, kOpAliases);
}

}  // namespace rankine
