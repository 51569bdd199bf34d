// What every use of Apache Arrow here shares: our files as Arrow sees them, its failures as ours, and its memory from malloc.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <memory>
#include <string>

#include "io/file.h"
#include "io/formats/format.h"

namespace shardpack {

/// Arrow's own pools keep freed memory to themselves and start threads; this one is malloc and free.
inline arrow::MemoryPool* arrow_pool() { return arrow::system_memory_pool(); }

/// Arrow reads only what is in the file: whatever it stumbles over is Error{bad_data}, but for memory running out, Error{limit}.
[[noreturn]] void fail_arrow(const arrow::Status& status, const std::string& shown, const std::string& position = {});

inline void check_arrow(const arrow::Status& status, const std::string& shown, const std::string& position = {}) {
  if (!status.ok()) fail_arrow(status, shown, position);
}

template <class T>
T take_arrow(arrow::Result<T>&& result, const std::string& shown, const std::string& position = {}) {
  if (!result.ok()) fail_arrow(result.status(), shown, position);
  return std::move(result).MoveValueUnsafe();
}

/// arrow_pool() up to the budget of `context`: sizes that a file claims are not believed beyond it.
std::unique_ptr<arrow::MemoryPool> limited_pool(const OpenContext& context);

/// Random access to `file` through pread: nothing is mapped, so that a file cut short while in use is an error and no signal.
/// An Error of ours passes through Arrow's calls. Thread-safe.
std::shared_ptr<arrow::io::RandomAccessFile> arrow_input(std::shared_ptr<const File> file);

}  // namespace shardpack
