// The kinds of record sinks: lines of text, flat arrays, and Arrow's tables.
#pragma once

#include "io/record_sink.h"

namespace shardpack {

std::unique_ptr<RecordSink> make_line_sink(const RecordSinkSettings& settings, const std::string& folder, const std::string& stem,
                                           const RunContext& context);
std::unique_ptr<RecordSink> make_array_sink(const RecordSinkSettings& settings, const std::string& folder,
                                            const std::string& stem, const RunContext& context);
std::unique_ptr<RecordSink> make_table_sink(const RecordSinkSettings& settings, const std::string& folder,
                                            const std::string& stem, const RunContext& context);

}  // namespace shardpack
