// The bytes of files as part of a hash, for hashes over several files one after the other.
#pragma once

#include "base/hash.h"
#include "io/file.h"

namespace shardpack {

/// Adds all bytes of a file, from its first one on. \throws Error{io}
void hash_file(const File& file, StreamHash& hash);

}  // namespace shardpack
