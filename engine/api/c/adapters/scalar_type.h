/* Converts torch's element types, as numbers (at::ScalarType), to Rankine's.
 *
 * C99 and C++. Everything here is static. */
#ifndef RANKINE_ADAPTERS_SCALAR_TYPE_H
#define RANKINE_ADAPTERS_SCALAR_TYPE_H

#include <stdbool.h>

#include <rankine/rankine.h>

/* scalar_type is static_cast<int>(tensor.scalar_type()). Returns false for types that inference
 * does not add up. */
static bool rankine_scalar_type(int scalar_type, rkDataType_t* ours) {
  switch (scalar_type) {
    case 5: /* Half */
      *ours = rkFloat16;
      return true;
    case 6: /* Float */
      *ours = rkFloat32;
      return true;
    case 15: /* BFloat16 */
      *ours = rkBfloat16;
      return true;
    default:
      return false;
  }
}

#endif
