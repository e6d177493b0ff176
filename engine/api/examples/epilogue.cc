// Two ranks run a model in parallel: an all-reduce adds the partial results of a layer, and each
// row passes to the residual stream, an RMSNorm and 8-bit integers while it is in its rank's cache.
//
//   bazel run //engine/api/examples:epilogue
#include <cstdint>
#include <cstdio>
#include <vector>

#include "engine/api/epilogues.h"
#include "engine/api/team.h"

int main() {
  constexpr std::size_t kTokens = 3, kHidden = 512;
  auto team = rankine::Team::create({.ranks = 2});
  team.status().throw_if_error();
  (*team)
      ->run([](rankine::Member& me) {
        using rankine::BFloat16;
        std::vector<BFloat16> hidden(kTokens * kHidden, BFloat16(1.0F));
        std::vector<BFloat16> stream(kTokens * kHidden, BFloat16(0.5F));
        std::vector<BFloat16> gain(kHidden, BFloat16(2.0F));
        std::vector<std::int8_t> quantised(kTokens * kHidden);
        std::vector<float> scales(kTokens);
        const auto norm = rankine::RowEpilogue::make({.type = rankine::DataType::bf16,
                                                      .row_elements = kHidden,
                                                      .residual = stream.data(),
                                                      .norm = rankine::Norm::rms,
                                                      .weight = gain.data(),
                                                      .out_type = rankine::DataType::i8,
                                                      .out = quantised.data(),
                                                      .scales = scales.data()})
                              .value();
        me.all_reduce(hidden, {.epilogue = &norm}).throw_if_error();

        // A function of the user: it gets rows of the sum as they become final.
        std::vector<float> means(kTokens);
        const auto mean = [&](std::span<const BFloat16> rows, std::size_t first) {
          for (std::size_t i = 0; i < rows.size(); ++i) {
            means[first + i / kHidden] += static_cast<float>(rows[i]) / kHidden;
          }
        };
        const auto meaning = rankine::epilogue<BFloat16>(kHidden, mean);
        me.all_reduce(hidden, {.epilogue = &meaning}).throw_if_error();
        if (me.rank() == 0) {
          std::printf("stream %g, quantised %d of scale %.4f, mean %g\n",
                      static_cast<double>(static_cast<float>(stream.back())), quantised.back(),
                      static_cast<double>(scales.back()), static_cast<double>(means.back()));
        }
      })
      .throw_if_error();
}
