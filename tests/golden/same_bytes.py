#!/usr/bin/env python3
"""The same inputs and options give the same bytes, whatever compiler and optimisation a shardpack was built with.

    same_bytes.py GENERATE_PY GOLDEN TOOL           what the tool writes has the hashes that are in the file GOLDEN
    same_bytes.py GENERATE_PY GOLDEN TOOL TOOL ...  and all tools write the same files, those of other libraries included
    same_bytes.py --update GENERATE_PY GOLDEN TOOL  writes GOLDEN

GOLDEN has a line for each output of whose bytes shardpack alone decides; what zstd, Arrow or the LP solver have a part in changes
with their versions. Lines of versions and of seconds, and the checksums of manifests over them, are left out before hashing.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PACKERS = ["lpfhp", "spfhp", "nnlshp", "bfd", "ffd", "sorted-greedy", "none", "sequential", "concat"]
MIXED = "corpus -L 512 --overlong split"
SHAPE = "--world 2 --accumulation 2 --micro-batch 2"

# What is run, in this order: the name of its output and the arguments, which name inputs and earlier outputs. Only of those in
# the second table are the bytes not in GOLDEN.
OURS = {
    **{f"plan-{packer}.json": f"plan corpus -L 512 --overlong split --packer {packer} -o OUT" for packer in PACKERS[:7]},
    "lengths.csv": "scan corpus -o OUT",
    "lengths.npy": "scan chats.jsonl --write-lengths OUT",
    "saved.scan": "scan chats.jsonl --eos-id 3 --group-column topic --drop-unlabeled --partition-tokens 4K --save OUT",
    "sweep-all.json": f"sweep corpus -L 256,512 --packer {','.join(PACKERS)} -K 0,4 --overlong split,truncate,drop -o OUT",
    "sweep.json": "sweep lengths.csv -L 640 --packer lpfhp,spfhp,nnlshp -o OUT",
    "sweep-batching.json": "sweep corpus --batching --batch-size 16 --overlong truncate --max-length 512 -o OUT",
    **{f"pack-{packer}": f"pack {MIXED} --packer {packer} -o OUT" for packer in PACKERS[:-1]},
    "pack-concat": "pack corpus -L 512 --packer concat -o OUT",
    "columns": f"pack chats.jsonl -L 64 --overlong truncate --drop-unlabeled --packer lpfhp --group-column topic --order balanced {SHAPE}"
               " --balance attention --rows-multiple auto -o OUT",
    "partitions": f"pack {MIXED} --packer spfhp --partition-tokens 30K --partition-order shuffled --shard-bytes 64K --seed 7"
                  " --order by-strategy --rows-multiple 7 --tail fill --segment-multiple 8 -o OUT",
    "index": f"pack {MIXED} --packer spfhp --as index --partition-tokens 30K --append-eos --eos-id 3 -o OUT",
    "ends": "pack chats.jsonl -L 96 --packer lpfhp --append-eos --eos-id 3 --prepend-bos --bos-id 2 --min-tokens 4 --overlong drop"
            " --keep-together 2 --order input -o OUT",
    "megatron": f"pack {MIXED} --packer lpfhp --for megatron --eos-id 4999 -o OUT",
    "bert": "pack masked.jsonl -L 64 --packer lpfhp --for bert --overlong truncate -o OUT",
    "batch-sorted": f"batch corpus --batch-size 8 --max-length 512 --overlong truncate --world 2 --accumulation 2 --epochs 2 -o OUT",
    "batch-buckets": "batch chats.jsonl --strategy buckets:auto:6 --batch-size 4 -o OUT",
    "batch-tokens": "batch corpus --strategy tokens:4096 --pad-multiple 8 --epochs 2 --oom-first -o OUT",
    "batch-quad": "batch corpus --strategy quad:4096:512 -o OUT",
    "batch-shards": "batch chats.jsonl --batch-size 8 --write-shards padded --shard-bytes 8K --epochs 2 -o OUT",
    "batch-ragged": "batch chats.jsonl --strategy pool:4 --batch-size 8 --write-shards ragged -o OUT",
    "batch-rows": "batch pack-lpfhp --batch-size 4 -o OUT",
    "ltd": "ltd -L 512 --kept-start 128 --ramp-steps 20 --layers 12 --micro-batch 2 --total-layer-tokens 200000 --peak-lr 0.1"
           " --warmup-layer-tokens 10000 -o OUT",
    "ltd-rows": "ltd pack-lpfhp --kept-start 64 --kept-step 16 --ramp-steps 12 --layers 6 --micro-batch 2 --total-steps 15 --write-indices"
                " --selection quota-min1 --seed 5 -o OUT",
    "ltd-batches": "ltd batch-tokens --kept-start 64 --kept-length ratio --ramp-steps 4 --layers 6 --total-steps 6 --write-indices -o OUT",
    "unpacked": "unpack columns -o OUT",
    "unpacked-npy": "unpack partitions --as npy -o OUT",
    "verify.stdout": "verify columns --json",
    "inspect.stdout": "inspect partitions --json",
    "inspect-row.stdout": "inspect columns --row 1 --json",
    "scan.stdout": "scan corpus --json",
}
OF_LIBRARIES_TOO = {
    "plan-optimal.json": "plan corpus -L 512 --overlong split --packer optimal -o OUT",
    "pack-auto": f"pack {MIXED} -o OUT",
    "pack-optimal": f"pack {MIXED} --packer optimal -o OUT",
    "zstd": f"pack {MIXED} --packer lpfhp --compress zstd:5 -o OUT",
    "batch-zstd": "batch chats.jsonl --batch-size 8 --write-shards ragged --compress zstd -o OUT",
    "unpacked-zstd": "unpack zstd --compress zstd -o OUT",
}
OF_ARROW_TOO = {
    **{f"for-{preset}-{container}": f"pack chats.jsonl -L 64 --overlong truncate --packer lpfhp --for {preset} --as {container} -o OUT"
       for preset, container in [("hf", "arrow"), ("hf", "parquet"), ("trl", "arrow"), ("trl", "parquet"), ("llamafactory", "arrow"),
                                 ("axolotl", "parquet"), ("torchtune", "parquet"), ("maxtext", "parquet")]},
    "for-bridge-parquet": "pack chats.jsonl -L 64 --overlong truncate --packer lpfhp --for bridge --eos-id 3 -o OUT",
    "for-mlm-parquet": "pack corpus -L 512 --overlong split --packer lpfhp --for mlm --as parquet -o OUT",
    "unpacked-arrow": "unpack columns --as arrow -o OUT",
    "unpacked-parquet": "unpack columns --as parquet -o OUT",
}


def make_inputs(generate, folder):
    subprocess.run([sys.executable, generate, "--format", "megatron", "--sequences", "700", "--max-tokens", "900", "--vocab", "5000",
                    "--distribution", "mixed", "--shards", "2", "--out", folder / "corpus"], check=True, stdout=subprocess.DEVNULL)
    chats, masked = [], []
    for record in range(160):
        tokens = 1 + record * record % 83
        ids = [(record * 31 + place * place * 7) % 70000 for place in range(tokens)]
        labels = [-100 if place < tokens // 3 or record % 11 == 0 else one for place, one in enumerate(ids)]
        chats.append({"input_ids": ids, "labels": labels, "score": record / 8, "topic": "abc"[record % 3]})
        places = list(range(record % 3, tokens, 7))
        masked.append({"input_ids": [one % 900 for one in ids], "token_type_ids": [int(place > tokens // 2) for place in range(tokens)],
                       "masked_lm_positions": places, "masked_lm_ids": [ids[place] % 900 for place in places],
                       "next_sentence_labels": record % 2})
    for name, records in [("chats", chats), ("masked", masked)]:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # a saved scan has the times of its files


def run_all(tool, inputs, folder, commands):
    """Each output lies in `folder` under its name, beside links to the inputs."""
    for path in inputs.iterdir():
        (folder / path.name).symlink_to(path)
    for name, arguments in commands.items():
        done = subprocess.run([tool, *arguments.replace("OUT", name).split(), "--quiet", "--threads", "2"], cwd=folder,
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{tool} {arguments}: exit {done.returncode}\n{done.stderr.decode()}")
        if name.endswith(".stdout"):
            (folder / name).write_bytes(done.stdout)


def without_versions(text):
    text = re.sub(rb'"(tool_version|solver)": [^,\n]*,?\n', b"", text)
    text = re.sub(rb'"seconds": [0-9.e+-]*', b'"seconds": 0', text)
    return re.sub(rb',\n *"checksum": "[0-9a-f]*"', b"", text)


def hashes(folder, commands):
    """By path: of every file that was written."""
    found = {}
    for name in commands:
        top = folder / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                text = path.read_bytes()
                if path.suffix in [".json", ".stdout"]:
                    text = without_versions(text)
                found[str(path.relative_to(folder))] = hashlib.sha256(text).hexdigest()
    return found


def of_outputs(files):
    """By output: one hash over all of its files."""
    outputs = {}
    for path, digest in sorted(files.items()):
        outputs.setdefault(path.split("/")[0], []).append(f"{digest} {path}\n")
    return {name: hashlib.sha256("".join(lines).encode()).hexdigest()[:32] for name, lines in outputs.items()}


def differences(expected, found):
    return [path for path in sorted({**expected, **found}) if expected.get(path) != found.get(path)]


def main(arguments):
    update = arguments[0] == "--update"
    generate, golden, *tools = arguments[1:] if update else arguments
    others = {}
    if len(tools) > 1:
        versions = subprocess.run([tools[0], "version"], check=True, capture_output=True, text=True).stdout
        others = {**OF_LIBRARIES_TOO, **(OF_ARROW_TOO if re.search(r"Arrow +\d", versions) else {})}
    faults, first = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        inputs = pathlib.Path(scratch, "inputs")
        inputs.mkdir()
        make_inputs(generate, inputs)
        for number, tool in enumerate(tools):
            folder = pathlib.Path(scratch, str(number))
            folder.mkdir()
            run_all(pathlib.Path(tool).absolute(), inputs, folder, {**OURS, **others})
            ours = of_outputs(hashes(folder, OURS))
            if update:
                pathlib.Path(golden).write_text("".join(f"{digest} {name}\n" for name, digest in ours.items()))
            pinned = dict(reversed(line.split(" ")) for line in pathlib.Path(golden).read_text().splitlines())
            faults += [f"{tool}: {name}: not the bytes whose hash is pinned" for name in differences(pinned, ours)]
            files = hashes(folder, {**OURS, **others})
            first = first or files
            faults += [f"{tool}: {path}: not what {tools[0]} wrote" for path in differences(first, files)]
    print(*faults, f"{len(tools)} x {len(first)} files, {len(faults)} differences", sep="\n")
    return bool(faults)


sys.exit(main(sys.argv[1:]))
