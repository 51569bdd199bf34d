#!/usr/bin/env python3
"""Every preset in the hands of its trainer: read by the trainer's own code, value for value that of the sources; then in a small
model, where segments must not see one another and the loss must be that of the segments alone.

    trainers_test.py SHARDPACK [CASE ...]

Where a trainer's package cannot be had, its case is skipped and says so; where there is none to install (Bridge, MaxText), the
reader is our own, written from the layout that the trainer documents. No network is used.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import tempfile
import types
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", HF_DATASETS_DISABLE_PROGRESS_BARS="1",
                  WANDB_DISABLED="true", AXOLOTL_DO_NOT_TRACK="1")
warnings.filterwarnings("ignore")

import torch

from bert_oracle import FIELDS, Words, load, make_records, reference_row, shards_of
from preset_oracle import EOS, L, NONE, PAD, expected_row, hidden, run, segments_of_shards, sequences, write_jsonl
from trainer_models import (VOCABULARY, bert_model, check_isolation, check_loss, llama, loss_of_segments, spans, sum_of_losses,
                            tokenizer)

TOOL = sys.argv[1]


# ---- sources and packed rows ---------------------------------------------------------------------------------------------------

class Packed:
    """A dataset packed for `preset`: the folder, and the (ids, labels) of the segments of every row, from the source map."""

    def __init__(self, work, preset, kind="labels", *options, longest=L, least=2, count=150):
        self.preset, self.kind = preset, kind
        self.records = sequences(kind, count=count, longest=longest, least=least, highest=VOCABULARY - 1)
        name = "-".join([preset, kind, *map(str, options)]).replace("/", "_")
        write_jsonl(work / f"{name}.jsonl", self.records)
        self.folder = work / name
        pad = () if preset == "megatron" else ("--pad-id", PAD)
        run(TOOL, "pack", work / f"{name}.jsonl", "-o", self.folder, "-L", L, "--for", preset, "-q", *pad, *options)
        self.rows = list(segments_of_shards(self.folder, self.records))

    def picked(self, rows=6):
        """Numbers of rows with several segments, padded ones first."""
        several = [r for r, row in enumerate(self.rows) if len(row) > 1]
        room = sorted(several, key=lambda r: sum(len(ids) for ids, _ in self.rows[r]))
        assert len(several) >= rows
        return room[:rows // 2] + several[:rows - rows // 2]

    def lengths(self, row):
        return [len(ids) for ids, _ in self.rows[row]]


def check_rows(packed, rows):
    """Every row as the oracle has it, and every sequence of the source once."""
    for number, (row, segments) in enumerate(zip(rows, packed.rows, strict=True)):
        expected = expected_row(packed.preset, segments, packed.kind in ("labels", "mask"))
        row = {name: list(values) for name, values in row.items()}
        assert row == expected, f"{packed.preset}, row {number}:\n{row}\n{expected}"
    found = sorted(ids for row in packed.rows for ids, _ in row)
    assert found == sorted(record["input_ids"] for record in packed.records)


def with_ids(row, ids, column="input_ids"):
    return {**row, column: list(ids)}


# ---- Hugging Face datasets -----------------------------------------------------------------------------------------------------

def datasets_read(work):
    """load_from_disk, load_dataset("parquet"), streamed and not, several files."""
    import datasets
    split = ("--shard-bytes", 12_000)
    for preset in ("hf", "mlm", "trl", "llamafactory"):
        packed = Packed(work, preset, "plain" if preset == "mlm" else "labels", *split)
        data = datasets.load_from_disk(str(packed.folder))
        assert len(list(packed.folder.glob("*.arrow"))) > 1
        check_rows(packed, data)
        assert data.features["input_ids"] == datasets.List(datasets.Value("int32"))
        shuffled = data.shuffle(seed=1).select(range(5))  # an indices table over our files
        ours = [expected_row(preset, one, True)["input_ids"] for one in packed.rows]
        assert all(list(row["input_ids"]) in ours for row in shuffled)
    for preset in ("hf", "mlm", "trl", "axolotl", "torchtune", "maxtext", "bridge"):
        more = ("--eos-id", EOS) if preset == "bridge" else ("--as", "parquet")
        packed = Packed(work, preset, "plain" if preset == "mlm" else "labels", *more, *split)
        files = sorted(map(str, packed.folder.glob("*.parquet")))
        assert len(files) > 1
        check_rows(packed, datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(work / "cache")))
        check_rows(packed, datasets.load_dataset("parquet", data_files=files, split="train", streaming=True))
    folder = Packed(work, "hf", "plain", "--as", "parquet").folder  # a folder by its name: the hidden one is not looked into
    assert len(datasets.load_dataset(str(folder), split="train", cache_dir=str(work / "cache"))) > 0


# ---- transformers --------------------------------------------------------------------------------------------------------------

def hf(work):
    """default_data_collator, eager, sdpa and FlashAttention; Trainer takes the rows as they are."""
    import datasets
    from transformers import DataCollatorWithFlattening, Trainer, TrainingArguments, default_data_collator
    for options, longest in (((), L), (("-K", 3), 20), (("--segment-multiple", 8), L), (("--position-start", 2, "-K", 3), 20)):
        packed = Packed(work, "hf", "labels", *options, longest=longest)
        data = datasets.load_from_disk(str(packed.folder))
        as_documented = options in ((), ("-K", 3))
        if as_documented:
            check_rows(packed, data)
        for attention in ("eager", "sdpa", "flash_attention_2"):
            model = llama(attention)
            for r in packed.picked(4):
                row = data[r]

                def logits(batch):
                    return model(**{name: batch[name] for name in batch if name != "labels"}, use_cache=False).logits[0]

                def packed_logits(ids):
                    return logits(default_data_collator([with_ids(row, ids)]))

                def without(ids):
                    return logits(default_data_collator([{"input_ids": ids, "position_ids": list(range(len(ids)))}]))

                if "--segment-multiple" in options:
                    check_gaps(row, packed.rows[r], packed_logits, without)
                    continue
                name = f"hf, {attention}, {options}"
                check_isolation(name, row["input_ids"], packed.lengths(r), packed_logits, without)
                if not as_documented:
                    continue
                with torch.no_grad():
                    batch = default_data_collator([row])
                    loss = float(model(**batch, use_cache=False).loss) * sum(x != NONE for x in row["labels"][1:])
                check_loss(name, loss, loss_of_segments(model, packed.rows[r]))
    # With a cache, which is what a model fills unless told otherwise, nobody looks at the positions: docs/trainers.md warns of it.
    model, row = llama(), data[r]
    with torch.no_grad():
        seen = [model(**default_data_collator([with_ids(row, [token, *row["input_ids"][1:]])])).logits[0] for token in (3, 4)]
    assert (seen[0] - seen[1])[packed.lengths(r)[0]].abs().max() > 1e-3
    # What transformers' own flattening makes of the sequences of a row is what the row holds.
    packed = Packed(work, "hf", "mask")
    data = datasets.load_from_disk(str(packed.folder))
    for r in packed.picked():
        flat = DataCollatorWithFlattening()([{"input_ids": ids, "labels": labels} for ids, labels in packed.rows[r]])
        for name in ("input_ids", "position_ids", "labels"):
            assert flat[name][0].tolist() == data[r][name][:len(flat[name][0])], name
    model = llama().float().train()
    trainer = Trainer(model, TrainingArguments(str(work / "out"), per_device_train_batch_size=1, max_steps=2, report_to=[],
                                               use_cpu=True, disable_tqdm=True, logging_strategy="no", save_strategy="no"),
                      train_dataset=data, data_collator=default_data_collator)
    batch = next(iter(trainer.get_train_dataloader()))
    assert set(batch) == {"input_ids", "position_ids", "labels"}
    assert trainer.train().training_loss > 0 and not model.config.use_cache


def check_gaps(row, segments, logits, without):
    """With --segment-multiple: where each segment begins in the row, by its length rounded up."""
    begin, places = 0, []
    for ids, _ in segments:
        assert row["input_ids"][begin:begin + len(ids)] == ids and begin % 8 == 0
        places.append((begin, begin + len(ids)))
        begin += -(-len(ids) // 8) * 8
    with torch.no_grad():
        before = logits(row["input_ids"])
        altered = list(row["input_ids"])
        altered[0] = (altered[0] + 1) % VOCABULARY
        moved = (logits(altered) - before).abs().amax(-1)
        leaked = (without(altered) - without(row["input_ids"])).abs().amax(-1)
    assert moved[:places[0][1]].max() > 1e-3
    for a, b in places[1:]:
        assert moved[a:b].max() < 1e-6 and leaked[a:b].max() > 1e-3


def mlm(work):
    """DataCollatorForLanguageModeling, and the attention mask by the very line that is printed after packing."""
    import datasets
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments
    recipe = next(line.strip() for line in run(TOOL, "formats", "--for", "mlm").stdout.splitlines() if "batch.pop" in line)
    words = tokenizer(PAD)
    inner = DataCollatorForLanguageModeling(words, mlm_probability=0.3)

    def collate(features):
        batch = inner([{"input_ids": feature["input_ids"]} for feature in features])
        for name in ("segment_ids", "position_ids"):
            batch[name] = torch.tensor([feature[name] for feature in features])
        exec(recipe, {"batch": batch})
        return batch

    packed = Packed(work, "mlm", "plain", "-K", 3, longest=20)
    data = datasets.load_from_disk(str(packed.folder))
    check_rows(packed, data)
    model = bert_model()
    for r in packed.picked():
        real = sum(packed.lengths(r))
        batch = collate([data[r]])
        masked = batch["labels"][0] != NONE
        assert masked[:real].any() and not masked[real:].any()
        assert batch["labels"][0][masked].tolist() == [data[r]["input_ids"][i] for i in masked.nonzero()[:, 0]]
        inputs = {name: value for name, value in batch.items() if name != "labels"}

        def logits(ids, **changes):
            return model(**{**inputs, "input_ids": torch.tensor([ids]), **changes}).logits[0]

        check_isolation("mlm", inputs["input_ids"][0].tolist(), packed.lengths(r), logits,
                        lambda ids: logits(ids, attention_mask=torch.ones(1, L, dtype=torch.long)))
        with torch.no_grad():
            together = model(**inputs).logits[0]
            for a, b in spans(packed.lengths(r)):
                alone = model(input_ids=inputs["input_ids"][:, a:b]).logits[0]
                assert (alone - together[a:b]).abs().max() < 1e-9
    arguments = TrainingArguments(str(work / "out"), per_device_train_batch_size=2, max_steps=2, report_to=[], use_cpu=True,
                                  disable_tqdm=True, remove_unused_columns=False, save_strategy="no")
    assert Trainer(bert_model().float().train(), arguments, train_dataset=data, data_collator=collate).train().training_loss > 0


def bert(work):
    """Both containers, every field as the reference packers have it; BertForPreTraining by the very lines that are printed after
    packing, against the same model on each sequence alone."""
    from transformers import BertForPreTraining
    records = make_records(150, 4, longest=40, words=Words(93, 94, 95, 3, 92))
    write_jsonl(work / "in.jsonl", records)
    model = bert_model(BertForPreTraining.__name__)
    text = run(TOOL, "formats", "--for", "bert").stdout.splitlines()
    recipe = "\n".join(text[next(i for i, line in enumerate(text) if line.startswith("m = ")):][:8])
    assert recipe.count("cross_entropy") == 2
    for container in ("npy", "parquet"):
        for options in ((), ("-K", 3), ("-K", 3, "--max-predictions", 18)):
            out = work / "-".join([container, *map(str, options)])
            run(TOOL, "pack", work / "in.jsonl", "-o", out, "-L", L, "--for", "bert", "--as", container, "-q", *options)
            rows = []
            for manifest, entry, _, members in shards_of(out):
                widths = manifest["widths"]["entries"], manifest["widths"]["segments"]
                segments = [[records[record] for record, first, _, _ in row if first == 0] for row in members]
                for row, alone in zip(bert_rows(out, entry), segments, strict=True):
                    assert row == reference_row(alone, *widths), (container, options, row)
                    rows.append((row, alone))
            assert sorted(map(str, (record for _, alone in rows for record in alone))) == sorted(map(str, records))
            several = [row for row in rows if len(row[1]) > 1]
            padded = [row for row in several if row[0]["input_mask"][-1] == 0]
            for row, alone in padded[:3] + several[:3]:
                check_pretraining(f"bert, {container}, {options}", model, recipe, row, alone)


def bert_rows(out, entry):
    """A shard's rows, as NumPy arrays or as `datasets` reads Parquet."""
    names = [file["name"] for file in entry["trainer_files"]]
    if names[0].endswith(".parquet"):
        import datasets
        return list(datasets.load_dataset("parquet", data_files=[str(out / name) for name in names], split="train",
                                          cache_dir=str(out / ".cache")))
    arrays = {name.split(".")[1]: load(out / name) for name in names}
    assert sorted(arrays) == sorted(FIELDS)
    return [dict(zip(arrays, values)) for values in zip(*arrays.values())]


def check_pretraining(name, model, recipe, row, alone):
    """One row: losses of both kinds, over all masked tokens and sequence by sequence; then isolation, of next sentences too."""
    from torch.nn.functional import cross_entropy
    batch = {field: torch.tensor([values]) for field, values in row.items()}

    def run_recipe(ids=row["input_ids"]):
        names = {"batch": {**batch, "input_ids": torch.tensor([ids])}, "model": model, "cross_entropy": cross_entropy}
        exec(recipe, names)
        return names

    masked_sums, next_sums, own_losses, masked = 0.0, 0.0, 0.0, 0
    with torch.no_grad():
        for record in alone:
            labels = torch.full((len(record["input_ids"]),), NONE)
            labels[record["masked_lm_positions"]] = torch.tensor(record["masked_lm_ids"])
            output = model(input_ids=torch.tensor([record["input_ids"]]), token_type_ids=torch.tensor([record["token_type_ids"]]),
                           labels=labels[None], next_sentence_label=torch.tensor([record["next_sentence_labels"]]))
            own_losses += float(output.loss)
            masked_sums += float(cross_entropy(output.prediction_logits[0], labels, ignore_index=NONE, reduction="sum"))
            next_sums += float(cross_entropy(output.seq_relationship_logits, torch.tensor([record["next_sentence_labels"]])))
            masked += len(record["masked_lm_ids"])
        found = run_recipe()
        check_loss(name, float(found["loss"]), masked_sums / masked + next_sums / len(alone))
        # A loss for every sequence, put together by the numbers in the weights, is what the model itself says of each.
        each = cross_entropy(found["words"].transpose(1, 2), found["labels"], reduction="none")[0]
        masked_means = sum(float(each[batch["masked_lm_weights"][0] == s].mean()) for s in range(1, len(alone) + 1))
        following = cross_entropy(found["order"].transpose(1, 2), found["order_labels"], reduction="sum")
        check_loss(name, masked_means + float(following), own_losses)

    def logits(ids):
        """Of every slot: the token's, and those of its sequence's next sentence."""
        made = run_recipe(ids)
        return torch.cat([model.cls.predictions(made["h"])[0], made["order"][0][batch["input_mask"][0] - 1]], 1)

    def without(ids):
        h = model.bert(torch.tensor([ids]), (batch["input_mask"] > 0).long(), batch["token_type_ids"],
                       batch["position_ids"]).last_hidden_state
        return model.cls.predictions(h)[0]

    check_isolation(name, row["input_ids"], [len(record["input_ids"]) for record in alone], logits, without)


# ---- TRL -----------------------------------------------------------------------------------------------------------------------

def trl(work):
    """Its collator, its trainer with padding_free, and its own packing beside ours."""
    import datasets
    from trl import SFTConfig, SFTTrainer, pack_dataset
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
    collate = DataCollatorForLanguageModeling(pad_token_id=PAD, padding_free=True)
    for kind in ("plain", "labels", "mask"):
        packed = Packed(work, "trl", kind)
        data = datasets.load_from_disk(str(packed.folder))
        check_rows(packed, data)
        for attention in ("eager", "sdpa", "flash_attention_2"):
            model = llama(attention)
            for rows in ([r] for r in packed.picked(4)) if attention == "eager" else (packed.picked(4), packed.picked(2)):
                # A batch of several rows is one long row to this collator.
                segments = [segment for r in rows for segment in packed.rows[r]]
                features = [data[r] for r in rows]
                flat = [token for ids, _ in segments for token in ids]

                def batch_of(ids):
                    begin, given = 0, []
                    for feature in features:
                        size = len(feature["input_ids"])
                        given.append(with_ids(feature, ids[begin:begin + size]))
                        begin += size
                    return collate(given)

                def logits(batch):
                    return model(**{name: batch[name] for name in batch if name != "labels"}, use_cache=False).logits[0]

                def without(ids):
                    return logits(collate([{"input_ids": list(ids)}]))

                name = f"trl, {attention}, {kind}"
                check_isolation(name, flat, [len(ids) for ids, _ in segments], lambda ids: logits(batch_of(ids)), without)
                batch = batch_of(flat)
                assert batch["labels"][0].tolist() == [label for _, labels in segments for label in hidden(labels)]
                assert batch["cu_seq_lens_q"].tolist() == [0] + [end for _, end in spans([len(ids) for ids, _ in segments])]
                with torch.no_grad():
                    loss = sum_of_losses(logits(batch), batch["labels"][0])
                check_loss(name, loss, loss_of_segments(model, segments))
    source = datasets.Dataset.from_list([{"input_ids": record["input_ids"]} for record in packed.records])
    assert len(data) <= len(pack_dataset(source, seq_length=L, strategy="bfd"))
    config = SFTConfig(str(work / "out"), packing=False, padding_free=True, max_length=None, max_steps=2, report_to=[],
                       dataset_kwargs={"skip_prepare_dataset": True}, per_device_train_batch_size=1, disable_tqdm=True,
                       use_cpu=True, bf16=False, save_strategy="no", gradient_checkpointing=False)
    trainer = SFTTrainer(llama().float().train(), config, train_dataset=data, processing_class=tokenizer(PAD))
    batch = next(iter(trainer.get_train_dataloader()))
    assert "attention_mask" not in batch and (batch["position_ids"] == 0).sum() == len(batch["cu_seq_lens_q"]) - 1
    assert trainer.train().training_loss > 0


# ---- LLaMA-Factory -------------------------------------------------------------------------------------------------------------

def absent_media_packages():
    """LLaMA-Factory imports what reads sound and video before it needs it; nothing here does."""
    for name in ("torchaudio", "av"):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)


def llamafactory(work):
    """Its collator for neat packing, with sdpa and with FlashAttention."""
    import datasets
    absent_media_packages()
    from llamafactory.data.collator import SFTDataCollatorWith4DAttentionMask
    plugin = types.SimpleNamespace(image_token=None, audio_token=None, get_mm_inputs=lambda *_: {})
    for options in ((), ("-K", 3)):
        packed = Packed(work, "llamafactory", "labels", *options, longest=20 if options else L)
        data = datasets.load_from_disk(str(packed.folder))
        check_rows(packed, data)
        for attention in ("eager", "sdpa", "flash_attention_2"):
            model = llama(attention, torch.float32)
            collate = SFTDataCollatorWith4DAttentionMask(
                tokenizer=tokenizer(PAD), model=None, template=types.SimpleNamespace(mm_plugin=plugin), block_diag_attn=True,
                neat_packing=True, attn_implementation=attention, compute_dtype=torch.float32, label_pad_token_id=NONE)
            for r in packed.picked(4):
                row = data[r]

                def logits(ids, **changes):
                    batch = {**collate([with_ids(row, ids)]), **changes}
                    return model(**{name: batch[name] for name in batch if name != "labels"}, use_cache=False).logits[0]

                def without(ids):
                    size = logits(ids).shape[0]
                    return logits(ids, attention_mask=None, position_ids=torch.arange(size)[None])

                name = f"llamafactory, {attention}, {options}"
                check_isolation(name, row["input_ids"], packed.lengths(r), logits, without)
                batch = collate([dict(row)])
                with torch.no_grad():
                    loss = sum_of_losses(logits(row["input_ids"]), batch["labels"][0])
                check_loss(name, loss, loss_of_segments(llama(), packed.rows[r]), within=1e-4)


# ---- Axolotl -------------------------------------------------------------------------------------------------------------------

def axolotl(work):
    """Its loader with what is printed after packing; its collator without sample packing, which pads to a multiple of 64."""
    from axolotl.utils.collators import DataCollatorForSeq2Seq
    from axolotl.utils.data.shared import load_dataset_with_config
    from axolotl.utils.data.wrappers import get_dataset_wrapper
    from axolotl.utils.dict import DictDefault
    packed = Packed(work, "axolotl")
    entry = DictDefault(path=str(packed.folder), ds_type="parquet", type=None, split="train")
    loaded = load_dataset_with_config(entry, False, streaming=False)
    data, _ = get_dataset_wrapper(entry, None, DictDefault(skip_prepare_dataset=True, sample_packing=False), None, loaded)
    check_rows(packed, data)
    for multiple in (64, 48, None):
        collate = DataCollatorForSeq2Seq(tokenizer(PAD), padding=True, pad_to_multiple_of=multiple, return_tensors="pt")
        for attention in ("eager", "sdpa", "flash_attention_2"):
            model = llama(attention)
            for r in packed.picked(4):
                row = data[r]

                def logits(ids, **changes):
                    batch = {**collate([with_ids(row, ids)]), **changes}
                    return model(**{name: batch[name] for name in batch if name != "labels"}, use_cache=False).logits[0]

                def without(ids):
                    return logits(ids, position_ids=None)

                name = f"axolotl, {attention}, padded to {multiple}"
                check_isolation(name, row["input_ids"], packed.lengths(r), logits, without)
                with torch.no_grad():
                    loss = sum_of_losses(logits(row["input_ids"]), collate([dict(row)])["labels"][0])
                check_loss(name, loss, loss_of_segments(model, packed.rows[r]))


# ---- torchtune -----------------------------------------------------------------------------------------------------------------

def torchtune(work):
    """Its collator for packed rows and one of its own models."""
    import datasets
    from torch.nn.functional import cross_entropy
    from torchtune.data import padded_collate_packed
    from torchtune.models.llama2 import llama2
    torch.manual_seed(0)
    model = llama2(vocab_size=VOCABULARY, num_layers=2, num_heads=4, num_kv_heads=2, embed_dim=32, max_seq_len=512)
    model = model.double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for options in ((), ("-K", 3)):
        packed = Packed(work, "torchtune", "labels", *options, longest=20 if options else L)
        files = sorted(map(str, packed.folder.glob("*.parquet")))
        data = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(work / "cache"))
        check_rows(packed, data)
        data = data.with_format("torch")
        for r in packed.picked():
            row = data[r]

            def logits(ids, **changes):
                batch = padded_collate_packed([{**row, "tokens": torch.tensor(ids), **changes}])
                return model(batch["tokens"], mask=batch["mask"], input_pos=batch["input_pos"])[0]

            ids = row["tokens"].tolist()
            check_isolation("torchtune", ids, packed.lengths(r), logits, lambda ids: logits(ids, seq_lens=torch.tensor([L])))
            with torch.no_grad():
                labels = padded_collate_packed([row])["labels"][0]
                loss = float(cross_entropy(logits(ids), labels, ignore_index=NONE, reduction="sum"))
                alone = sum(sum_of_losses(model(torch.tensor([ids]))[0], torch.tensor(labels)) for ids, labels in packed.rows[r])
            check_loss("torchtune", loss, alone)


# ---- Megatron-LM ---------------------------------------------------------------------------------------------------------------

def megatron(work):
    """Its IndexedDataset and GPTDataset with the three flags: every sample is a row, in whatever order, with its own mask."""
    import numpy as np
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split
    packed = Packed(work, "megatron", "plain", "--eos-id", EOS, "-K", 3, longest=24)

    def config(resets):
        return GPTDatasetConfig(random_seed=3, sequence_length=L, split="1,0,0", blend=([], None), reset_position_ids=resets,
                                reset_attention_mask=resets, eod_mask_loss=resets, path_to_cache=str(work / "cache"),
                                tokenizer=types.SimpleNamespace(eod=EOS, pad=EOS, vocab_size=VOCABULARY, unique_identifiers={}))

    def samples(resets):
        prefix = str(next(packed.folder.glob("*.idx")))[:-len(".idx")]
        indexed = IndexedDataset(prefix)
        assert [list(indexed[i]) for i in range(len(indexed))] == full_rows
        data = GPTDataset(indexed, prefix, np.arange(len(indexed)), None, Split.train, config(resets))
        return [data[i] for i in range(len(data))]

    def full(row):
        ids = [token for one, _ in row for token in one]
        return ids + [EOS] * (L - len(ids))

    full_rows = [full(row) for row in packed.rows]
    assert sorted(ids for row in packed.rows for ids, _ in row) == sorted(r["input_ids"] + [EOS] for r in packed.records)
    model, read = llama("eager"), samples(True)
    found = sorted(full_rows.index(sample["tokens"].tolist()) for sample in read)
    assert len(set(found)) == len(read) >= len(full_rows) - 1  # the last one has no token behind it
    loose = {tuple(sample["tokens"].tolist()): sample for sample in samples(False)}
    checked = 0
    for sample in read:
        row = packed.rows[full_rows.index(sample["tokens"].tolist())]
        if len(row) < 2 or checked == 6:
            continue
        checked += 1
        lengths = [len(ids) for ids, _ in row]
        positions = [i for n in lengths for i in range(n)]
        assert sample["position_ids"].tolist()[:len(positions)] == positions

        def logits(ids, of=sample):
            return masked_logits(model, ids, of["position_ids"].tolist(), ~of["attention_mask"][0])

        ids = sample["tokens"].tolist()
        check_isolation("megatron", ids, lengths, logits, lambda ids: logits(ids, loose[tuple(sample["tokens"].tolist())]))
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(logits(ids), sample["labels"], reduction="none")
        check_loss("megatron", float((losses * sample["loss_mask"]).sum()), loss_of_segments(llama(), row))
    assert checked == 6


# ---- readers of our own, from the documented layouts ---------------------------------------------------------------------------

def causal(segment_ids):
    """[slots, slots]: a token sees itself and what is before it in its own segment."""
    ids = torch.tensor(segment_ids)
    return (ids[:, None] == ids[None, :]) & torch.ones(len(ids), len(ids), dtype=torch.bool).tril()


def masked_logits(model, ids, positions, sees):
    """`sees`: [slots, slots], true where a token sees another."""
    mask = torch.zeros(sees.shape, dtype=torch.float64).masked_fill(~sees, torch.finfo(torch.float64).min)
    return model(input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions]), attention_mask=mask[None, None],
                 use_cache=False).logits[0]


def bridge(work):
    """Members of n stored tokens become n - 1 inputs and targets; starts lead with 0 and have no end; the mask is of targets."""
    import pyarrow.parquet as pq
    packed = Packed(work, "bridge", "labels", "--eos-id", EOS)
    data = [row for path in sorted(packed.folder.glob("*.idx.parquet")) for row in pq.read_table(path).to_pylist()]
    check_rows(packed, data)
    model = llama("eager")
    for r in packed.picked():
        row = data[r]
        ends = row["seq_start_id"][1:] + [len(row["input_ids"])]
        members = list(zip(row["seq_start_id"], ends))
        assert row["seq_start_id"][0] == 0 and [b - a for a, b in members] == packed.lengths(r)
        inputs = [token for a, b in members for token in row["input_ids"][a:b - 1]]
        targets = torch.tensor([token for a, b in members for token in row["input_ids"][a + 1:b]])
        weights = torch.tensor([bit for a, b in members for bit in row["loss_mask"][a:b - 1]], dtype=torch.float64)
        assert len(inputs) <= L and not any(row["loss_mask"][b - 1] for _, b in members)
        lengths = [b - a - 1 for a, b in members]
        positions = [i for n in lengths for i in range(n)]
        owners = [s for s, n in enumerate(lengths) for _ in range(n)]

        def logits(ids):
            return masked_logits(model, ids, positions, causal(owners))

        check_isolation("bridge", inputs, lengths, logits,
                        lambda ids: masked_logits(model, ids, list(range(len(ids))), causal([0] * len(ids))))
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(logits(inputs), targets, reduction="none")
        check_loss("bridge", float((losses * weights).sum()), loss_of_segments(model, packed.rows[r]))


def maxtext(work):
    """Rows through Grain's Parquet reader; attention within equal segmentation, loss where targets_segmentation is not 0."""
    import grain.python as grain
    for options in ((), ("-K", 3)):
        packed = Packed(work, "maxtext", "labels", *options, longest=20 if options else L)
        data = [{name: [int(v) for v in values] for name, values in row.items()}
                for path in sorted(packed.folder.glob("*.parquet")) for row in grain.experimental.ParquetIterDataset(str(path))]
        check_rows(packed, data)
        model = llama("eager")
        for r in packed.picked():
            row = data[r]

            def logits(ids):
                return masked_logits(model, ids, row["inputs_position"], causal(row["inputs_segmentation"]))

            check_isolation("maxtext", row["inputs"], packed.lengths(r), logits,
                            lambda ids: masked_logits(model, ids, row["inputs_position"], causal([1] * L)))
            with torch.no_grad():
                losses = torch.nn.functional.cross_entropy(logits(row["inputs"]), torch.tensor(row["targets"]), reduction="none")
            weights = torch.tensor(row["targets_segmentation"]) != 0
            check_loss("maxtext", float((losses * weights).sum()), loss_of_segments(model, packed.rows[r]))


def native(work):
    """NumPy arrays, the mask from segment ids as `formats --for native` says it."""
    import json

    import numpy as np
    records = sequences("plain", count=150, least=2, highest=VOCABULARY - 1)
    write_jsonl(work / "in.jsonl", records)
    run(TOOL, "pack", work / "in.jsonl", "-o", work / "out", "-L", L, "-K", 3, "-q", "--pad-id", PAD)
    shards = [work / "out" / shard["folder"] for shard in json.loads((work / "out/manifest.json").read_text())["shards"]]
    ids, segment_ids, positions = (np.concatenate([np.load(shard / f"{name}.npy") for shard in shards]).astype(int).tolist()
                                   for name in ("input_ids", "segment_ids", "position_ids"))
    model, checked = llama("eager"), 0
    for r in range(len(ids)):
        lengths = [segment_ids[r].count(s) for s in range(1, max(segment_ids[r]) + 1)]
        if len(lengths) < 2 or checked == 6:
            continue
        checked += 1
        check_isolation("native", ids[r], lengths, lambda row: masked_logits(model, row, positions[r], causal(segment_ids[r])),
                        lambda row: masked_logits(model, row, positions[r], causal([1] * L)))
    assert checked == 6


# case -> the packages that it needs
CASES = {datasets_read: ["datasets"], hf: ["datasets", "transformers", "accelerate"],
         mlm: ["datasets", "transformers", "accelerate"], bert: ["datasets", "transformers"],
         trl: ["trl", "datasets", "transformers"],
         llamafactory: ["llamafactory", "peft", "datasets", "transformers"],
         axolotl: ["axolotl", "datasets", "transformers"], torchtune: ["torchtune", "datasets"],
         megatron: ["megatron.core", "transformers"], bridge: ["pyarrow", "transformers"], maxtext: ["grain", "transformers"],
         native: ["transformers"]}


def is_there(package):
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def main():
    for case, needed in CASES.items():
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        absent = [package for package in needed if not is_there(package)]
        if absent:
            print(f"{case.__name__}: SKIPPED, not installed: {', '.join(absent)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
        print(f"{case.__name__}: as its trainer must see it", flush=True)


if __name__ == "__main__":
    main()
