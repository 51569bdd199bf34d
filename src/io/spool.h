// What had to be decoded to be read, written once from front to back into a temporary file that then is read at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/file.h"
#include "io/token_table.h"
#include "io/value_table.h"

namespace shardpack {

class Spool {
 public:
  /// \param folder  of the temporary file, which has no name there
  /// \param keep  false: values are counted, and nothing is written
  explicit Spool(const std::string& folder, bool keep = true);

  /// Add ids, or values of type `type`, to what the table holds. Each spool serves one table. \throws Error{io}
  void append(TokenTable& table, std::span<const std::uint32_t> ids);
  void append(ValueTable& table, ValueType type, std::span<const std::byte> values);

 private:
  /// \return where they lie
  std::int64_t write(std::span<const std::byte> bytes);

  std::shared_ptr<File> file_;  // none when nothing is kept
  std::int64_t end_ = 0;        // bytes
};

}  // namespace shardpack
