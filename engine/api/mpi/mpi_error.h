// What MPI says went wrong, as a Status.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine::mpi {

// ok for MPI_SUCCESS; else Code::system, "MPI_Send_init: MPI_ERR_COMM: invalid communicator".
inline Status mpi_status(std::string_view function, int code) noexcept {
  if (code == MPI_SUCCESS) return {};
  return make_error(Code::system, [&] {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return std::string(function) + ": " + std::string(text, static_cast<std::size_t>(length));
  });
}

inline int class_of(int code) noexcept {
  int error_class = MPI_ERR_OTHER;
  MPI_Error_class(code, &error_class);
  return error_class;
}

}  // namespace rankine::mpi
