// A pair of Megatron's files: NAME.bin with the rows back to back, NAME.idx with where each of them begins. Every row is one
// sequence and one document. The layout is described at the reader, src/io/formats/megatron.cpp.
#include <cstring>
#include <span>

#include "base/checked.h"
#include "io/hashed_file.h"
#include "io/trainer_files.h"

namespace shardpack {

namespace {

struct MegatronRows final : EncodedRows {
  explicit MegatronRows(TrainerRows&& rows_) : rows(std::move(rows_)) {}
  TrainerRows rows;
};

class MegatronFiles final : public TrainerFiles {
 public:
  MegatronFiles(const OutputRules& rules, const std::string& folder, const std::string& name, std::int64_t rows)
      : rules_(rules),
        name_(name),
        bin_(folder + "/" + name + ".bin", rows * rules.row_bytes()),
        idx_(folder + "/" + name + ".idx") {
    ensure(rules.columns.size() == 1, "Megatron's files hold token ids alone");
  }

  std::unique_ptr<EncodedRows> encode(TrainerRows&& rows) const override {
    return std::make_unique<MegatronRows>(std::move(rows));
  }

  void write(EncodedRows& rows) override {
    const TrainerRows& block = static_cast<MegatronRows&>(rows).rows;
    bin_.append(block.columns.front().values);
    documents_ += block.rows;
  }

  std::vector<ManifestFile> finish() override {
    constexpr std::uint8_t kCodeOfI32 = 4, kCodeOfU16 = 8;
    const ValueType type = rules_.columns.front().type;
    const std::int64_t row_bytes = std::int64_t{rules_.row_tokens} * info(type).bytes;
    idx_.append(std::as_bytes(std::span("MMIDIDX\0", 9)));
    append(std::uint64_t{1});
    append(type == ValueType::u16 ? kCodeOfU16 : kCodeOfI32);
    append(documents_);
    append(documents_ + 1);
    append_each(documents_, [&](std::int64_t) { return static_cast<std::int32_t>(rules_.row_tokens); });
    append_each(documents_, [&](std::int64_t i) { return i * row_bytes; });
    append_each(documents_ + 1, [](std::int64_t i) { return i; });
    return {bin_.finish(name_ + ".bin"), idx_.finish(name_ + ".idx")};
  }

 private:
  template <class T>
  void append(const T& value) {
    idx_.append(std::as_bytes(std::span(&value, 1)));
  }

  template <class Get>
  void append_each(std::int64_t count, Get get) {
    std::vector<decltype(get(0))> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = get(i);
    idx_.append(std::as_bytes(std::span(values)));
  }

  const OutputRules& rules_;
  const std::string name_;
  HashedFile bin_, idx_;
  std::int64_t documents_ = 0;
};

}  // namespace

std::unique_ptr<TrainerFiles> make_megatron_files(const OutputRules& rules, const std::string& folder, const std::string& name,
                                                  std::int64_t rows) {
  return std::make_unique<MegatronFiles>(rules, folder, name, rows);
}

}  // namespace shardpack
