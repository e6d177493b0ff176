// Writes bench/RESULTS.md, and rows.csv beside the documents, from a folder of documents.
//
//   report --folder bench/results --markdown bench/RESULTS.md
//
// Exit status: 0, 2 usage or an invalid document, 3 a file that cannot be written.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/rivals/document.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "nlohmann/json.hpp"

namespace rankine::rivals {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool write_text(const fs::path& path, const std::string& text) {
  const Status status = replace_file(path.string(), text);
  if (!status.ok()) std::fprintf(stderr, "report: %s\n", status.text().c_str());
  return status.ok();
}

// Orders the sections: all-reduce first, by ranks, threads before processes; then the other
// collectives; then the mailbox.
auto place(const Source& source) {
  const nlohmann::json& document = source.document;
  if (document.contains("channels")) return std::tuple(2, false, std::string(), 0, false);
  const nlohmann::json& context = document.at("context");
  const std::string collective = context.at("collective");
  return std::tuple(collective == "all_reduce" ? 0 : 1, context.value("processes", false),
                    collective, context.at("ranks").get<int>(), context.value("in_place", false));
}

int run(int argc, char** argv) {
  std::string folder, markdown;
  CLI::App app("Writes verdicts and tables of measurements by rivals and mailbox.");
  app.add_option("--folder", folder, "the folder of JSON files; rows.csv is written there")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--markdown", markdown, "the report; it links to files of the folder")->required();
  app.footer("Example:\n  report --folder bench/results --markdown bench/RESULTS.md");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::vector<Source> sources;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    sources.push_back({entry.path().stem().string(), {}});
    try {
      sources.back().document = read_json("the file", read_text(entry.path())).value();
      place(sources.back());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "report: %s is not a document of rivals or mailbox: %s\n",
                   entry.path().c_str(), error.what());
      return 2;
    }
  }
  if (sources.empty()) {
    std::fprintf(stderr, "report: --folder is %s, which has no JSON file\n", folder.c_str());
    return 2;
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return place(a) < place(b); });
  const fs::path beside = fs::absolute(markdown).parent_path();
  const std::string pictures = fs::relative(folder, beside).generic_string();
  return write_text(fs::path(folder) / "rows.csv", rows_csv(sources)) &&
                 write_text(markdown, results_markdown(sources, pictures))
             ? 0
             : 3;
}

}  // namespace
}  // namespace rankine::rivals

int main(int argc, char** argv) {
  try {
    return rankine::rivals::run(argc, argv);
  } catch (const nlohmann::json::exception& error) {
    std::fprintf(stderr, "report: a document lacks a field: %s\n", error.what());
    return 2;
  }
}
