#include "engine/tools/plan/zbv_order.h"

#include <algorithm>
#include <utility>

namespace rankine::tools {
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
  // Of fewer than fill the pipeline, the order of as many with those left out that there are not.
  const int all = std::max(micro_batches, 2 * stages - 1), below = stages - stage;
  Writer w(micro_batches);
  // Down the pipeline until the first micro-batch is back, then up as well, then backward.
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
  // Gradients of weights fill the time in which others' backward passes come down.
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

}  // namespace rankine::tools
