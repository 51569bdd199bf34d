#include "base/checked.h"

#include <string>

#include "shardpack/error.h"

namespace shardpack {

std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw Error(ErrorCode::limit, std::string(what) + " exceeds 2^63 - 1");
  return sum;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw Error(ErrorCode::limit, std::string(what) + " exceeds 2^63 - 1");
  return product;
}

void ensure(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::internal, std::string("internal error: ") + std::string(what) + "; please report it");
}

}  // namespace shardpack
