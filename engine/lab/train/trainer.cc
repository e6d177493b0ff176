#include "engine/lab/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/numbers.h"
#include "engine/lab/train/layer.h"
#include "engine/lab/train/matrix.h"

namespace rankine::tools {
namespace {

constexpr std::size_t kCharacters = 2 * Corpus::kMostLength;
constexpr std::string_view kAlphabet = " .abcdefghijklmnopqrstuvwxyz";

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) { return splitmix(state_ += kSplitMixStep) % n; }
  std::string_view one_of(std::span<const std::string_view> words) {
    return words[below(words.size())];
  }

 private:
  std::uint64_t state_;
};

std::string sentence(Draw& draw) {
  static constexpr std::array<std::string_view, 4> kArticles = {"the", "a", "every", "one"};
  static constexpr std::array<std::string_view, 6> kNouns = {"rank",   "ring", "tree",
                                                             "switch", "port", "message"};
  static constexpr std::array<std::string_view, 6> kVerbs = {"sends to", "waits for", "adds to",
                                                             "reads",    "finds",     "leaves"};
  std::string text;
  const auto add = [&text](std::string_view word) { (text += word) += ' '; };
  add(draw.one_of(kArticles));
  add(draw.one_of(kNouns));
  add(draw.one_of(kVerbs));
  add(draw.one_of(kArticles));
  add(draw.one_of(kNouns));
  text.back() = '.';
  return text + ' ';
}

}  // namespace

Corpus::Corpus(std::uint64_t seed) : seed_(seed) {
  Draw draw(seed);
  while (tokens_.size() < kCharacters) {
    for (const char c : sentence(draw)) tokens_.push_back(static_cast<int>(kAlphabet.find(c)));
  }
}

int Corpus::vocabulary() const { return static_cast<int>(kAlphabet.size()); }

std::vector<int> Corpus::sequence(int step, int sequence, int length) const {
  Draw draw(
      mixed(mixed(seed_, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(sequence)));
  const std::size_t taken = static_cast<std::size_t>(length) + 1;
  const auto from =
      tokens_.begin() + static_cast<std::ptrdiff_t>(draw.below(tokens_.size() - taken));
  return {from, from + static_cast<std::ptrdiff_t>(taken)};
}

Seat::Seat(const Mapping& mapping) {
  const auto all = [](int of) { return Share{of, 0, of, nullptr}; };
  places_ = {.tensor = all(mapping[Axis::tp]),
             .stages = all(mapping[Axis::pp]),
             .data = all(mapping.data_parallel()),
             .experts = all(mapping[Axis::ep]),
             .expert_data = all(mapping.data_parallel())};
}

Seat::Seat(const Mapping& mapping, Member& me) {
  auto grid = Grid::make(me, {{"pp", mapping[Axis::pp]},
                              {"dp", mapping[Axis::dp]},
                              {"ep", mapping[Axis::ep]},
                              {"tp", mapping[Axis::tp]}});
  grid.status().throw_if_error();
  auto data = grid->across({"dp", "ep"});
  data.status().throw_if_error();
  grid_ = std::move(*grid);
  data_ = std::move(*data);
  const auto one = [this](const char* axis) {
    Member& group = grid_->axis(axis);
    return Share{group.ranks(), group.rank(), 1, &group};
  };
  const int shards = mapping.data_parallel(), ep = mapping[Axis::ep];
  places_ = {.tensor = one("tp"),
             .stages = one("pp"),
             .data = {shards, data_->rank(), 1, data_.get()},
             .experts = one("ep"),
             .expert_data = {shards, grid_->at("dp") * ep, ep, &grid_->axis("dp")},
             .everybody = &me};
}

Trainer::Trainer(const Training& training, const Seat& seat, const Corpus& corpus)
    : training_(training),
      type_(kept_type(training.model)),
      places_(seat.places()),
      corpus_(corpus) {
  const Model& model = training.model;
  const int zero = training.mapping.zero;
  const auto beginning = [&](std::uint64_t matrix, const Weights& w, std::span<float> values) {
    Beginning{mixed(training.seed, matrix), w.rows, w.cols}.fill(values.subspan(w.begin, w.size()),
                                                                 0, 0, w.cols);
  };
  if (is_first()) {
    WeightsLayout layout;
    tokens_ = layout.next(model.vocabulary, model.hidden);
    positions_ = layout.next(model.sequence, model.hidden);
    embedding_.emplace(layout.size(), places_.data, 1, zero, type_, [&](std::span<float> values) {
      beginning(1, tokens_, values);
      beginning(2, positions_, values);
    });
  }
  const int each = model.layers / places_.stages.of;
  for (int i = 0; i < each * places_.stages.count; ++i) {
    const int number = each * places_.stages.first + i;
    layers_.emplace_back(model, places_, zero,
                         mixed(training.seed, 4 + static_cast<std::uint64_t>(number)));
  }
  if (is_last()) {
    WeightsLayout layout;
    gains_ = layout.next(1, model.hidden);
    logits_ = layout.next(model.hidden, model.vocabulary);
    head_.emplace(layout.size(), places_.data, 1, zero, type_, [&](std::span<float> values) {
      std::fill_n(values.begin(), gains_.size(), 1.0F);
      beginning(3, logits_, values);
    });
  }
  for (Member* group : {places_.data.group, places_.expert_data.group}) {
    if (group != nullptr) buckets_.try_emplace(group, *group, Training::kBucketBytes);
  }
}

template <class Work>
auto Trainer::with(const std::vector<Unit*>& units, const Work& work) const {
  for (Unit* unit : units) unit->fetch();
  auto result = work();
  for (Unit* unit : units) unit->drop();
  return result;
}

void Trainer::spend(double Pace::*what) const {
  if (!training_.pace || places_.everybody == nullptr) return;
  places_.everybody->compute(*training_.pace.*what).throw_if_error();
}

void Trainer::reduce(const std::vector<Unit*>& units) {
  for (Unit* unit : units) unit->start_reducing(buckets_);
}

std::vector<Task> Trainer::tasks() const {
  const int micro_batches = training_.mapping.micro_batches;
  if (!places_.stages.is_alone()) {
    const Pipeline pipeline =
        play({.order = training_.mapping.order,
              .stages = places_.stages.of,
              .parts = 1,
              .micro_batches = micro_batches,
              .seconds = [](Pass pass, int, int) { return pass == Pass::forward ? 1.0 : 2.0; }});
    return pipeline.stages[static_cast<std::size_t>(places_.stages.first)];
  }
  std::vector<Task> all;
  for (int m = 0; m < micro_batches; ++m) {
    all.push_back({.pass = Pass::forward, .micro_batch = m});
    all.push_back({.pass = Pass::backward, .micro_batch = m});
  }
  return all;
}

Trainer::MicroBatch Trainer::read(int number, int shard, int micro_batch) const {
  const Mapping& m = training_.mapping;
  MicroBatch b;
  for (int i = 0; i < m.micro_batch; ++i) {
    const int sequence = (shard * m.micro_batches + micro_batch) * m.micro_batch + i;
    b.sequences.push_back(corpus_.sequence(number, sequence, training_.model.sequence));
  }
  b.layers.resize(layers_.size());
  return b;
}

Matrix Trainer::embed(const MicroBatch& b) const {
  const int length = training_.model.sequence, hidden = training_.model.hidden;
  Matrix x(static_cast<int>(b.sequences.size()) * length, hidden);
  const MatrixView tokens = tokens_.of(*embedding_), positions = positions_.of(*embedding_);
  for (int i = 0; i < x.rows; ++i) {
    const int token =
        b.sequences[static_cast<std::size_t>(i / length)][static_cast<std::size_t>(i % length)];
    add_row(tokens, token, x.row(i));
    add_row(positions, i % length, x.row(i));
  }
  return rounded(type_, std::move(x));
}

void Trainer::embed_backward(const MicroBatch& b, int shard, const Matrix& by_embedded) {
  const int length = training_.model.sequence, hidden = training_.model.hidden;
  float* tokens = tokens_.gradient_of(*embedding_, shard).data();
  float* positions = positions_.gradient_of(*embedding_, shard).data();
  for (int i = 0; i < by_embedded.rows; ++i) {
    const int token =
        b.sequences[static_cast<std::size_t>(i / length)][static_cast<std::size_t>(i % length)];
    add_scaled(1, by_embedded.row(i), tokens + std::ptrdiff_t{token} * hidden, hidden);
    add_scaled(1, by_embedded.row(i), positions + std::ptrdiff_t{i % length} * hidden, hidden);
  }
}

double Trainer::head(MicroBatch& b, int shard, const Matrix& out) {
  const int length = training_.model.sequence, vocabulary = training_.model.vocabulary;
  const float part = 1 / static_cast<float>(training_.mapping.batch() * length);
  std::vector<float> scales;
  const KeptMatrix ready(type_, normed(out, gains_.values_of(*head_), scales));
  Matrix by_logits = product(ready, logits_.of(*head_));
  double loss = 0;
  for (int i = 0; i < by_logits.rows; ++i) {
    const std::span<float> row(by_logits.row(i), static_cast<std::size_t>(vocabulary));
    softmax(row);
    float& right =
        row[static_cast<std::size_t>(b.sequences[static_cast<std::size_t>(i / length)]
                                                [static_cast<std::size_t>(i % length) + 1])];
    loss -= std::log(static_cast<double>(right)) * static_cast<double>(part);
    right -= 1;
    for (float& x : row) x *= part;
  }
  add_transposed_product(ready, by_logits, logits_.gradient_of(*head_, shard));
  b.by_out = rounded(type_, normed_backward(out, gains_.values_of(*head_), scales,
                                            product_with_transposed(by_logits, logits_.of(*head_)),
                                            gains_.gradient_of(*head_, shard)));
  return loss;
}

Matrix Trainer::received(int from_stage) const {
  KeptMatrix rows(type_, Matrix(training_.mapping.micro_batch * training_.model.sequence,
                                training_.model.hidden));
  rows.values.with([&](auto& values) {
    places_.stages.group->recv(std::span(values), from_stage).throw_if_error();
  });
  return rows.matrix();
}

void Trainer::send(Matrix rows, int to_stage) {
  auto kept = std::make_unique<Kept>(type_, std::move(rows.values));
  auto request = kept->with([&]<class T>(const std::vector<T>& values) {
    return places_.stages.group->async().send(std::span(values), to_stage);
  });
  request.status().throw_if_error();
  sent_.emplace_back(std::move(kept), std::move(*request));
}

double Trainer::forward(MicroBatch& b, int shard) {
  Matrix x = is_first() ? with({&*embedding_}, [&] { return embed(b); })
                        : received(places_.stages.first - 1);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = with(layers_[i].units(), [&] { return layers_[i].forward(x, b.layers[i]); });
    spend(&Pace::layer_forward);
  }
  if (is_last()) {
    spend(&Pace::head_forward);
    return with({&*head_}, [&] { return head(b, shard, x); });
  }
  send(std::move(x), places_.stages.first + 1);
  return 0;
}

void Trainer::backward(MicroBatch& b, int shard, bool last) {
  if (is_last()) spend(&Pace::head_backward);
  if (last && is_last()) reduce({&*head_});
  Matrix by = is_last() ? std::move(b.by_out) : received(places_.stages.first + 1);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::vector<Unit*> units = layers_[i].units();
    by = with(units, [&] { return layers_[i].backward(by, shard, b.layers[i]); });
    spend(&Pace::layer_backward);
    if (last) reduce(units);
  }
  if (!is_first()) return send(std::move(by), places_.stages.first - 1);
  embed_backward(b, shard, by);
  if (last) reduce({&*embedding_});
}

std::optional<double> Trainer::step(int number, bool stop) {
  double shares[] = {0, stop ? 1.0 : 0.0};  // of the loss; > 0: stop
  const int end = places_.data.first + places_.data.count;
  for (int shard = places_.data.first; shard < end; ++shard) {
    std::map<int, MicroBatch> under_way;
    double of_shard = 0;
    for (const Task& task : tasks()) {
      if (task.pass == Pass::forward) {
        MicroBatch& b = under_way[task.micro_batch] = read(number, shard, task.micro_batch);
        of_shard += forward(b, shard);
      } else {
        const bool last =
            shard + 1 == end && task.micro_batch + 1 == training_.mapping.micro_batches;
        backward(under_way[task.micro_batch], shard, last);
        under_way.erase(task.micro_batch);
      }
    }
    shares[0] += of_shard;
  }
  // Start all sums before waiting for any, because ranks wait for them in different orders.
  for (auto& [group, buckets] : buckets_) buckets.flush().throw_if_error();
  for (auto& [group, buckets] : buckets_) buckets.wait().throw_if_error();
  for (auto& [rows, request] : sent_) request.wait().throw_if_error();
  sent_.clear();
  spend(&Pace::optimizer);
  const auto update = [&](const std::vector<Unit*>& units) {
    for (Unit* unit : units) unit->update(training_.adam, number);
  };
  if (embedding_) update({&*embedding_});
  for (Layer& layer : layers_) update(layer.units());
  if (head_) update({&*head_});
  if (places_.everybody != nullptr) {
    if (places_.tensor.first != 0) shares[0] = 0;  // ranks along tp have equal losses: count one
    places_.everybody->all_reduce(std::span(shares), ReduceOp::sum, {.order = Order::by_rank})
        .throw_if_error();
  }
  if (shares[1] > 0) return std::nullopt;
  return shares[0];
}

}  // namespace rankine::tools
