// Numbers as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardpack {

/// "41822" -> "41,822".
std::string with_commas(std::int64_t value);

/// Tokens or sequences for a summary: "1,234", "297.0 M", "4.2 G".
std::string short_count(std::int64_t value);

/// Bytes: "812 B", "1.7 GiB".
std::string short_bytes(std::int64_t bytes);

/// A size: digits with an optional fraction and K, M, G or T (times 1024 each; "Ki" and "KiB" spell the same), e.g. "512M",
/// "1.5G", "256Mi". \throws Error{usage} otherwise or when it leaves 63 bits, naming `option`.
std::int64_t parse_size(std::string_view text, std::string_view option);

}  // namespace shardpack
