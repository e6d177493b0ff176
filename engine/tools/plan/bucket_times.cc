#include "engine/tools/plan/bucket_times.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "algorithms/parameters.h"
#include "engine/network/predict.h"
#include "engine/tools/plan/hidden_time.h"

namespace rankine::tools {
namespace {

// Rounds times alpha and the busiest rank's bytes times beta; nothing where either is computed, or
// where messages are not all alike.
std::optional<double> closed_form(const Algorithm& line, const Params& params, const Fabric& fabric,
                                  std::uint64_t bytes) {
  if (line.rounds == kComputed || line.sent == kComputed) return {};
  if (fabric.two_level() || fabric.wiring.shares_links() || !fabric.odd.empty()) return {};
  return evaluate(line.rounds, params).to_double() * fabric.link.latency().to_double() +
         evaluate(line.sent, params).to_double() * static_cast<double>(bytes) *
             fabric.link.per_byte().to_double();
}

Result<BucketRow> row_of(const BucketQuestion& q, std::uint64_t tensors) {
  BucketRow row{.tensors = tensors, .bytes = tensors * q.tensor_bytes};
  row.calls = (q.tensors + tensors - 1) / tensors;
  Params params;
  params.ranks = q.ranks;
  params.segments = 0;
  const Algorithm& line = *q.algorithm;
  const auto found = predict_one(line, line.only_taken(params), row.bytes, q.fabric);
  if (!found.ok()) return found.status();
  if (!found->ok()) {
    return invalid_argument("--algo is '" + std::string(line.name) + "': " + found->refusal);
  }
  row.each = row.last = found->seconds;
  if (const std::uint64_t rest = q.tensors % tensors; rest > 0) {
    const auto last = predict_one(line, line.only_taken(params), rest * q.tensor_bytes, q.fabric);
    if (!last.ok()) return last.status();
    row.last = last->seconds;
  }
  row.formula = closed_form(line, found->params, q.fabric, row.bytes);
  row.exposed = q.backward > 0
                    ? exposed_behind(q.backward, static_cast<double>(row.calls), row.each)
                    : row.all();
  return row;
}

std::vector<std::uint64_t> sizes_of(const BucketQuestion& q) {
  std::vector<std::uint64_t> sizes = {
      q.tensors, std::clamp<std::uint64_t>(q.bucket / q.tensor_bytes, 1, q.tensors)};
  for (std::uint64_t n = 1; n < q.tensors; n *= 2) sizes.push_back(n);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

Result<std::vector<BucketRow>> bucket_rows(const BucketQuestion& question) {
  std::vector<BucketRow> rows;
  for (const std::uint64_t tensors : sizes_of(question)) {
    auto row = row_of(question, tensors);
    if (!row.ok()) return row.status();
    rows.push_back(*row);
  }
  return rows;
}

std::size_t best_bucket(const std::vector<BucketRow>& rows) {
  const auto best = std::min_element(
      rows.begin(), rows.end(),
      [](const BucketRow& x, const BucketRow& y) { return x.exposed < y.exposed; });
  return static_cast<std::size_t>(best - rows.begin());
}

// Where alpha's part of a call is a and the backward pass takes T, n calls keep n a + M beta - (n -
// 1) T / n waiting beyond it, which is least at n = sqrt(T / a).
std::optional<double> best_calls(const BucketQuestion& question) {
  Params params;
  params.ranks = question.ranks;
  const Algorithm& line = *question.algorithm;
  const auto latency = closed_form(line, line.only_taken(params), question.fabric, 0);
  if (!latency || !(*latency > 0) || !(question.backward > 0)) return {};
  return std::clamp(std::sqrt(question.backward / *latency), 1.0,
                    static_cast<double>(question.tensors));
}

Table bucket_table(const std::vector<BucketRow>& rows, bool hides) {
  Table table(as::bytes("bucket", "bytes"), "tensors", "calls",
              as::model_time("each", "seconds_each"), as::model_time("formula", "formula_each"),
              as::model_time("all", "seconds"), as::model_time("exposed").when(hides),
              As("{:.2f} x")("gain", "-"),
              as::model_time("played").when(rows.front().played.has_value()), as::text(""));
  const BucketRow& best = rows[best_bucket(rows)];
  for (const BucketRow& row : rows) {
    table.add(row.bytes, row.tensors, row.calls, row.each, row.formula, row.all(), row.exposed,
              rows.front().exposed / row.exposed, row.played, &row == &best ? "best" : "");
  }
  return table;
}

}  // namespace rankine::tools
