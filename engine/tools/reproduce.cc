#include "engine/tools/reproduce.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "engine/base/files.h"
#include "engine/tools/reproduce_report.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using namespace reproduce;  // NOLINT: this file is about nothing else

std::unique_ptr<Trivance> work_out_trivance(const ProgressReport& progress) {
  auto out = std::make_unique<Trivance>();
  std::vector<ProfileKey> keys = table_keys();
  for (ProfileKey& key : figure_keys()) keys.push_back(std::move(key));
  out->profiles.work_out(std::move(keys), progress);
  out->rows = table_rows(out->profiles);
  out->panels = reproduce::panels(out->profiles);
  out->outcomes = reproduce::outcomes(out->panels);
  return out;
}

// Makes the folder where it is missing, and finds out whether files can be made in it.
Status prepare_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const bool there = !failed && std::filesystem::is_directory(folder, failed);
  if (there && check_replaceable((std::filesystem::path(folder) / "figure.svg").string()).ok()) {
    return {};
  }
  return {Code::system, fmt::format("--svg is '{}', which cannot be written to; it takes a folder "
                                    "that can be made, or that is there and may be written to",
                                    folder)};
}

Status write_pictures(const std::string& folder, const std::vector<Picture>& pictures) {
  for (const Picture& picture : pictures) {
    const auto path = std::filesystem::path(folder) / picture.name;
    Status status = of_option("--svg", replace_file(path.string(), picture.svg));
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::string> read_paper(std::string_view argument, std::string_view text) {
  constexpr std::string_view kPapers[] = {kTrivanceKey, kTraffKey};
  for (const std::string_view paper : kPapers) {
    if (text == paper) return std::string(text);
  }
  return unknown_name(argument, text, kPapers);
}

}  // namespace

Subcommand add_reproduce(Command tool) {
  auto owned = std::make_shared<ReproduceArguments>();
  ReproduceArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "reproduce", "a paper's tables, figures and statements, recomputed from the schedules");
  add_argument(app, "paper", a.paper, read_paper, "NAME", "trivance or traff (both)");
  add_text(app, "--svg", a.svg, "DIR", "write the figures into this folder, one file per part");
  app.add_flag("--json", a.json, "everything as JSON: tables, figures, statements");
  app.footer(
      "Examples:\n"
      "  rankine reproduce trivance --svg figures\n"
      "  rankine reproduce traff\n"
      "  rankine reproduce --json > papers.json\n"
      "Verdicts compare what the paper says with what comes out here; a difference is no error.");
  return {app, [owned](Console& console) { return reproduce_papers(*owned, console); }};
}

Result<Exit> reproduce_papers(const ReproduceArguments& arguments, Console& console) {
  const bool with_trivance = arguments.paper.empty() || arguments.paper == kTrivanceKey;
  const bool with_traff = arguments.paper.empty() || arguments.paper == kTraffKey;
  if (!arguments.svg.empty()) {
    if (!with_trivance) {
      return invalid_argument(
          fmt::format("--svg is '{}' and the paper is {}, which has no figures "
                      "that are recomputed; those of trivance are",
                      arguments.svg, arguments.paper));
    }
    // Before the work, so that nobody waits for it in vain.
    Status status = prepare_folder(arguments.svg);
    if (!status.ok()) return status;
  }
  std::unique_ptr<Trivance> trivance;
  std::vector<TraffOutcome> traff;
  {
    Progress progress(console);
    const auto report = [&](std::string_view what) -> ProgressReport {
      return [&, what](std::size_t done, std::size_t all) {
        if (progress.due()) progress.show(fmt::format("{} of {} {}", done, all, what));
      };
    };
    if (with_trivance) trivance = work_out_trivance(report("schedules of Trivance's evaluation"));
    if (with_traff) traff = traff_outcomes(report("numbers of processors of Traff's statements"));
  }
  if (!arguments.svg.empty()) {
    const Status status = write_pictures(arguments.svg, pictures_of(trivance->panels));
    if (!status.ok()) return status;
  }
  if (arguments.json) {
    auto papers = nlohmann::ordered_json::array();
    if (with_trivance) papers.push_back(to_json(*trivance));
    if (with_traff) papers.push_back(to_json(traff));
    console.out << nlohmann::ordered_json{{"papers", std::move(papers)}}.dump(2) << "\n";
    return Exit::ok;
  }
  if (with_trivance) print(console.out, *trivance);
  if (with_trivance && with_traff) console.out << "\n";
  if (with_traff) print(console.out, traff);
  return Exit::ok;
}

}  // namespace rankine::tools
