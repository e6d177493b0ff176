#include "engine/tools/answer_batch.h"

#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "engine/base/json_text.h"
#include "engine/tools/answer.h"
#include "engine/tools/line_reader.h"

namespace rankine::tools {

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
