#include "engine/api/mpi/message_line.h"

#include <string>
#include <vector>

#include "engine/api/tuning/machine_model.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"

namespace rankine {
namespace {

std::string in_words(std::span<const TimedMessage> messages) {
  std::string text;
  for (const TimedMessage& message : messages) {
    if (!text.empty()) text += ", ";
    text += std::to_string(message.bytes) + " B in " + format_seconds(message.seconds);
  }
  return text;
}

}  // namespace

Result<Link> line_through(std::span<const TimedMessage> messages) {
  const TimedMessage& shortest = messages.front();
  std::vector<double> slopes;
  for (const TimedMessage& longer : messages.subspan(1)) {
    slopes.push_back((longer.seconds - shortest.seconds) /
                     static_cast<double>(longer.bytes - shortest.bytes));
  }
  const auto fabric =
      machine_fabric({.alpha = shortest.seconds, .beta = median(std::move(slopes)), .gamma = 0});
  if (fabric.ok()) return fabric->link;
  return invalid_argument("no line of alpha and beta goes through the times of messages, " +
                          in_words(messages) + ": " + fabric.status().text() +
                          "; a machine on which less else goes on is needed");
}

}  // namespace rankine
