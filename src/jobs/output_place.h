// Where an output goes, before it is made: apart from the inputs, and with room for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

/// The folder that `output` is made in.
std::string parent_of(const std::string& output);

/// \throws Error{usage} when the output lies inside an input folder (it would be its own input next time) or is an input.
void check_output_apart(const std::string& output, const std::vector<std::string>& inputs);

/// \throws Error{io} when the folder that `output` is made in has not as many bytes left
/// \param remedies  options that take less: "--compress zstd"
void check_free_space(const std::string& output, std::int64_t needed, std::string_view remedies);

}  // namespace shardpack
