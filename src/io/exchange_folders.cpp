#include "io/exchange_folders.h"

#include <sys/stat.h>

#include <cerrno>

#include "io/file.h"
#include "io/system_calls.h"
#include "shardpack/error.h"

namespace shardpack {

void exchange_folders(const std::string& a, const std::string& b, const std::string& aside) {
  if (sys::exchange(a.c_str(), b.c_str()) == 0) return;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) throw_errno("exchange with the new output", b);
  exchange_by_renames(a, b, aside);
}

void exchange_by_renames(const std::string& a, const std::string& b, const std::string& aside) {
  struct stat status {};
  if (::lstat(aside.c_str(), &status) == 0) throw Error(ErrorCode::io, "is in the way; move it elsewhere", aside);
  if (sys::rename(b.c_str(), aside.c_str()) != 0) throw_errno("move aside", b);
  if (sys::rename(a.c_str(), b.c_str()) != 0) {
    const int error = errno;
    if (sys::rename(aside.c_str(), b.c_str()) != 0) throw_errno("move back", aside);
    errno = error;
    throw_errno("rename", a);
  }
  if (sys::rename(aside.c_str(), a.c_str()) != 0) throw_errno("rename", aside);
}

}  // namespace shardpack
