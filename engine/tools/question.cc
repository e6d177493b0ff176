#include "engine/tools/question.h"

#include <fmt/format.h>

#include "engine/base/units.h"
#include "engine/read/segments.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr int kMostRanks = 1 << 14;  // of any algorithm of the catalogue

}  // namespace

Result<Prepared> prepare(const Question& question) {
  Prepared out;
  out.params = question.params;
  if (question.params.segments == 0) {
    const auto best =
        best_segments(*question.algorithm, question.params, question.fabric, question.bytes);
    if (!best.ok()) return best.status();
    out.params.segments = *best;
  }
  out.params = resolved(out.params);
  if (const auto refusal = question.algorithm->refusal(out.params)) {
    return invalid_argument(*refusal);
  }
  out.schedule = question.algorithm->make(out.params);
  out.goal = goal_of(*question.algorithm, out.params, out.schedule);
  if (question.lower) out.schedule = lower(std::move(out.schedule), question.fabric.abilities());
  return out;
}

Status wire(Question& question) {
  auto wired = wired_for(question.fabric, question.params.ranks, question.params.dims);
  if (!wired.ok()) return wired.status();
  question.fabric = std::move(*wired);
  if (question.params.dims.empty()) question.params.dims = question.fabric.wiring.dims;
  return {};
}

Result<int> read_segments(std::string_view argument, std::string_view text) {
  if (text == "auto") return 0;
  auto segments = parse_whole(argument, text, 1, kMostSegments);
  if (segments.ok()) return segments;
  return invalid_argument(segments.status().text() + ", and auto");
}

CLI::Option* add_algorithm_arguments(CLI::App& app, QuestionArguments& a) {
  const auto read = [](std::string_view argument,
                       std::string_view text) -> Result<std::optional<Collective>> {
    const auto collective = read_collective(argument, text);
    if (!collective.ok()) return collective.status();
    return std::optional(*collective);
  };
  CLI::Option* first = add_argument(app, "collective", a.collective, read, "NAME",
                                    "which one; 'rankine list' shows all");
  add_text(app, "--algo", a.algorithms, "NAME", "a name of the catalogue");
  add_argument(app, "-t,--ranks", a.params.ranks, Whole{1, kMostRanks}, "N", "ranks (8)");
  add_argument(app, "-r,--root", a.params.root, Whole{0, kMostRanks - 1}, "RANK",
               "of rooted collectives; the sender of send_recv (0)");
  add_argument(app, "--peer", a.params.peer, Whole{0, kMostRanks - 1}, "RANK",
               "the receiver of send_recv (the rank after the root)");
  add_argument(app, "--segments", a.params.segments, read_segments, "P",
               "of pipelined algorithms; auto: the best of the alpha-beta model (1)");
  add_argument(app, "--group", a.params.group, Whole{0, kMostRanks}, "G",
               "ranks per group of hierarchical algorithms; 0: their default (0)");
  add_argument(app, "--aggregation", a.params.aggregation, Whole{0, kMostRanks}, "A",
               "blocks per message of pat; 0: its default (0)");
  add_levels(app, a.params.levels);
  add_skips(app, a.skips);
  add_dims(app, a.params.dims);
  return first;
}

void add_model_arguments(CLI::App& app, QuestionArguments& a) {
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
               "M: the vector, or one rank's send buffer of all_to_all; 8, 64K, 1M (1M)");
  add_argument(app, "--sync", a.sync, read_sync, "NAME",
               "dataflow: a message waits for its data only; rounds: for all of the round before "
               "(dataflow)");
}

Result<std::vector<Question>> questions_of(const QuestionArguments& a,
                                           std::vector<std::string>& notes) {
  if (a.algorithms.empty()) {
    return invalid_argument(fmt::format("--algo is needed; {} has {}", name_of(*a.collective),
                                        algorithm_names(*a.collective)));
  }
  const auto lines = read_algorithms("--algo", a.algorithms, a.collective);
  if (!lines.ok()) return lines.status();
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  auto skips = skips_for("--skips", a.skips, a.params.ranks);
  if (!skips.ok()) return skips.status();
  std::vector<Question> questions;
  std::string refused;
  for (const Algorithm* line : *lines) {
    Question question{.algorithm = line,
                      .params = a.params,
                      .bytes = a.bytes,
                      .fabric = *network,
                      .options = {.sync = a.sync},
                      .lower = a.network.lower};
    set_peer(question.params);
    question.params.skips = *skips;
    Status status = wire(question);
    if (!status.ok()) return status;
    Params checked = question.params;
    if (checked.segments == 0) checked.segments = 1;
    if (const auto refusal = line->refusal(checked)) {
      refused = *refusal;
      if (a.algorithms != "all") return invalid_argument(refused);
      notes.push_back("left out: " + refused);
      continue;
    }
    questions.push_back(std::move(question));
  }
  if (questions.empty()) return invalid_argument(refused);
  return questions;
}

Result<Question> question_of(const QuestionArguments& a) {
  std::vector<std::string> notes;
  auto questions = questions_of(a, notes);
  if (!questions.ok()) return questions.status();
  if (questions->size() == 1) return std::move(questions->front());
  return invalid_argument(fmt::format("--algo is '{}'; one algorithm is allowed, of {}",
                                      a.algorithms, algorithm_names(*a.collective)));
}

std::string describe(const Question& question) {
  const Fabric& fabric = question.fabric;
  std::string network = fmt::format("{} port{}, {}, {}", fabric.ports, fabric.ports == 1 ? "" : "s",
                                    format_duration(fabric.link.alpha.to_double()),
                                    format_bandwidth(fabric.link.beta));
  if (fabric.two_level()) {
    network += fmt::format("; {}, {} between groups of {}",
                           format_duration(fabric.between.alpha.to_double()),
                           format_bandwidth(fabric.between.beta), fabric.group);
  }
  if (const std::string wiring = describe_wiring(fabric); !wiring.empty()) {
    network += "; " + wiring;
  }
  if (fabric.multicast || fabric.alu) {
    network += fmt::format("; {} in the switch, {} per hop",
                           fabric.multicast && fabric.alu ? "multicast and reduction"
                           : fabric.multicast             ? "multicast"
                                                          : "reduction",
                           format_duration(fabric.alpha_switch.to_double()));
  }
  return fmt::format("{} of {} among {} ranks on {} ({}), {}",
                     name_of(question.algorithm->collective),
                     format_bytes(static_cast<double>(question.bytes)), question.params.ranks,
                     fabric.name, network, name_of(question.options.sync));
}

double bytes_of(std::int64_t weight, std::int64_t weight_per_byte) {
  return nearest_double(weight, weight_per_byte);
}

}  // namespace rankine::tools
