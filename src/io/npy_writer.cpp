#include "io/npy_writer.h"

#include "base/checked.h"
#include "io/npy.h"

namespace shardpack {

namespace {

// Of any one-dimensional array of numbers: the longest shape leaves room in it.
constexpr std::int64_t kHeaderBytes = 128;

}  // namespace

NpyWriter::NpyWriter(const std::string& folder, std::string name, std::string_view descr)
    : path_(folder + "/" + name),
      name_(std::move(name)),
      descr_(descr),
      file_(path_, File::Mode::create_exclusive),
      end_(kHeaderBytes) {}

void NpyWriter::append_bytes(std::span<const std::byte> bytes) {
  file_.write_at(end_, bytes);
  end_ += static_cast<std::int64_t>(bytes.size());
}

ManifestFile NpyWriter::finish() {
  const std::string header = make_npy_header(descr_, {elements_});
  ensure(static_cast<std::int64_t>(header.size()) == kHeaderBytes, "the header of a one-dimensional array has 128 bytes");
  file_.write_at(0, std::as_bytes(std::span(header)));
  file_.sync();
  file_.close();
  return {name_, end_, hash_file(File(path_, File::Mode::read))};  // the header came last, so the bytes are read once more
}

}  // namespace shardpack
