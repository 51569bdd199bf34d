// The table of output presets. What each trainer reads is from its own source code; docs/trainers.md says more of each.
#include "shardpack/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

using enum OutputSource;

constexpr std::array<ContainerInfo, 5> kContainers{{
    {Container::npy, "npy", "a folder of NumPy arrays a shard; with --compress zstd, seekable frames of whole rows"},
    {Container::arrow, "arrow", "a save_to_disk folder of datasets: Arrow IPC streams, state.json, dataset_info.json"},
    {Container::parquet, "parquet", "Parquet files with zstd, a row of the table a packed row"},
    {Container::megatron, "megatron", "a .bin and .idx of Megatron a shard, a document a packed row"},
    {Container::index, "index", "the native arrays without tokens: where every segment lies in the sources", false},
}};

constexpr Container kNpyOrIndex[]{Container::npy, Container::index}, kNpyOrParquet[]{Container::npy, Container::parquet},
    kDatasets[]{Container::arrow, Container::parquet}, kArrow[]{Container::arrow}, kParquet[]{Container::parquet},
    kMegatron[]{Container::megatron};

// Stored as wide as they need be: the types are those of the largest.
constexpr OutputColumn kNativeColumns[]{{"input_ids", ids, ValueType::u32},
                                        {"segment_ids", segment_ids, ValueType::u32},
                                        {"position_ids", position_ids, ValueType::u32}};
constexpr OutputColumn kHfColumns[]{{"input_ids", ids}, {"position_ids", position_ids}, {"labels", labels}};
constexpr OutputColumn kMlmColumns[]{{"input_ids", ids}, {"segment_ids", segment_ids}, {"position_ids", position_ids}};
constexpr OutputColumn kTrlColumns[]{{"input_ids", ids}, {"labels", labels, ValueType::i32, true}, {"seq_lengths", seq_lengths}};
constexpr OutputColumn kMegatronColumns[]{{"input_ids", ids, ValueType::u16}};
constexpr OutputColumn kBridgeColumns[]{
    {"input_ids", ids}, {"loss_mask", loss_mask, ValueType::i8}, {"seq_start_id", seq_starts}};
constexpr OutputColumn kLlamaFactoryColumns[]{
    {"input_ids", ids}, {"attention_mask", segment_ids}, {"position_ids", position_ids}, {"labels", labels}};
constexpr OutputColumn kTorchtuneColumns[]{{"tokens", ids, ValueType::i64},
                                           {"labels", labels, ValueType::i64},
                                           {"input_pos", position_ids, ValueType::i64},
                                           {"seq_lens", seq_ends, ValueType::i64}};
constexpr OutputColumn kMaxtextColumns[]{
    {"inputs", ids},      {"inputs_position", position_ids},  {"inputs_segmentation", segment_ids},
    {"targets", targets}, {"targets_position", position_ids}, {"targets_segmentation", target_ids}};

// The fields of the paper's own pre-training data, as its packers write them.
constexpr std::string_view kTokenTypes[]{"token_type_ids"}, kMaskedPositions[]{"masked_lm_positions"},
    kMaskedIds[]{"masked_lm_ids"}, kMaskedWeights[]{"masked_lm_weights"},
    kNextSentence[]{"next_sentence_labels", "next_sentence_label"};
constexpr OutputColumn kBertColumns[]{
    {"input_ids", ids},
    {"input_mask", segment_ids},
    {.name = "token_type_ids", .source = token_values, .from = kTokenTypes},
    {"position_ids", position_ids},
    {.name = "masked_lm_positions", .source = entry_values, .from = kMaskedPositions, .needed = true},
    {.name = "masked_lm_ids", .source = entry_values, .from = kMaskedIds, .needed = true},
    {.name = "masked_lm_weights", .source = entry_segments, .from = kMaskedWeights},
    {"next_sentence_positions", segment_starts},
    {.name = "next_sentence_labels", .source = segment_values, .from = kNextSentence},
    {"next_sentence_weights", segment_numbers}};

constexpr Preset kPresets[]{
    {.name = "native",
     .summary = "NumPy arrays: ids, segment and position ids, boundaries, where everything came from",
     .containers = kNpyOrIndex,
     .columns = kNativeColumns,
     .labels = LabelRule::as_they_are,
     .train_with = R"(ids = np.load("OUT/shard-00000-00000/input_ids.npy", mmap_mode="r")    # segment_ids, position_ids the same
Attention is block-diagonal: a token sees those of its own segment id, and 0 is padding. seq_lengths.npy with row_offsets.npy
gives cu_seqlens. Labels, where there are any, are as in the sources: leave out the first one of every segment.)"},
    {.name = "hf",
     .summary = "Hugging Face transformers: full rows with position_ids that restart, and labels",
     .containers = kDatasets,
     .columns = kHfColumns,
     .labels = LabelRule::first_hidden,
     .group_rows = 1000,
     .shuffled_by = "the Trainer of transformers",
     .train_with = R"(data = datasets.load_from_disk("OUT")    # Parquet: load_dataset("parquet", data_files="OUT/*.parquet")
model = AutoModelForCausalLM.from_pretrained(..., attn_implementation="flash_attention_2")    # or "flex_attention"
Trainer(model, TrainingArguments(per_device_train_batch_size=1, ...), train_dataset=data, data_collator=default_data_collator)
There is no attention_mask, and none may be added: the model tells segments apart by position_ids that begin again. With
FlashAttention it does so at batch size 1 alone; in a loop of your own say model(..., use_cache=False), for with a cache
the other attentions do not look.)"},
    {.name = "mlm",
     .summary = "masked language models: full rows with segment_ids, masked anew every epoch",
     .containers = kDatasets,
     .columns = kMlmColumns,
     .group_rows = 1000,
     .shuffled_by = "the Trainer of transformers",
     .train_with = R"(data = datasets.load_from_disk("OUT")    # Parquet: load_dataset("parquet", data_files="OUT/*.parquet")
model = AutoModelForMaskedLM.from_pretrained(..., attn_implementation="sdpa")    # eager would add True and False to the scores
TrainingArguments(remove_unused_columns=False, ...), DataCollatorForLanguageModeling(tokenizer) on input_ids alone, and beside it
s = batch.pop("segment_ids"); batch["attention_mask"] = ((s[:, :, None] == s[:, None, :]) & (s[:, None, :] > 0))[:, None]
A token sees those of its own segment, and 0 is padding. No token of padding may be chosen for masking: the pad id must be the
tokenizer's own.)"},
    {.name = "trl",
     .summary = "TRL's SFTTrainer: rows without padding, their sequences' lengths, labels where the sources have them",
     .containers = kDatasets,
     .columns = kTrlColumns,
     .labels = LabelRule::as_they_are,
     .ragged = true,
     .group_rows = 1000,
     .shuffled_by = "TRL's SFTTrainer",
     .train_with = R"(data = datasets.load_from_disk("OUT")    # Parquet: load_dataset("parquet", data_files="OUT/*.parquet")
SFTConfig(packing=False, padding_free=True, max_length=None, dataset_kwargs={"skip_prepare_dataset": True},
          model_init_kwargs={"attn_implementation": "flash_attention_2"}, ...)
packing=True would pack again and lose the boundaries. The collator hides the first label of every sequence itself.)"},
    {.name = "megatron",
     .summary = "Megatron-LM GPT pre-training: every row is one document of exactly its length in tokens",
     .containers = kMegatron,
     .columns = kMegatronColumns,
     .needs_eos_id = true,
     .ends_in_eos = true,
     .shuffled_by = "Megatron-LM's GPT dataset",
     .train_with = R"(--data-path OUT/train-00000-of-0000N ... (without .bin) --seq-length LENGTH
--reset-position-ids --reset-attention-mask --eod-mask-loss
Every sequence ends in EOD, which is the padding too: these three flags keep sequences apart, and without them they are not.
LENGTH is the row length that was packed for: then every sample is one row, in whatever order they are shuffled.)"},
    {.name = "bridge",
     .summary = "Megatron-Bridge and NeMo packed fine-tuning: *.idx.parquet with starts and a loss mask",
     .containers = kParquet,
     .columns = kBridgeColumns,
     .labels = LabelRule::shifted,
     .ragged = true,
     .slot_rule = SlotRule::targets,
     .needs_eos_id = true,
     .group_rows = 500,
     .file_suffix = ".idx.parquet",
     .shuffled_by = "Megatron-Bridge's packed dataset",
     .train_with = R"(PackedSequenceSpecs(packed_sequence_size=LENGTH, packed_train_data_path="OUT/train-*.idx.parquet",
                    packed_metadata_path="OUT/packed_metadata.jsonl")
A sequence of n tokens takes n - 1 slots: the collator makes n - 1 inputs and targets of it. The mask is that of the targets.)"},
    {.name = "bert",
     .summary = "BERT pre-training with masked tokens and next sentences, as the packing paper lays it out",
     .containers = kNpyOrParquet,
     .columns = kBertColumns,
     .positions_column = "masked_lm_positions",
     .group_rows = 1000,
     .train_with =
         R"(rows = {f: np.load(f"OUT/train-00000-of-0000N.{f}.npy", mmap_mode="r") for f in ("input_ids", "input_mask", ...)}
# Parquet: load_dataset("parquet", data_files="OUT/*.parquet")
batch = {f: torch.tensor(rows[f][a:b]).long() for f in rows}
model = BertForPreTraining(BertConfig(attn_implementation="sdpa", ...))
m = batch["input_mask"]; seen = (m[:, :, None] == m[:, None, :])[:, None]    # padding sees padding alone
h = model.bert(batch["input_ids"], seen, batch["token_type_ids"], batch["position_ids"]).last_hidden_state
at = lambda f: h.gather(1, batch[f][:, :, None].expand(-1, -1, h.shape[2]))    # what these slots hold
words = model.cls.predictions(at("masked_lm_positions"))
labels = batch["masked_lm_ids"].where(batch["masked_lm_weights"] > 0, -100)
order = model.cls.seq_relationship(model.bert.pooler.activation(model.bert.pooler.dense(at("next_sentence_positions"))))
order_labels = batch["next_sentence_labels"].where(batch["next_sentence_weights"] > 0, -100)
loss = cross_entropy(words.transpose(1, 2), labels) + cross_entropy(order.transpose(1, 2), order_labels)
A mean over the masked tokens and one over the sequences of the batch. masked_lm_weights numbers the sequences of a row, for
losses sequence by sequence. Sources without next sentences have no next_sentence_labels: leave out what concerns them.
A row holds several sequences: divide the global batch by the packing factor and keep everything else.)"},
    {.name = "llamafactory",
     .summary = "LLaMA-Factory's tokenized_path: neat packing, attention_mask numbers the sequences",
     .containers = kArrow,
     .columns = kLlamaFactoryColumns,
     .labels = LabelRule::first_hidden,
     .shuffled_by = "LLaMA-Factory",
     .keep_order = "disable_shuffling: true",
     .train_with = R"(tokenized_path: OUT
packing: true
neat_packing: true
cutoff_len: LENGTH
per_device_train_batch_size: 1    # with FlashAttention its collator takes no other
attention_mask is 1..k for the sequences of a row and 0 for padding, as neat packing writes it.)"},
    {.name = "axolotl",
     .summary = "Axolotl: rows without padding, position_ids that restart",
     .containers = kParquet,
     .columns = kHfColumns,  // an attention_mask, even of ones, would end the search for segments in the positions
     .labels = LabelRule::first_hidden,
     .ragged = true,
     .group_rows = 1000,
     .shuffled_by = "Axolotl",
     .keep_order = "curriculum_sampling: true and shuffle_merged_datasets: false",
     .train_with = R"(datasets:
  - path: OUT
    ds_type: parquet
    type:    # empty
skip_prepare_dataset: true    # the rows are ready; without it axolotl asks for an attention_mask, which would join the segments
remove_unused_columns: false
sample_packing: false    # true would overwrite position_ids
micro_batch_size: 1
sequence_len: LENGTH
flash_attention: true)"},
    {.name = "torchtune",
     .summary = "torchtune's PackedDataset: labels shifted already, seq_lens that add up to the row",
     .containers = kParquet,
     .columns = kTorchtuneColumns,
     .labels = LabelRule::shifted,
     .group_rows = 1000,
     .shuffled_by = "a torchtune recipe",
     .keep_order = "shuffle: False",
     .train_with = R"(data = datasets.load_dataset("parquet", data_files="OUT/*.parquet", split="train").with_format("torch")
collate with torchtune.data.padded_collate_packed; packed: True is not set, for the rows are packed
Labels are those of the next token, -100 is ignored. Padding is the last of seq_lens. Recipes up to release 0.6.1 shift labels
once more, and across segments: take them from the main branch, or leave the line out that begins labels = torch.hstack.)"},
    {.name = "maxtext",
     .summary = "MaxText: inputs and targets with segmentation and position",
     .containers = kParquet,
     .columns = kMaxtextColumns,
     .labels = LabelRule::shifted,
     .group_rows = 1000,
     .shuffled_by = "MaxText",
     .keep_order = "enable_data_shuffling: False",
     .train_with =
         R"(files = [grain.experimental.ParquetIterDataset(path) for path in sorted(glob("OUT/*.parquet"))]
rows = grain.experimental.InterleaveIterDataset(files, cycle_length=16).batch(BATCH)
A row is one of a packed batch of length LENGTH: hand it to the train step in place of what create_data_iterator makes. MaxText's
own pipelines (grain_train_files and the like) read one column and pack it anew, which would lose the boundaries.
Targets are shifted already, segmentations count from 1 and are 0 on padding.)"},
};

}  // namespace

std::span<const ContainerInfo> containers() { return kContainers; }
const ContainerInfo& info(Container container) { return kContainers[static_cast<std::size_t>(container)]; }

std::span<const Preset> presets() { return kPresets; }

const Preset* try_preset(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& preset) { return preset.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

const Preset& find_preset(std::string_view name) {
  if (const Preset* const preset = try_preset(name)) return *preset;
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  const std::string meant = nearest(name, names);
  throw Error(ErrorCode::usage, fmt::format("--for: no preset '{}'{}; 'shardpack formats' lists them", name,
                                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

bool has_source(const Preset& preset, OutputSource source) {
  return std::any_of(preset.columns.begin(), preset.columns.end(), [&](const OutputColumn& c) { return c.source == source; });
}

}  // namespace shardpack
