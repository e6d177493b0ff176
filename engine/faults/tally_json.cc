#include "engine/faults/tally_json.h"

namespace rankine::faults {

using Json = nlohmann::json;

Json json_of(const Tally& t) {
  return {t.cases, t.returned,   t.hangs,          t.wrong,  t.undocumented,
          t.late,  t.impossible, t.why_impossible, t.remarks};
}

Tally tally_of(const Json& json) {
  Tally t;
  t.cases = json[0];
  t.returned = json[1].get<decltype(t.returned)>();
  t.hangs = json[2];
  t.wrong = json[3];
  t.undocumented = json[4];
  t.late = json[5];
  t.impossible = json[6];
  t.why_impossible = json[7];
  t.remarks = json[8].get<std::vector<std::string>>();
  return t;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rankine::faults
