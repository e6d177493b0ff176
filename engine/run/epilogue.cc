#include "engine/run/epilogue.h"

#include "engine/run/users_function.h"

namespace rankine {

bool finish_rows(const Epilogue& epilogue, const void* rows, std::size_t first, std::size_t count,
                 std::string& why) noexcept {
  return returns([&] { epilogue.finish(rows, first, count, epilogue.context); }, why);
}

}  // namespace rankine
