// Let two folders swap their names: how an output takes the place of the old one.
#pragma once

#include <string>

namespace shardpack {

/// Afterwards `b` names what `a` named, and the other way round. Atomic where the file system can (renameat2 with
/// RENAME_EXCHANGE); elsewhere by exchange_by_renames(). \throws Error{io}, and then nothing has changed
void exchange_folders(const std::string& a, const std::string& b, const std::string& aside);

/// The same in three renames over the free name `aside`. A crash may leave `b` there; never is anything overwritten.
void exchange_by_renames(const std::string& a, const std::string& b, const std::string& aside);

}  // namespace shardpack
