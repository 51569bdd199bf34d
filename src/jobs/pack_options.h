// Options of pack: what fits together, what follows from them, and how they are recorded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/journal.h"
#include "shardpack/jobs.h"

namespace shardpack {

/// With what the preset says filled in: pad id, container, EOS to be appended. \throws Error{usage} for a preset that there is
/// not, or cannot be written so.
PackOptions with_preset(PackOptions options);

/// Of options with their preset. \throws Error{usage} for those that contradict each other; Error{limit} for a container that
/// this program was built without.
void check_pack_options(const PackOptions& options);

RowOrder row_order(const PackOptions& options);  ///< with the default filled in

/// u16 when the source's largest id, the pad id and what is added fit, else u32. \throws Error{bad_data} when --id-dtype is too
/// narrow for a source id.
IdType choose_id_type(const PackOptions& options, std::int64_t source_id_max);
/// The same, `asked` being --id-dtype and `added` the largest id that is written beside those of the source.
IdType choose_id_type(std::optional<IdType> asked, std::int64_t added, std::int64_t source_id_max);

/// Name and JSON value, as the manifest records them.
using RecordedOption = std::pair<std::string, std::string>;
using RecordedOptions = std::vector<RecordedOption>;

/// Every option that decides the bytes.
std::vector<RecordedOption> recorded_options(const PackOptions& options);

/// What of the run's identity is known before the inputs are read: the version and the options.
RunIdentity identity_before_reading(const PackOptions& options);

/// Those of them that say how inputs are read, and what is done to sequences before they are packed.
std::vector<RecordedOption> recorded_read_options(const ReadOptions& read);
std::vector<RecordedOption> recorded_policy(const LengthPolicy& policy);

}  // namespace shardpack
