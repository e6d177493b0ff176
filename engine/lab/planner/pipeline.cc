#include "engine/lab/planner/pipeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/cli/drawing.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class OrderPlayer {
 public:
  explicit OrderPlayer(const PipelineQuestion& question)
      : q_(question),
        chunks_(q_.stages * q_.parts),
        stages_(static_cast<std::size_t>(q_.stages)),
        free_(static_cast<std::size_t>(q_.stages), 0) {
    stage_of_.resize(static_cast<std::size_t>(chunks_));
    for (int s = 0; s < q_.stages; ++s) {
      for (int part = 0; part < q_.parts; ++part) {
        stage_of_[static_cast<std::size_t>(number_of(s, part))] = s;
      }
    }
    for (auto& ends : ends_) {
      ends.assign(static_cast<std::size_t>(chunks_ * q_.micro_batches), kNever);
    }
  }

  Pipeline play(const StageOrders& orders) {
    std::vector<std::size_t> next(orders.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < q_.stages; ++s) {
        const auto i = static_cast<std::size_t>(s);
        while (next[i] < orders[i].size() && ready(s, orders[i][next[i]]) < kNever) {
          perform(s, orders[i][next[i]++]);
          moved = true;
        }
      }
    }
    return {std::move(stages_)};
  }

 private:
  double& end_of(Pass pass, int chunk, int micro_batch) {
    return ends_[static_cast<std::size_t>(pass)]
                [static_cast<std::size_t>(chunk * q_.micro_batches + micro_batch)];
  }

  // The time at which a task's inputs are ready; kNever if that time is not known yet.
  double ready(int stage, const Task& task) {
    const int chunk = number_of(stage, task.part);
    switch (task.pass) {
      case Pass::forward:
        return chunk == 0 ? 0 : arrival(Pass::forward, chunk - 1, stage, task.micro_batch);
      case Pass::backward:
        return chunk == chunks_ - 1 ? end_of(Pass::forward, chunk, task.micro_batch)
                                    : arrival(Pass::backward, chunk + 1, stage, task.micro_batch);
      case Pass::weights:
        return end_of(Pass::backward, chunk, task.micro_batch);
    }
    return kNever;
  }
  double arrival(Pass pass, int chunk, int stage, int micro_batch) {
    const bool is_here = stage_of_[static_cast<std::size_t>(chunk)] == stage;
    return end_of(pass, chunk, micro_batch) + (is_here ? 0 : q_.hop_seconds);
  }
  int number_of(int stage, int part) const { return part_number(q_.order, q_.stages, stage, part); }

  void perform(int stage, Task task) {
    const auto s = static_cast<std::size_t>(stage);
    task.begin = std::max(free_[s], ready(stage, task));
    task.end = free_[s] = task.begin + q_.seconds(task.pass, stage, task.part);
    end_of(task.pass, number_of(stage, task.part), task.micro_batch) = task.end;
    stages_[s].push_back(task);
  }

  const PipelineQuestion& q_;
  const int chunks_;
  std::vector<int> stage_of_;  // [part of the whole model]
  std::vector<std::vector<Task>> stages_;
  std::vector<double> free_;  // the time at which a stage has finished its tasks so far
  std::vector<double> ends_[3];
};

// Makes the named orders.
class Orders {
 public:
  explicit Orders(const PipelineQuestion& question) : q_(question) {}

  std::vector<Task> order_of(int stage) const {
    if (q_.order == PipelineOrder::zbv) return zbv_order(q_.stages, stage, q_.micro_batches);
    const bool has_weights = has_weights_apart(q_.order);
    const int all = q_.micro_batches * q_.parts;
    const auto [ahead, late] = distance_of(stage);
    std::vector<Task> order;
    const auto add = [&](Pass pass, int k) {
      if (k >= 0 && k < all) order.push_back(q_.parts == 1 ? Task{pass, k, 0} : task_of(pass, k));
    };
    for (int k = 0; k < ahead; ++k) add(Pass::forward, k);
    for (int k = 0; k < all + late; ++k) {
      add(Pass::backward, k);
      if (has_weights) add(Pass::weights, k - late);
      add(Pass::forward, ahead + k);
    }
    return order;
  }

 private:
  // The k-th forward or backward task of a stage: a group of `stages` micro-batches goes through
  // all parts before the next group.
  Task task_of(Pass pass, int k) const {
    const int group = q_.stages * q_.parts;
    const int part = k % group / q_.stages;
    return {pass, k / group * q_.stages + k % q_.stages,
            pass == Pass::forward ? part : q_.parts - 1 - part};
  }

  // Forward passes go `ahead` of backward passes, and weight passes come `late`, both in
  // micro-batches; their sum is the largest number in flight. In the order of Zero Bubble's Figures
  // 2 and 3 the sum is equal on every stage.
  struct Distance {
    int ahead = 0, late = 0;
  };
  Distance distance_of(int stage) const {
    const int below = q_.stages - 1 - stage;
    switch (q_.order) {
      case PipelineOrder::gpipe:
        return {q_.micro_batches, 0};
      case PipelineOrder::one_f_one_b:
        return {q_.parts == 1 ? below + 1 : 2 * below + (q_.parts - 1) * q_.stages + 1, 0};
      case PipelineOrder::zb1p:
        return {below + 1, stage};
      case PipelineOrder::zb2p:
        return {2 * below + 1, 2 * stage};
      case PipelineOrder::zbv:  // zbv_order() makes this order
        break;
    }
    return {};
  }

  const PipelineQuestion& q_;
};

}  // namespace

double Pipeline::end(int stage) const {
  const auto& tasks = stages[static_cast<std::size_t>(stage)];
  return tasks.empty() ? 0 : tasks.back().end;
}
double Pipeline::busy(int stage) const {
  double sum = 0;
  for (const Task& task : stages[static_cast<std::size_t>(stage)]) sum += task.end - task.begin;
  return sum;
}
double Pipeline::idle(int stage) const {
  const auto& tasks = stages[static_cast<std::size_t>(stage)];
  return tasks.empty() ? 0 : tasks.back().end - tasks.front().begin - busy(stage);
}
double Pipeline::most_idle() const {
  double most = 0;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) most = std::max(most, idle(s));
  return most;
}
double Pipeline::end() const {
  double last = 0;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) last = std::max(last, end(s));
  return last;
}

double Pipeline::most_kept(int stage, int parts) const {
  std::map<std::pair<int, int>, std::pair<double, double>> kept;  // begin and end of the storage
  for (const Task& task : stages[static_cast<std::size_t>(stage)]) {
    auto& [from, until] = kept[{task.micro_batch, task.part}];
    if (task.pass == Pass::forward) from = task.begin;
    until = std::max(until, task.end);
  }
  // At equal times, ends (-1) come before begins (+1): an ending micro-batch makes room for the
  // next.
  std::vector<std::pair<double, int>> changes;
  for (const auto& [which, times] : kept) {
    changes.emplace_back(times.first, 1);
    changes.emplace_back(times.second, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return static_cast<double>(most) / parts;
}

StageOrders orders_of(const PipelineQuestion& question) {
  StageOrders out;
  const Orders orders(question);
  for (int s = 0; s < question.stages; ++s) out.push_back(orders.order_of(s));
  return out;
}

Pipeline play(const PipelineQuestion& question, const StageOrders& orders) {
  return OrderPlayer(question).play(orders);
}

Pipeline play(const PipelineQuestion& question) { return play(question, orders_of(question)); }

namespace {

class Writer {
 public:
  explicit Writer(int micro_batches) : micro_batches_(micro_batches) {}

  void forward(int part) { add(Pass::forward, part, forward_[part]++); }
  void backward(int part) { add(Pass::backward, part, backward_[part]++); }
  void weights(int part) { add(Pass::weights, part, weights_[part]++); }
  void both_backward(int part) {
    backward(part);
    weights(part);
  }

  int begun(int part) const { return forward_[part]; }
  bool owes_weights(int part) const { return weights_[part] < backward_[part]; }
  std::vector<Task> tasks() { return std::move(tasks_); }

 private:
  void add(Pass pass, int part, int micro_batch) {
    if (micro_batch < micro_batches_) {
      tasks_.push_back({.pass = pass, .micro_batch = micro_batch, .part = part});
    }
  }

  int micro_batches_;
  int forward_[2] = {}, backward_[2] = {}, weights_[2] = {};
  std::vector<Task> tasks_;
};

}  // namespace

std::vector<Task> zbv_order(int stages, int stage, int micro_batches) {
  // If there are fewer micro-batches than fill the pipeline, this writes the order for a full one;
  // Writer omits passes of micro-batches beyond the last.
  const int all = std::max(micro_batches, 2 * stages - 1), below = stages - stage;
  Writer w(micro_batches);
  // The stage works down the pipeline until the first micro-batch is back, then also up, then
  // backward.
  for (int i = 0; i < 2 * below - 1; ++i) w.forward(0);
  for (int i = 0; i < stage; ++i) {
    w.forward(1);
    w.forward(0);
  }
  for (int i = 0; i < below; ++i) {
    w.forward(1);
    w.both_backward(1);
  }
  while (w.begun(1) < w.begun(0) || w.begun(0) < all) {
    if (w.begun(0) < all) w.forward(0);
    w.both_backward(0);
    w.forward(1);
    w.both_backward(1);
  }
  // Gradients of weights fill the time until the backward passes of other stages arrive.
  for (int i = 0; i < stage; ++i) {
    w.backward(0);
    w.backward(1);
  }
  for (int i = 0; i < below; ++i) {
    w.backward(0);
    w.weights(0);
  }
  while (w.owes_weights(1)) w.weights(1);
  while (w.owes_weights(0)) w.weights(0);
  return w.tasks();
}

namespace {

struct Look {
  std::string_view name, colour;
};
// Colours that people with red-green blindness can tell apart, too.
constexpr Look kLooks[] = {{"forward", "#4477aa"}, {"backward", "#ccbb44"}, {"weights", "#66ccee"}};

const Look& look_of(Pass pass) { return kLooks[static_cast<std::size_t>(pass)]; }

}  // namespace

std::string timeline_svg(std::string_view title, const Pipeline& pipeline) {
  constexpr int kLeft = 70, kTop = 64, kWidth = 1100, kRow = 22;
  const double scale = kWidth / std::max(pipeline.end(), 1e-30);
  const int stages = static_cast<int>(pipeline.stages.size());
  std::string body =
      fmt::format("<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n", xml_text(title));
  int x = kLeft;
  for (const Look& look : kLooks) {
    body += fmt::format(
        "<rect x=\"{}\" y=\"32\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"44\">{}"
        "</text>\n",
        x, look.colour, x + 19, look.name);
    x += 100;
  }
  for (int s = 0; s < stages; ++s) {
    const int y = kTop + s * kRow;
    body += fmt::format("<text x=\"10\" y=\"{}\">stage {}</text>\n", y + 15, s);
    for (const Task& task : pipeline.stages[static_cast<std::size_t>(s)]) {
      const double left = kLeft + task.begin * scale, width = (task.end - task.begin) * scale;
      body += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\" "
          "stroke-width=\"0.4\"><title>{} of micro-batch {}{}, {} to {}</title></rect>\n",
          left, y, width, kRow - 3, look_of(task.pass).colour, look_of(task.pass).name,
          task.micro_batch, task.part > 0 ? fmt::format(", part {}", task.part) : "",
          format_duration(task.begin), format_duration(task.end));
      if (width >= 16) {
        body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" font-size=\"10\">{}</text>\n", left + 3,
                            y + 14, task.micro_batch);
      }
    }
  }
  const int bottom = kTop + stages * kRow;
  body += fmt::format(
      "<text x=\"{}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
      kLeft, bottom + 16, kLeft + kWidth, bottom + 16, format_duration(pipeline.end()));
  return svg_picture(kLeft + kWidth + 20, bottom + 30, 12, body);
}

std::string timeline_trace(const Pipeline& pipeline) {
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", s},
                      {"args", {{"name", fmt::format("stage {}", s)}}}});
    for (const Task& task : pipeline.stages[s]) {
      events.push_back({{"ph", "X"},
                        {"name", fmt::format("{} {}", look_of(task.pass).name, task.micro_batch)},
                        {"cat", look_of(task.pass).name},
                        {"pid", 0},
                        {"tid", s},
                        {"ts", task.begin * kMicroseconds},
                        {"dur", (task.end - task.begin) * kMicroseconds},
                        {"args", {{"micro_batch", task.micro_batch}, {"part", task.part}}}});
    }
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace rankine::tools
