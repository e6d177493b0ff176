#include "engine/tools/c_real_trials.h"

#include <utility>

#include "engine/api/tuning/choose.h"
#include "engine/base/statistics.h"
#include "engine/network/predict.h"
#include "engine/tools/table.h"

namespace rankine::tools {

void CRealTrials::add(const Contest& contest) {
  for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
    const Question question(contest.collective, contest.ranks, contest.bytes,
                            contest.contenders[i]);
    for (std::size_t p = 0; p < kProtocols; ++p) {
      for (const Context& times : contest.contexts[p]) {
        if (times[i] != kNotTimed) seconds_[question][p].push_back(times[i]);
      }
    }
  }
}

Result<std::vector<MeasuredCReal>> CRealTrials::measured() const {
  struct Ratios {
    std::vector<double> latency, bandwidth;
  };
  std::map<std::tuple<Collective, int, const Algorithm*>, Ratios> found;
  for (const auto& [question, protocols] : seconds_) {
    const auto& [collective, ranks, bytes, algorithm] = question;
    const auto model = predict_on_threads(*algorithm, ranks, bytes, machine_, costs_);
    if (!model.ok()) return model.status();
    if (!model->ok() || !(model->seconds > 0)) continue;
    const auto share = latency_share(*model, machine_);
    if (!share.ok()) return share.status();
    Ratios& ratios = found[{collective, ranks, algorithm}];
    for (const std::vector<double>& rounds : protocols) {
      if (rounds.empty()) continue;
      (*share >= 0.5 ? ratios.latency : ratios.bandwidth)
          .push_back(median(rounds) / model->seconds);
    }
  }
  std::vector<MeasuredCReal> out;
  for (const auto& [of, ratios] : found) {
    if (ratios.latency.empty() || ratios.bandwidth.empty()) continue;
    const auto& [collective, ranks, algorithm] = of;
    const CReal c_real{.latency = median(ratios.latency), .bandwidth = median(ratios.bandwidth)};
    if (!CReal::allows(c_real.latency) || !CReal::allows(c_real.bandwidth)) continue;
    out.push_back({collective, ranks, algorithm, c_real});
  }
  return out;
}

std::string table_of(const std::vector<MeasuredCReal>& measured) {
  if (measured.empty()) return {};
  Table table(as::text("collective"), "ranks", as::text("algorithm"), As("{:.2f}")("latency"),
              As("{:.2f}")("bandwidth"));
  for (const auto& [collective, ranks, algorithm, c_real] : measured) {
    table.add(name_of(collective), ranks, algorithm->name, c_real.latency, c_real.bandwidth);
  }
  return to_text(table, "  ");
}

}  // namespace rankine::tools
