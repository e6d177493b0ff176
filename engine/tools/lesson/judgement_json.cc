#include "engine/tools/lesson/judgement_json.h"

namespace rankine::tools {

Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync) {
  Json out = {{"collective", name_of(written.goal.collective)},
              {"ranks", written.goal.ranks},
              {"rounds", written.rounds.size()},
              {"transfers", judged.transfers},
              {"proved", !judged.violation}};
  if (const auto& violation = judged.violation) {
    out["kind"] = name_of(violation->kind);
    out["rule"] = rule_of(violation->kind);
    out["round"] = violation->round;
    out["rank"] = violation->rank;
    out["block"] = violation->block;
    out["text"] = violation->text;
    Json& lines = out["lines"] = Json::array();
    for (const std::size_t i : transfers_at(written, *violation)) {
      const auto& round = written.rounds[static_cast<std::size_t>(violation->round)];
      if (round[i].line > 0) lines.push_back(round[i].line);
    }
    return out;
  }
  out["rounds"] = judged.counts.rounds;
  if (judged.least_rounds) out["least_rounds"] = *judged.least_rounds;
  out["bytes"] = judged.bytes;
  out["least_bytes"] = judged.least_bytes;
  out["send_ports"] = judged.counts.busiest.send_ports;
  out["receive_ports"] = judged.counts.busiest.receive_ports;
  out["network"] = fabric.name;
  out["sync"] = name_of(sync);
  out["time"] = judged.simulation.seconds;
  if (judged.best) {
    out["best"] = {{"algorithm", judged.best->algorithm->name}, {"time", judged.best->seconds}};
  }
  return out;
}

Json formula_json(const FormulaTask& task, const std::string& formula, std::uint64_t seed,
                  const std::optional<FormulaMiss>& miss) {
  Json out = {{"task", task.name}, {"formula", formula}, {"seed", seed}, {"right", !miss}};
  if (miss) {
    out["at"] = letters_text(task, miss->letters);
    out["said"] = formulas::to_string(miss->said);
    out["engine"] = formulas::to_string(miss->right);
  }
  return out;
}

}  // namespace rankine::tools
