// The files of a random-LTD schedule folder beside its manifest, as bytes. docs/ltd.md describes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/manifest_parts.h"
#include "shardpack/ltd_manifest.h"

namespace shardpack {

inline constexpr std::string_view kPlateausFile = "plateaus.json", kStepsFile = "steps.npy", kDeepSpeedFile = "ds_config.json",
                                  kSelectionFile = "selection.json", kBoundariesFile = "cu_seqlens.npy",
                                  kBoundaryOffsetsFile = "cu_offsets.npy", kKeptFolder = "kept",
                                  kKeptOffsetsFile = "kept_offsets.npy";

/// Does the folder's manifest begin as that of an LTD folder? \param path  the folder, or its manifest.json
bool is_ltd_folder(const std::string& path);

std::string plateaus_to_json(const std::vector<LtdPlateau>& plateaus);
/// Inverse. \throws Error{bad_data} naming `path` and the key
std::vector<LtdPlateau> plateaus_from_json(const std::string& text, const std::string& path);

/// steps.npy, one packed structure a step, piece by piece: all of it may be large.
void steps_to_npy(const std::vector<LtdStep>& steps, const std::function<void(std::string_view)>& use);
/// Inverse. \throws Error{bad_data} naming `path` for another layout or a wrong step number
std::vector<LtdStep> steps_from_npy(std::string_view bytes, const std::string& path);

/// One kept set, to check a port against.
struct KeptSample {
  KeptPlace place;
  std::vector<std::uint32_t> slots;
};
std::string selection_to_json(const LtdSetup& setup, const std::vector<KeptSample>& samples);

/// u16 where every slot fits, else u32: the type of kept slots and boundaries.
IdType slot_type(std::int64_t row_tokens);

/// "kept/00000000.npy": the indices of the steps of one shape from `step` on.
std::string kept_file_name(std::int64_t step);

}  // namespace shardpack
