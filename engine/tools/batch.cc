#include "engine/tools/batch.h"

#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>

#include <istream>
#include <ostream>
#include <vector>

#include "engine/base/json_text.h"
#include "engine/tools/answer.h"
#include "engine/tools/line_reader.h"
#include "engine/tools/question_json.h"

namespace rankine::tools {
namespace {

BatchAnswer refused(const Json& request, std::size_t number, std::string_view error) {
  Json line = request.is_object() ? request : Json::object();
  line["line"] = number;
  line["error"] = error;
  // Texts of requests may hold anything; what is no UTF-8 must not make the answer fail.
  return {line.dump(-1, ' ', false, Json::error_handler_t::replace), false};
}

}  // namespace

BatchAnswer answer_request(std::string_view line, std::size_t number) {
  const auto read = read_json<Json>("the request", line);
  if (!read.ok()) return refused({}, number, read.status().text());
  Json request = *read;
  try {
    auto question = read_question(request);
    if (!question.ok()) return refused(request, number, question.status().text());
    auto answered = answer(std::move(*question));
    if (!answered.ok()) return refused(request, number, answered.status().text());
    if (request.contains("segments")) request["segments"] = answered->params.segments;
    add_result(*answered, request);
    return {request.dump(), true};
  } catch (const std::exception& error) {
    return refused(request, number, error.what());
  }
}

std::size_t answer_batch(std::istream& in, std::ostream& out) {
  constexpr std::size_t kAtOnce = 1024;
  // Enough that a long one holds up nobody but the writer.
  const auto in_flight = static_cast<std::size_t>(16 * tbb::info::default_concurrency());
  LineReader reader(in, kMostJsonBytes);
  std::size_t errors = 0;
  using Line = LineReader::Line;
  for (std::vector<Line> lines; !(lines = reader.next(kAtOnce)).empty();) {
    std::erase_if(lines, [](const Line& line) {
      return line.text.find_first_not_of(" \t\r") == std::string::npos;
    });
    std::size_t next = 0;
    // Whoever asks waits for the answer perhaps before it asks again, so each is flushed.
    tbb::parallel_pipeline(
        in_flight,
        tbb::make_filter<void, Line*>(tbb::filter_mode::serial_in_order,
                                      [&](tbb::flow_control& control) -> Line* {
                                        if (next < lines.size()) return &lines[next++];
                                        control.stop();
                                        return nullptr;
                                      }) &
            tbb::make_filter<Line*, BatchAnswer>(
                tbb::filter_mode::parallel,
                [](const Line* line) { return answer_request(line->text, line->number); }) &
            tbb::make_filter<BatchAnswer, void>(tbb::filter_mode::serial_in_order,
                                                [&](const BatchAnswer& answer) {
                                                  out << answer.line << '\n' << std::flush;
                                                  errors += answer.ok ? 0 : 1;
                                                }));
  }
  return errors;
}

}  // namespace rankine::tools
