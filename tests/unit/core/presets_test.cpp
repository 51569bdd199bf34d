#include "shardpack/presets.h"

#include <set>
#include <string>

#include "shardpack/error.h"
#include "support/catch.h"

namespace shardpack {
namespace {

TEST_CASE("every row of the table can be written and read") {
  std::set<std::string_view> names;
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    CHECK(names.insert(preset.name).second);
    CHECK(&find_preset(preset.name) == &preset);
    CHECK_FALSE(preset.summary.empty());
    CHECK_FALSE(preset.train_with.empty());
    CHECK_FALSE(preset.containers.empty());
    CHECK(has_source(preset, OutputSource::ids));
    std::set<std::string_view> columns;
    for (const OutputColumn& column : preset.columns) CHECK(columns.insert(column.name).second);
    for (const Container container : preset.containers) {
      const bool parquet = container == Container::parquet;
      CHECK((!parquet || preset.group_rows > 0));
    }
    CHECK((!preset.ends_in_eos || preset.needs_eos_id));
    // Who reads NumPy arrays has an order of their own, or none.
    CHECK(preset.shuffled_by.empty() == (preset.containers.front() == Container::npy));
    CHECK((preset.keep_order.empty() || !preset.shuffled_by.empty()));
    const bool of_labels = has_source(preset, OutputSource::labels) || has_source(preset, OutputSource::loss_mask) ||
                           has_source(preset, OutputSource::targets);
    CHECK((is_native(preset) || of_labels == (preset.labels != LabelRule::none)));
  }
}

TEST_CASE("a name that is nearly one is guessed") {
  try {
    find_preset("tlr");
    FAIL("there is no such preset");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(std::string(error.what()).find("did you mean trl?") != std::string::npos);
  }
}

TEST_CASE("containers are found by their number") {
  for (std::size_t i = 0; i < containers().size(); ++i) CHECK(static_cast<std::size_t>(containers()[i].container) == i);
}

}  // namespace
}  // namespace shardpack
