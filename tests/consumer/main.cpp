// Writes a small JSONL file, packs it and verifies the result through the library alone.
#include <cstdio>
#include <fstream>
#include <string>

#include <shardpack/shardpack.h>
#include <shardpack/version.h>

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::string input = folder + "/input.jsonl", output = folder + "/packed";
  std::ofstream(input) << R"({"input_ids": [1, 2, 3, 4, 5]}
{"input_ids": [6, 7, 8]}
{"input_ids": [9, 10, 11]}
{"input_ids": [12, 13]}
{"input_ids": [14, 15]}
{"input_ids": [16]}
)";

  shardpack::ThreadPool pool(2);
  shardpack::NoProgress progress;
  shardpack::NoDiagnostics diagnostics;
  const shardpack::RunContext context{
      .pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .memory_bytes = 64 << 20, .temp_dir = folder};
  shardpack::PackOptions options;
  options.policy.row_tokens = 8;
  options.packing.row_tokens = 8;
  const shardpack::PackResult result = shardpack::pack({input}, output, options, context);
  const shardpack::VerifyResult verdict = shardpack::verify(output, {.against = {input}}, context);
  std::printf("shardpack %s: packed %lld sequences into %lld rows, %s\n", shardpack::kVersion,
              static_cast<long long>(result.manifest.sequences), static_cast<long long>(result.manifest.rows),
              verdict.ok() ? "verified" : "not verified");
  return verdict.ok() ? 0 : 1;
}
