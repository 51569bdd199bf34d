// Group keys as JSON and as fields of a CSV.
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"
#include "shardpack/group_key.h"

namespace shardpack {

/// JSON text: 17, true, "web".
std::string group_text(const GroupKey& key);

/// \throws Error{bad_data} for anything but a string, a whole number, true or false
GroupKey read_group(const Json& value);

/// A CSV field: as it is, or quoted (RFC 4180) where it would be read as something else. Numbers, true and false are bare.
std::string group_field(const GroupKey& key);

/// The key that an unquoted field, or the inside of a quoted one, stands for.
GroupKey group_of_field(std::string_view text, bool quoted);

}  // namespace shardpack
