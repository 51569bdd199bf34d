#include "io/spool.h"

#include <bit>

namespace shardpack {

Spool::Spool(const std::string& folder, bool keep) {
  if (keep) file_ = std::make_shared<File>(File::temporary(folder));
}

void Spool::append(TokenTable& table, std::span<const std::uint32_t> ids) {
  table.file = file_;
  table.type = IdType::u32;
  table.big_endian = std::endian::native == std::endian::big;
  table.decoded = true;
  table.append(static_cast<std::int64_t>(ids.size()), write(std::as_bytes(ids)));
}

void Spool::append(ValueTable& table, ValueType type, std::span<const std::byte> values) {
  table.file = file_;
  table.append(static_cast<std::int64_t>(values.size()) / info(type).bytes, write(values), type);
}

std::int64_t Spool::write(std::span<const std::byte> bytes) {
  const std::int64_t begin = end_;
  if (file_) file_->write_at(begin, bytes);
  end_ += static_cast<std::int64_t>(bytes.size());
  return begin;
}

}  // namespace shardpack
