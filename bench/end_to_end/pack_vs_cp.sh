#!/usr/bin/env bash
# How near does `shardpack pack` come to copying? Interleaved runs of `pack` and of `cp` + sync of the same output bytes, on
# generated data. The ratio says more than the seconds: both write the same bytes to the same disk under the same conditions.
#   pack_vs_cp.sh SHARDPACK [SEQUENCES [ROUNDS]]
set -euo pipefail
shardpack=$(realpath "$1") sequences=${2:-1000000} rounds=${3:-3}
here=$(cd "$(dirname "$0")/../.." && pwd)
python=python3; "$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3

scratch=$(mktemp -d "${TMPDIR:-/tmp}/shardpack-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$python" "$here/data/generate.py" --sequences "$sequences" --out "$scratch/input" >/dev/null

seconds() { # run "$@", print its wall time
  local start=$EPOCHREALTIME end
  "$@" >/dev/null
  end=$EPOCHREALTIME
  awk -v a="$start" -v b="$end" 'BEGIN { printf "%.2f\n", b - a }'
}
pack() { "$shardpack" pack "$scratch/input" -L 2048 -o "$scratch/packed" -q --stats "$scratch/stats.json"; }
copy() {
  cp -r "$scratch/packed" "$scratch/copy"
  find "$scratch/copy" -type f -exec sync {} +
}

pack # once unmeasured: the input is in the page cache then
for ((round = 1; round <= rounds; ++round)); do
  rm -rf "$scratch/packed"
  sync
  pack_seconds=$(seconds pack)
  sync
  copy_seconds=$(seconds copy)
  rm -rf "$scratch/copy"
  bytes=$(du -sb "$scratch/packed" | cut -f1)
  awk -v p="$pack_seconds" -v c="$copy_seconds" -v b="$bytes" -v r="$round" \
    'BEGIN { printf "round %d: pack %.2f s (%.0f MB/s of output), cp + sync %.2f s, ratio %.2f\n", r, p, b / p / 1e6, c, p / c }'
  echo "$pack_seconds $copy_seconds" >>"$scratch/rounds"
done
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
pack_median=$(cut -d' ' -f1 "$scratch/rounds" | median)
copy_median=$(cut -d' ' -f2 "$scratch/rounds" | median)
tokens=$(($(stat -c %s "$scratch"/input/*.bin) / 2)) # 16-bit ids
awk -v p="$pack_median" -v c="$copy_median" -v t="$tokens" 'BEGIN {
  printf "median: pack %.2f s = %.1f M tokens/s; cp + sync %.2f s; pack / cp = %.2f\n", p, t / p / 1e6, c, p / c }'
tr ',' '\n' <"$scratch/stats.json" | grep -i rss || true
