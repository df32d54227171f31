#include "report/source_excerpt.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace hangscope {
namespace {

constexpr uintmax_t kLargestSource = 4u << 20;
constexpr uint32_t kLinesBefore = 6;
constexpr uint32_t kLinesBehind = 4;
constexpr size_t kLongestLine = 400;

bool IsNameOfSource(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 14> kEndings = {".c",   ".h",   ".cc",  ".hh",  ".cpp",
                                                         ".hpp", ".cxx", ".hxx", ".inc", ".S",
                                                         ".s",   ".rs",  ".cu",  ".cuh"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

}  // namespace

std::optional<ReportExcerpt> ReadSourceExcerpt(const SourceLine& where) {
  const std::filesystem::path path(where.path);
  std::error_code error;
  if (!IsNameOfSource(path) || !std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > kLargestSource || error) return std::nullopt;
  std::ifstream in(path);
  ReportExcerpt excerpt;
  excerpt.file = path.filename().string();
  excerpt.line = where.line;
  excerpt.first = where.line > kLinesBefore ? where.line - kLinesBefore : 1;
  std::string line;
  for (uint32_t number = 1; number <= uint64_t{where.line} + kLinesBehind && std::getline(in, line);
       ++number) {
    if (number >= excerpt.first) excerpt.lines.push_back(line.substr(0, kLongestLine));
  }
  if (excerpt.first + excerpt.lines.size() <= where.line) return std::nullopt;
  return excerpt;
}

}  // namespace hangscope
