#include "engine/tools/claims.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <vector>

#include "engine/papers/claim.h"
#include "engine/papers/report.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

Result<std::string> read_paper(std::string_view argument, std::string_view text) {
  if (claims::find_paper(text) != nullptr) return std::string(text);
  std::vector<std::string_view> keys;
  for (const claims::Paper& paper : claims::papers()) keys.push_back(paper.key);
  return unknown_name(argument, text, keys);
}

Result<std::optional<claims::Verdict>> read_verdict(std::string_view argument,
                                                    std::string_view text) {
  std::vector<std::string_view> names;
  for (int v = 0; v < claims::kVerdicts; ++v) {
    const auto verdict = static_cast<claims::Verdict>(v);
    if (name_of(verdict) == text) return std::optional(verdict);
    names.push_back(name_of(verdict));
  }
  return unknown_name(argument, text, names);
}

}  // namespace

Subcommand add_claims(Command tool) {
  auto options = std::make_shared<ClaimsOptions>();
  const Command app = tool.add_subcommand(
      "claims", "Every quantitative claim of the papers, computed and compared with the engine.");
  add_text(app, "id", options->id, "TEXT", "only claims whose id begins so");
  add_argument(app, "-p,--paper", options->paper, read_paper,
               "only one paper's: lesson, chapter, lu, traff or trivance");
  add_argument(app, "-v,--verdict", options->verdict, read_verdict,
               "only rows with that verdict: holds, holds_if, fails or open");
  app.add_flag("--json", options->json, "as JSON");
  app.add_flag("--markdown", options->markdown, "as Markdown tables");
  app.add_flag("--golden", options->golden, "as the list in tests/golden/claims.txt");
  app.add_flag("--no-execute", options->no_execute, "simulate only; start no threads");
  app.footer(
      "Examples:\n"
      "  rankine claims --verdict fails\n"
      "  rankine claims --paper lu --markdown > claims.md\n"
      "  rankine claims lu-5.2");
  return {app, [options](Console& console) { return claims_report(*options, console); }};
}

Result<Exit> claims_report(const ClaimsOptions& options, Console& console) {
  if (options.json + options.markdown + options.golden > 1) {
    return invalid_argument("--json, --markdown and --golden exclude each other");
  }
  Progress progress(console);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const claims::Filter filter{options.paper, options.verdict, options.id};
  const auto findings =
      claims::find_out(filter, {.execute = !options.no_execute && !options.golden},
                       [&](std::size_t done, std::size_t all) {
                         const std::chrono::duration<double> took = Clock::now() - begin;
                         progress.show(fmt::format("{} of {} claims{}", done, all,
                                                   time_left(done, all, took.count())));
                       });
  progress.clear();
  if (findings.empty()) {
    return invalid_argument(fmt::format("id is '{}'; no claim's id begins so", options.id));
  }
  if (options.json) {
    console.out << to_json(findings, filter).dump(2) << "\n";
  } else if (options.markdown) {
    print_markdown(console.out, findings, filter);
  } else if (options.golden) {
    for (const claims::Finding& finding : findings) console.out << golden_line(finding) << "\n";
  } else {
    print_text(console.out, findings, filter);
  }
  return totals_of(findings).faults > 0 ? Exit::wrong : Exit::ok;
}

}  // namespace rankine::tools
