#include "engine/tools/lesson/course.h"

#include <fmt/format.h>

#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kPrompt = "$ rankine ", kHead = " | head -";

std::string first_lines(const std::string& text, int lines) {
  std::size_t at = 0;
  for (int i = 0; i < lines && at < text.size(); ++i) {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return text.substr(0, at);
}

Result<std::string> answer_to(std::string_view line, const AnswerCommand& answer) {
  if (!line.starts_with(kPrompt)) {
    return invalid_argument(fmt::format("'{}' is no command that begins with '{}'", line, kPrompt));
  }
  std::string_view command = line.substr(kPrompt.size());
  int lines = 0;
  if (const std::size_t head = command.find(kHead); head != command.npos) {
    const auto asked = parse_whole("head", command.substr(head + kHead.size()), 1, 1000);
    if (!asked.ok()) return asked.status();
    lines = *asked;
    command = command.substr(0, head);
  }
  auto said = answer(command_words(command));
  if (!said.ok()) {
    return Status(said.status().code(), fmt::format("'{}': {}", line, said.status().text()));
  }
  return lines > 0 ? first_lines(*said, lines) : std::move(*said);
}

}  // namespace

std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;  // of quotes; of a word
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

Result<std::string> with_answers(std::string_view markdown, const AnswerCommand& answer) {
  std::string out;
  bool commands = false, first = true;  // in a block of them; nothing of it is answered yet
  for (std::size_t at = 0; at < markdown.size();) {
    const std::size_t end = std::min(markdown.find('\n', at), markdown.size());
    const std::string_view line = markdown.substr(at, end - at);
    at = end + 1;
    const bool fence = line.starts_with("```");
    if (commands && !fence && !first) out += '\n';
    out += fmt::format("{}\n", line);
    if (commands && !fence) {
      const auto said = answer_to(line, answer);
      if (!said.ok()) return said.status();
      out += *said;
      first = false;
    }
    if (!fence) continue;
    commands = !commands && line == "```console";
    first = true;
  }
  return out;
}

}  // namespace rankine::tools
