// usage: fuzz_corpus FUZZER FILE|FOLDER...
// Gives each file to the fuzzer's entry point once, without libFuzzer. An input that breaks
// something ends the program; the last name printed is its file's.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

std::vector<std::filesystem::path> FilesIn(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const hangscope::fuzz::Entry entry = argc < 3 ? nullptr : hangscope::fuzz::FindFuzzer(argv[1]);
  if (entry == nullptr) {
    std::cerr << "usage: fuzz_corpus FUZZER FILE|FOLDER...\n";
    return 2;
  }
  int count = 0;
  for (int i = 2; i < argc; ++i) {
    for (const auto& path : FilesIn(argv[i])) {
      std::cout << path.filename().string() << std::endl;  // flushed: it may be the last
      std::ifstream file(path, std::ios::binary);
      const std::string input(std::istreambuf_iterator<char>(file), {});
      entry(input);
      ++count;
    }
  }
  std::cout << count << " inputs\n";
  return count > 0 ? 0 : 1;  // a test of nothing has not passed
}
