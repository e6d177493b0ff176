#include "engine/tools/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/units.h"
#include "engine/tools/svg.h"

namespace rankine::tools {
namespace {

Status check(const Answer& answer) {
  if (answer.carried) {
    return invalid_argument(fmt::format("--fidelity is {}; a trace is of fidelity eq1",
                                        name_of(answer.question.fidelity)));
  }
  const std::size_t messages = answer.result.trace.size();
  if (messages <= kMostTraced) return {};
  return invalid_argument(fmt::format("--trace: {} messages are too many; at most {} are allowed",
                                      messages, kMostTraced));
}

// As many as are used: networks may have more than any rank needs.
int ports_used(const Simulation& result) {
  int most = 0;
  for (const TracedMessage& m : result.trace) {
    most = std::max({most, m.send_port, m.receive_port});
  }
  return most + 1;
}

double seconds_of(const Answer& answer, Ticks ticks) {
  return nearest_double(ticks, answer.result.ticks_per_second);
}

Json named(const char* what, int rank, int track, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

Json arguments_of(const Answer& answer, const Routes& routes, const TracedMessage& m) {
  const Fabric& fabric = answer.question.fabric;
  const int from = fabric.place_of(m.from), to = fabric.place_of(m.to);
  Json out = {{"round", m.round},
              {"transfer", m.transfer},
              {"from", m.from},
              {"to", m.to},
              {"bytes", bytes_of(m.weight, answer.result.weight_per_byte)},
              {"hops", routes.hops(from, to)}};
  Json links = Json::array();
  routes.for_each_link(from, to, [&links](int link, int) { links.push_back(link); });
  if (!links.empty()) out["links"] = std::move(links);
  if (fabric.kind_between(m.from, m.to) % 2 == 1) out["between"] = true;
  return out;
}

}  // namespace

Result<std::string> trace_json(const Answer& answer) {
  if (Status status = check(answer); !status.ok()) return status;
  const Fabric& fabric = answer.question.fabric;
  const auto routes = Routes::make(fabric.wiring, fabric.places_among(answer.params.ranks));
  if (!routes.ok()) return routes.status();
  Json events = Json::array();
  const int ports = ports_used(answer.result);
  for (Rank r = 0; r < answer.params.ranks; ++r) {
    events.push_back(named("process_name", r, 0, fmt::format("rank {}", r)));
    for (int port = 0; port < ports; ++port) {
      events.push_back(named("thread_name", r, 2 * port, fmt::format("send port {}", port)));
      events.push_back(named("thread_name", r, 2 * port + 1, fmt::format("receive port {}", port)));
    }
  }
  for (const TracedMessage& m : answer.result.trace) {
    const double start = seconds_of(answer, m.start) * 1e6;
    Json event = {{"ph", "X"},
                  {"name", fmt::format("{} to {}", m.from, m.to)},
                  {"cat", fmt::format("round {}", m.round)},
                  {"ts", start},
                  {"dur", seconds_of(answer, m.end - m.start) * 1e6},
                  {"pid", m.from},
                  {"tid", 2 * std::max(0, m.send_port)},
                  {"args", arguments_of(answer, *routes, m)}};
    events.push_back(event);
    event["pid"] = m.to;
    event["tid"] = 2 * std::max(0, m.receive_port) + 1;
    events.push_back(std::move(event));
  }
  const Json out = {{"displayTimeUnit", "ns"},
                    {"otherData", {{"question", describe(answer.question)}}},
                    {"traceEvents", std::move(events)}};
  return out.dump() + "\n";
}

Result<std::string> trace_svg(const Answer& answer) {
  if (Status status = check(answer); !status.ok()) return status;
  const int ports = ports_used(answer.result), rows = answer.params.ranks * ports;
  if (rows > kMostGanttRows) {
    return invalid_argument(fmt::format(
        "--trace: a picture of {} ports is too tall; at most {} are allowed, and .json has all",
        rows, kMostGanttRows));
  }
  constexpr int kLeft = 64, kWide = 960, kRow = 18, kTop = 34, kFont = 12;
  const double end = seconds_of(answer, answer.result.end);
  const double per_second = end > 0 ? (kWide - kLeft - 10) / end : 0;
  std::string body =
      fmt::format("<text x=\"{}\" y=\"20\">{}: {}</text>\n", kLeft,
                  xml_text(answer.question.algorithm->name), xml_text(describe(answer.question)));
  for (Rank r = 0; r < answer.params.ranks; ++r) {
    const int y = kTop + r * ports * kRow;
    body += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + kRow - 5, r);
    body += fmt::format("<path d=\"M8 {0}H{1}\" stroke=\"#ccc\"/>\n", y, kWide - 10);
  }
  for (const TracedMessage& m : answer.result.trace) {
    const double x = kLeft + seconds_of(answer, m.start) * per_second;
    const double width = std::max(0.5, seconds_of(answer, m.end - m.start) * per_second - 1);
    const int y = kTop + (m.from * ports + std::max(0, m.send_port)) * kRow;
    // Neighbouring rounds get colours that are far apart.
    body += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"hsl({} 60% 68%)\">"
        "<title>round {}: {} to {}, {}, {} to {}</title></rect>\n",
        x, y + 1, width, kRow - 2, (m.round * 47 + 205) % 360, m.round, m.from, m.to,
        format_bytes(bytes_of(m.weight, answer.result.weight_per_byte)),
        format_duration(seconds_of(answer, m.start)), format_duration(seconds_of(answer, m.end)));
    constexpr double kFits = 26;
    if (width < kFits) continue;
    body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">&#8594;{}</text>\n",
                        x + width / 2, y + kRow - 5, m.to);
  }
  const int bottom = kTop + rows * kRow;
  constexpr int kTicks = 4;
  for (int tick = 0; tick <= kTicks; ++tick) {
    body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                        kLeft + end * per_second * tick / kTicks, bottom + 18,
                        tick == kTicks ? "end" : "middle", format_duration(end * tick / kTicks));
  }
  return svg_picture(kWide, bottom + 28, kFont, body);
}

}  // namespace rankine::tools
