#include "engine/lab/page/engine.h"

#include "engine/lab/page/answers.h"

namespace {

rankine::tools::PageAnswer& last() {
  static rankine::tools::PageAnswer answer;
  return answer;
}

}  // namespace

const char* rankine_answer(const char* request) {
  last() = rankine::tools::answer_page(request == nullptr ? "" : request);
  return last().json.c_str();
}

const double* rankine_numbers() { return last().numbers.data(); }

size_t rankine_number_count() { return last().numbers.size(); }
