#include "io/batch_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/npy.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

std::string manifest_path(const std::string& path) {
  return fs::path(path).filename() == kManifestName ? path : (fs::path(path) / kManifestName).string();
}

}  // namespace

std::string lengths_hash(const std::vector<std::int64_t>& lengths) {
  return hash_hex({reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(std::int64_t)});
}

BatchFolder::BatchFolder(const std::string& path)
    : folder_((fs::path(manifest_path(path)).parent_path() / "").string()),
      manifest_(batch_manifest_from_json(read_small_file(manifest_path(path)), manifest_path(path))) {}

bool BatchFolder::lists(std::string_view file) const {
  return std::any_of(manifest_.files.begin(), manifest_.files.end(), [&](const ManifestFile& f) { return f.name == file; });
}

PackedArray BatchFolder::open_array(std::string_view stem) const {
  const std::string name = std::string(stem) + ".npy";
  if (!lists(name)) throw Error(ErrorCode::bad_data, "the manifest does not list it", folder_ + name);
  PackedArray array(folder_ + name);
  if (array.shape().size() != 1) throw Error(ErrorCode::bad_data, "expected a one-dimensional array", array.path());
  return array;
}

PackedArray BatchFolder::open_array(const ManifestShard& shard, std::string_view file) const {
  return PackedArray(fmt::format("{}{}/{}", folder_, shard.folder, file));
}

std::vector<std::int64_t> BatchFolder::read_lengths() const {
  const PackedArray array = open_array("lengths");
  std::vector<std::int64_t> lengths = array.read_all<std::int64_t>();
  if (lengths_hash(lengths) != manifest_.lengths_hash) {
    throw Error(ErrorCode::bad_data, "not the lengths that the plan was made for", array.path());
  }
  if (const auto wrong = std::find_if(lengths.begin(), lengths.end(), [](std::int64_t length) { return length < 0; });
      wrong != lengths.end()) {
    throw Error(ErrorCode::bad_data, fmt::format("a length of {}", *wrong), array.path(),
                fmt::format("entry {}", with_commas(wrong - lengths.begin())));
  }
  return lengths;
}

std::vector<float> BatchFolder::read_weights(std::int64_t first, std::int64_t count) const {
  std::vector<float> weights(static_cast<std::size_t>(count), 1.0F);
  if (!lists("weights.npy")) return weights;
  const File file(folder_ + "weights.npy", File::Mode::read);
  const NpyHeader header = read_npy_header(file);
  if (header.descr != "<f4" || header.shape.size() != 1 || header.fortran_order) {
    throw Error(ErrorCode::bad_data, "expected a one-dimensional array of <f4", file.shown());
  }
  if (first < 0 || count > header.elements() || first > header.elements() - count) {
    throw Error(ErrorCode::bad_data, fmt::format("{} weights are there", with_commas(header.elements())), file.shown());
  }
  file.read_at(header.data_begin + 4 * first, std::as_writable_bytes(std::span(weights)));
  return weights;
}

}  // namespace shardpack
