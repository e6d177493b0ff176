// Orders of a pipeline's work: their bubbles are those of the papers, and nothing begins early.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/tools/plan/pipeline.h"

namespace rankine::tools {
namespace {

// Forward takes 1, backward 2, of which 1 are weights where these are work of their own.
Pipeline unit(PipelineOrder order, int stages, int parts, int micro_batches, double hop = 0) {
  const bool apart = has_weights_apart(order);
  return play(
      {.order = order,
       .stages = stages,
       .parts = parts,
       .micro_batches = micro_batches,
       .seconds = [=](Pass pass, int,
                      int) { return (pass == Pass::backward && !apart ? 2.0 : 1.0) / parts; },
       .hop_seconds = hop});
}

TEST(Pipeline, BubblesAreThoseOfThePapers) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {2 * p, 4 * p, 64 * p}) {
      const double ideal = 3.0 * m;
      const double bubble = (p - 1) / static_cast<double>(m);
      EXPECT_DOUBLE_EQ(unit(PipelineOrder::gpipe, p, 1, m).most_idle() / ideal, bubble);
      EXPECT_DOUBLE_EQ(unit(PipelineOrder::one_f_one_b, p, 1, m).most_idle() / ideal, bubble);
      EXPECT_NEAR(unit(PipelineOrder::zb1p, p, 1, m).most_idle() / ideal, bubble / 3, 1e-12)
          << p << " " << m;
      EXPECT_NEAR(unit(PipelineOrder::zb2p, p, 1, m).most_idle(), 0, 1e-9) << p << " " << m;
      EXPECT_NEAR(unit(PipelineOrder::zbv, p, 2, m).most_idle(), 0, 1e-9) << p << " " << m;
      for (const int v : {2, 3, 5}) {
        if (p == 1) continue;
        EXPECT_NEAR(unit(PipelineOrder::one_f_one_b, p, v, m).most_idle() / ideal, bubble / v,
                    1e-12)
            << p << " " << m << " " << v;
      }
    }
  }
}

TEST(Pipeline, EveryTaskIsDoneOnceAndNothingBeginsBeforeWhatItNeeds) {
  for (const auto& [order, parts, m] :
       {std::tuple{PipelineOrder::gpipe, 1, 8},
        {PipelineOrder::one_f_one_b, 2, 8},
        {PipelineOrder::zb1p, 1, 8},
        {PipelineOrder::zb2p, 1, 8},
        {PipelineOrder::zbv, 2, 8},
        {PipelineOrder::zbv, 2, 3}}) {  // fewer than fill the pipeline
    const int stages = 4;
    const double hop = 0.25;
    const Pipeline pipeline = unit(order, stages, parts, m, hop);
    std::map<std::tuple<Pass, int, int>, Task> tasks;  // pass, chunk, micro-batch
    for (int s = 0; s < stages; ++s) {
      double free = 0;
      for (const Task& task : pipeline.stages[static_cast<std::size_t>(s)]) {
        EXPECT_GE(task.begin, free);
        free = task.end;
        EXPECT_TRUE(tasks
                        .emplace(std::tuple(task.pass, part_number(order, stages, s, task.part),
                                            task.micro_batch),
                                 task)
                        .second);
      }
    }
    const bool apart = has_weights_apart(order);
    // The middle of a V is on one stage.
    const auto hop_to = [&, of = order](int chunk) {
      return of == PipelineOrder::zbv && chunk == stages ? 0.0 : hop;
    };
    const int chunks = stages * parts;
    EXPECT_EQ(tasks.size(), static_cast<std::size_t>(chunks * m * (apart ? 3 : 2)));
    for (const auto& [key, task] : tasks) {
      const auto& [pass, chunk, batch] = key;
      if (pass == Pass::forward && chunk > 0) {
        EXPECT_GE(task.begin, tasks.at({pass, chunk - 1, batch}).end + hop_to(chunk));
      } else if (pass == Pass::backward) {
        const bool last = chunk == chunks - 1;
        EXPECT_GE(task.begin, last ? tasks.at({Pass::forward, chunk, batch}).end
                                   : tasks.at({pass, chunk + 1, batch}).end + hop_to(chunk + 1));
      } else if (pass == Pass::weights) {
        EXPECT_GE(task.begin, tasks.at({Pass::backward, chunk, batch}).end);
      }
    }
  }
}

// As many as memory has room for.
TEST(Pipeline, KeepsAsManyMicroBatchesAsStated) {
  const auto most_kept = [](PipelineOrder order) {
    const int parts = order == PipelineOrder::zbv ? 2 : 1;
    const Pipeline pipeline = unit(order, 4, parts, 32);
    int kept = 0, most = 0;
    for (const Task& task : pipeline.stages[0]) {
      kept += task.pass == Pass::forward ? 1 : 0;
      kept -= task.pass == (has_weights_apart(order) ? Pass::weights : Pass::backward) ? 1 : 0;
      most = std::max(most, kept);
    }
    return static_cast<double>(most) / parts;
  };
  EXPECT_EQ(most_kept(PipelineOrder::gpipe), 32);
  EXPECT_EQ(most_kept(PipelineOrder::one_f_one_b), 4);
  EXPECT_EQ(most_kept(PipelineOrder::zb1p), 4);
  EXPECT_EQ(most_kept(PipelineOrder::zb2p), 7);
  EXPECT_EQ(most_kept(PipelineOrder::zbv), 4);
}

}  // namespace
}  // namespace rankine::tools
