#include <fmt/format.h>

#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/cli/console.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"
#include "engine/lab/page/answers.h"

namespace rankine::tools {
namespace {

struct PageArguments {
  std::string output, ask;  // files
};

void answer_lines(std::istream& in, std::ostream& out) {
  constexpr std::size_t kAtOnce = 64;
  LineReader reader(in, kMostJsonBytes);
  for (std::vector<LineReader::Line> lines; !(lines = reader.next(kAtOnce)).empty();) {
    for (const LineReader::Line& line : lines) {
      const PageAnswer answer = answer_page(line.text);
      Json whole = Json::parse(answer.json);
      // JSON has no NaN; the library writes null.
      if (!answer.numbers.empty()) whole["numbers"] = answer.numbers;
      out << whole.dump() << '\n' << std::flush;
    }
  }
}

Result<Exit> run_page(const PageArguments& a, Console& console) {
  if (a.output.empty() == a.ask.empty()) {
    return invalid_argument("one of --output and --ask is needed; allowed is one");
  }
  if (!a.ask.empty()) {
    Status status =
        read_input("--ask", a.ask, [&](std::istream& in) { answer_lines(in, console.out); });
    if (!status.ok()) return status;
    return Exit::ok;
  }
  const std::vector<EmbeddedFile> page = built_page();
  if (page.empty()) {
    return Status(Code::system,
                  "the page is not in this build; in Rankine's sources third_party/page builds it, "
                  "and third_party/page --to FILE writes it");
  }
  if (Status status = replace_file(a.output, page[0].text); !status.ok()) {
    return of_option("--output", status);
  }
  console.err << fmt::format("rankine page: {} bytes in {}; any browser opens it\n",
                             page[0].text.size(), a.output);
  return Exit::ok;
}

}  // namespace

Subcommand add_page(Command tool) {
  auto owned = std::make_shared<PageArguments>();
  PageArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "page", "one HTML file with this engine inside: races, players, curves, proofs");
  add_output_file(app, "-o,--output", a.output, "write the page to this file");
  add_text(app, "--ask", a.ask, "FILE",
           "answer as the page's engine does, one JSON object per line; '-': standard input");
  app.footer(
      "Examples:\n"
      "  rankine page -o rankine.html\n"
      "  echo '{\"ask\": \"catalogue\"}' | rankine page --ask -\n"
      "Exit codes: 0 written, 2 usage, 3 not in this build.");
  return {app, [owned](Console& console) { return run_page(*owned, console); }};
}

}  // namespace rankine::tools
