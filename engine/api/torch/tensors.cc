#include "engine/api/torch/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rankine::torch_backend {
namespace {

std::optional<DataType> type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DataType::f32;
    case at::kDouble:
      return DataType::f64;
    case at::kHalf:
      return DataType::f16;
    case at::kBFloat16:
      return DataType::bf16;
    case at::kChar:
      return DataType::i8;
    case at::kByte:
      return DataType::u8;
    case at::kInt:
      return DataType::i32;
    case at::kLong:
      return DataType::i64;
    case at::kBool:
      return DataType::b8;
    case at::kComplexFloat:
      return DataType::c64;
    case at::kComplexDouble:
      return DataType::c128;
    default:
      return std::nullopt;
  }
}

void check(const at::Tensor& tensor, std::string_view argument) {
  TORCH_CHECK(tensor.defined(), argument, " is no tensor");
  TORCH_CHECK(tensor.layout() == at::kStrided, argument, " is ", tensor.layout(),
              "; allowed are dense tensors");
  TORCH_CHECK(tensor.device().is_cpu(), argument, " is on ", tensor.device(),
              "; allowed are tensors on the CPU");
  TORCH_CHECK(tensor.is_contiguous(), argument, " has gaps or another order (sizes ",
              tensor.sizes(), ", strides ", tensor.strides(), "); allowed are contiguous tensors");
}

}  // namespace

Elements elements_of(const at::Tensor& tensor, std::string_view argument) {
  check(tensor, argument);
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (const auto type = type_of(tensor.scalar_type())) return {tensor.data_ptr(), count, *type};
  return {tensor.data_ptr(), count * tensor.element_size(), DataType::u8};
}

Elements summands_of(const at::Tensor& tensor, std::string_view argument) {
  const Elements elements = elements_of(tensor, argument);
  TORCH_CHECK(type_of(tensor.scalar_type()).has_value(), argument, " is of ", tensor.scalar_type(),
              "; reduced are Float, Double, Half, BFloat16, Char, Byte, Int, Long, Bool, "
              "ComplexFloat and ComplexDouble");
  return elements;
}

ReduceOp operation_of(const c10d::ReduceOp& op) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::prod;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::band;
    case c10d::ReduceOp::BOR:
      return ReduceOp::bor;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::bxor;
    default:
      break;
  }
  TORCH_CHECK(false, "op is ", op == c10d::ReduceOp::PREMUL_SUM ? "PREMUL_SUM" : "unknown",
              "; allowed are SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR");
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors, std::string_view argument) {
  TORCH_CHECK(tensors.size() == 1, argument, " has ", tensors.size(), " tensors; allowed is one");
  return tensors.front();
}

const std::vector<at::Tensor>& only(const std::vector<std::vector<at::Tensor>>& lists,
                                    std::string_view argument) {
  TORCH_CHECK(lists.size() == 1, argument, " has ", lists.size(), " lists; allowed is one");
  return lists.front();
}

void none_away_from_root(bool is_empty, std::string_view argument) {
  TORCH_CHECK(is_empty, argument,
              " is given on a rank that is not the root; allowed is none there");
}

Row::Row(std::vector<at::Tensor> parts, std::size_t ranks, const at::Tensor& like,
         std::string_view argument)
    : parts_(std::move(parts)) {
  TORCH_CHECK(parts_.size() == ranks, argument, " has ", parts_.size(), " tensors; allowed are ",
              ranks, ", one per rank");
  bool is_one = true;
  std::size_t all = 0;
  const std::byte* end = nullptr;
  for (std::size_t r = 0; r < ranks; ++r) {
    const at::Tensor& part = parts_[r];
    const Elements elements = elements_of(part, c10::str(argument, "[", r, "]"));
    TORCH_CHECK(part.scalar_type() == like.scalar_type(), argument, "[", r, "] is of ",
                part.scalar_type(), "; the other argument is of ", like.scalar_type());
    counts_.push_back(elements.count);
    is_even_ = is_even_ && elements.count == counts_.front();
    all += elements.count;
    const auto* begin = static_cast<const std::byte*>(elements.data);
    if (elements.count > 0) {
      is_one = is_one && (end == nullptr || begin == end);
      if (end == nullptr) whole_ = elements;
      end = begin + part.nbytes();
    }
  }
  if (!is_one) {
    copy_ = at::empty({static_cast<std::int64_t>(all)}, like.options());
    whole_ = elements_of(copy_, argument);
  }
}

void Row::pack_rows() const {
  if (!copy_.defined()) return;
  std::int64_t at = 0;
  for (const at::Tensor& part : parts_) {
    copy_.narrow(0, at, part.numel()).copy_(part.reshape({-1}));
    at += part.numel();
  }
}

void Row::unpack_rows() const {
  if (!copy_.defined()) return;
  std::int64_t at = 0;
  for (const at::Tensor& part : parts_) {
    part.view({-1}).copy_(copy_.narrow(0, at, part.numel()));
    at += part.numel();
  }
}

void all_to_all(Member& me, Call call, const OwnCounts& own) {
  const auto n = static_cast<std::size_t>(me.ranks());
  // Per rank: the counts that it sends, then the counts that it receives.
  std::vector<std::uint64_t> mine(own.sent.begin(), own.sent.end()), all(2 * n * n);
  mine.insert(mine.end(), own.received.begin(), own.received.end());
  me.all_gather(std::span<const std::uint64_t>(mine), std::span(all), call.options)
      .throw_if_error();
  std::vector<std::size_t> counts;  // one per sender and receiver
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const std::uint64_t sent = all[2 * n * from + to], received = all[2 * n * to + n + from];
      if (sent != received) {
        invalid_argument(fmt::format("rank {} sends {} elements to rank {}, which receives {} from "
                                     "it; allowed are equal numbers",
                                     from, sent, to, received))
            .throw_if_error();
      }
      counts.push_back(sent);
    }
  }
  call.collective = Collective::all_to_all;
  if (std::equal(counts.begin() + 1, counts.end(), counts.begin())) {
    call.count = counts.front();  // one cached plan serves all such calls
  } else {
    call.counts = counts;
  }
  me.call(call).throw_if_error();
}

}  // namespace rankine::torch_backend
