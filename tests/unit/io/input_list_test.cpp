// From arguments to files: order, names, sidecars, repeats, and everything that a folder may hold besides shards.
#include "io/input_list.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::vector<std::string> names(const std::vector<std::string>& arguments, bool allow_repeats = false) {
  ReadOptions options;
  options.allow_repeats = allow_repeats;
  std::vector<std::string> result;
  for (const InputFile& file : list_inputs(arguments, options)) {
    CHECK(file.path.ends_with(file.name));
    CHECK(std::filesystem::path(file.path).is_absolute());
    result.push_back(file.name);
  }
  return result;
}

struct Failed {
  ErrorCode code = ErrorCode::internal;
  std::string what;
};
Failed failure(const std::vector<std::string>& arguments) {
  try {
    list_inputs(arguments, {});
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("files come in the order given, folders in byte order, names from the common root") {
  const TempFolder folder;
  for (const char* name : {"d/b.npy", "d/a.npy", "d/B.npy", "d/sub/c.npy", "d/a10.npy", "d/a9.npy", "e/x.npy"})
    folder.write(name, "x");
  const std::string d = folder.path("d"), e = folder.path("e");
  CHECK(names({d}) == Names{"B.npy", "a.npy", "a10.npy", "a9.npy", "b.npy", "sub/c.npy"});
  CHECK(names({d + "/"}) == names({d}));
  CHECK(names({d + "/../d/./"}) == names({d}));
  CHECK(names({d + "/b.npy", d + "/a.npy"}) == Names{"b.npy", "a.npy"});
  CHECK(names({d + "/sub/c.npy", d + "/a.npy"}) == Names{"sub/c.npy", "a.npy"});
  CHECK(names({e, d + "/sub"}) == Names{"e/x.npy", "d/sub/c.npy"});
  CHECK(names({d + "/sub/c.npy"}) == Names{"c.npy"});
  CHECK(names({d + "/a*.npy"}) == Names{"a.npy", "a10.npy", "a9.npy"});
  CHECK(names({d + "/[Bb].npy"}) == Names{"B.npy", "b.npy"});
  CHECK(names({folder.path("*")}) == Names{"d/B.npy", "d/a.npy", "d/a10.npy", "d/a9.npy", "d/b.npy", "d/sub/c.npy", "e/x.npy"});
  folder.write("d/odd[1].npy", "x");
  CHECK(names({d + "/odd[1].npy"}) == Names{"odd[1].npy"});  // a file of that very name comes before the pattern
}

TEST_CASE("relative paths name the same files") {
  const TempFolder folder;
  folder.write("d/a.npy", "x");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path("d"));
  const Names by_file = names({"a.npy"}), by_folder = names({"."}), by_parent = names({"../d"});
  std::filesystem::current_path(before);
  CHECK(by_file == Names{"a.npy"});
  CHECK(by_folder == Names{"a.npy"});
  CHECK(by_parent == Names{"a.npy"});
}

TEST_CASE("sidecars are left out of folders and stand for their data when given") {
  const TempFolder folder;
  for (const char* name : {"t.bin", "t.idx", "o.npy", "o.csv.gz", "f.ds", "f.ds.index", "f.ds.metadata", "f.ds.loss",
                           "f.ds.datalist", "all.ds.metadata", "n.npy", "n.lengths.npy", "r.tok16", "r.offsets.npy", "e.bin",
                           "e.bos.idx", "token_ids_part_0.npy", "labels_mask_part_0.npy"}) {
    folder.write(name, "x");
  }
  const Names all{"e.bin", "f.ds", "n.npy", "o.npy", "r.tok16", "t.bin", "token_ids_part_0.npy"};
  CHECK(names({folder.path()}) == all);
  CHECK(names({folder.path("*")}) == all);
  CHECK(names({folder.path("t.idx")}) == Names{"t.bin"});
  CHECK(names({folder.path("t")}) == Names{"t.bin"});
  CHECK(names({folder.path("*.idx")}) == Names{"e.bin", "t.bin"});
  CHECK(names({folder.path("r.offsets.npy")}) == Names{"r.tok16"});
  // What a shell makes of t.*: the pair is one input, not two.
  CHECK(names({folder.path("t.bin"), folder.path("t.idx")}) == Names{"t.bin"});
  CHECK(names({folder.path("t.idx"), folder.path("t.bin")}) == Names{"t.bin"});
  folder.write("lone.idx", "x");
  CHECK(names({folder.path("lone.idx")}) == Names{"lone.idx"});  // opening it says that its data are missing
  CHECK(names({folder.path("lone")}) == Names{"lone.idx"});
}

TEST_CASE("a column beside token ids is not taken for token ids") {
  const TempFolder folder;
  for (const char* name : {"d/t.npy", "d/t.lengths.npy", "d/t.1.npy", "e/t.more.npy", "e/t.part.npy"}) folder.write(name, "x");
  CHECK(names({folder.path("d")}) == Names{"t.1.npy", "t.npy"});          // a number is no column's name
  CHECK(names({folder.path("e")}) == Names{"t.more.npy", "t.part.npy"});  // there is no t for them to belong to
  folder.write("d/t.domain.npy", "x");
  for (const std::string& argument : {folder.path("d"), folder.path("d/*")}) {
    const Failed failed = failure({argument});
    CHECK(failed.code == ErrorCode::usage);
    CHECK(failed.what.find("t.domain.npy") != std::string::npos);
    CHECK(failed.what.find("--group-column domain") != std::string::npos);
  }
  CHECK(names({folder.path("d/t.npy")}) == Names{"t.npy"});
  CHECK(names({folder.path("d/t.domain.npy")}) == Names{"t.domain.npy"});  // who names it means it
  ReadOptions options;
  options.group_column = "domain";
  CHECK(list_inputs({folder.path("d")}, options).size() == 2);
  folder.write("d/t.domain.lengths.npy", "x");  // a shard of its own
  CHECK(names({folder.path("d")}) == Names{"t.1.npy", "t.domain.npy", "t.npy"});
}

TEST_CASE("what is never a shard is left out of folders, and nothing else") {
  const TempFolder folder;
  for (const char* name : {"README.md", "LICENSE", "vocab.json", "merges.txt", "tokenizer_config.json", ".hidden.npy",
                           ".git/x.npy", "_SUCCESS", "SHA256SUMS", "meta.pkl", "a.npy", "unknown.xyz"}) {
    folder.write(name, "x");
  }
  CHECK(names({folder.path()}) == Names{"a.npy", "unknown.xyz"});
  CHECK(names({folder.path("*")}) == Names{"a.npy", "unknown.xyz"});
  CHECK(names({folder.path("README.md")}) == Names{"README.md"});  // given by name: opening it says what it is
  CHECK(names({folder.path(".hidden.npy")}) == Names{".hidden.npy"});
}

TEST_CASE("a saved dataset is the files of its state.json, in that order") {
  const TempFolder folder;
  for (const char* name : {"d/train/b.arrow", "d/train/a.arrow", "d/train/cache-1.arrow", "d/test/x.arrow", "z/y.npy"})
    folder.write(name, "x");
  folder.write("d/train/state.json", R"({"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}]})");
  folder.write("d/test/state.json",
               R"({"_data_files": [{"filename": "x.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]})");
  CHECK(names({folder.path("d/train")}) == Names{"b.arrow", "a.arrow"});
  CHECK(names({folder.path("d/test")}) == Names{"state.json"});
  CHECK(names({folder.path("*")}) == Names{"d/test/state.json", "d/train/b.arrow", "d/train/a.arrow", "z/y.npy"});

  folder.write("d/dataset_dict.json", R"({"splits": ["train", "test"]})");
  CHECK(failure({folder.path("d")}).code == ErrorCode::usage);
  CHECK(failure({folder.path("d")}).what.find("train, test") != std::string::npos);
  ReadOptions options;
  options.split = "train";
  CHECK(list_inputs({folder.path("d")}, options).size() == 2);
  CHECK(list_inputs({folder.path("d")}, options)[0].name == "train/b.arrow");
  for (const auto& [split, input] : {std::pair("tain", "d"), std::pair("train", "z")}) {
    options.split = split;
    CHECK_THROWS_AS(list_inputs({folder.path(input)}, options), Error);
  }
  folder.write("d/dataset_dict.json", R"({"splits": ["test"]})");
  CHECK(names({folder.path("d")}) == Names{"test/state.json"});

  folder.write("z/state.json", R"({"_data_files": [{"filename": "gone.arrow"}]})");
  CHECK(failure({folder.path("z")}).code == ErrorCode::io);
  folder.write("z/state.json", R"({"_data_files": [{"filename": "../d/train/a.arrow/../../../escape"}]})");
  CHECK(failure({folder.path("z")}).code == ErrorCode::bad_data);
}

TEST_CASE("links are followed to files and folders, and never round in a loop") {
  const TempFolder folder;
  folder.write("blobs/1234", "x");
  folder.write("far/c.npy", "x");
  folder.write("d/b.npy", "x");
  std::filesystem::create_symlink("../blobs/1234", folder.path("d/a.npy"));
  std::filesystem::create_symlink("../far", folder.path("d/more"));
  std::filesystem::create_symlink("..", folder.path("d/up"));
  std::filesystem::create_symlink(".", folder.path("far/self"));
  CHECK(failure({folder.path("d")}).code == ErrorCode::usage);  // d/up leads to far again: the same file twice
  std::filesystem::remove(folder.path("d/up"));
  CHECK(names({folder.path("d")}) == Names{"a.npy", "b.npy", "more/c.npy"});
  std::filesystem::create_symlink("nowhere", folder.path("d/z.npy"));
  CHECK(failure({folder.path("d")}).code == ErrorCode::io);
}

TEST_CASE("a file given twice is refused unless repeats are allowed") {
  const TempFolder folder;
  folder.write("a.npy", "x");
  std::filesystem::create_symlink("a.npy", folder.path("b.npy"));
  const std::string a = folder.path("a.npy");
  CHECK(failure({a, a}).code == ErrorCode::usage);
  CHECK(failure({folder.path("a.npy"), folder.path()}).code == ErrorCode::usage);
  const Failed linked = failure({a, folder.path("b.npy")});
  CHECK(linked.code == ErrorCode::usage);
  CHECK(linked.what.find("b.npy: given more than once (also as a.npy); --allow-repeats") != std::string::npos);
  CHECK(names({a, a}, true) == Names{"a.npy", "a.npy"});
}

TEST_CASE("what is not there, holds no shard or is a packed dataset is refused") {
  const TempFolder folder;
  folder.write("empty/README.md", "x");
  CHECK(failure({}).code == ErrorCode::usage);
  CHECK(failure({folder.path("missing.bin")}).code == ErrorCode::io);
  CHECK(failure({folder.path("missing.bin")}).what == folder.path("missing.bin") + ": cannot open: No such file or directory");
  CHECK(failure({folder.path("no/such/missing.bin")}).code == ErrorCode::io);
  CHECK(failure({folder.path("empty")}).code == ErrorCode::bad_data);
  CHECK(failure({folder.path("*.parquet")}).code == ErrorCode::bad_data);
  folder.write("packed/manifest.json", "{\n  \"format\": \"shardpack-packed\",\n");
  folder.write("packed/shard-00000-00000/input_ids.npy", "x");
  CHECK(failure({folder.path("packed")}).code == ErrorCode::usage);
  CHECK(failure({folder.path("packed")}).what.find("a packed dataset") != std::string::npos);
}

TEST_CASE("standard input stands alone") {
  const std::vector<InputFile> files = list_inputs({"-"}, {});
  REQUIRE(files.size() == 1);
  CHECK(files[0].path == "-");
  CHECK(files[0].name == "standard input");
  CHECK(failure({"-", "-"}).code == ErrorCode::usage);
}
