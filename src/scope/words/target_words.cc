#include "scope/words/target_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/utf8.h"
#include "hangscope/abi/catalog.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

// A catalog is the target's: it may list any number, at any stride.
constexpr size_t kMostWords = 256;
constexpr uint32_t kMostWordStride = 1u << 24;

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end != 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<TargetWord::Per> PerOf(std::string_view text) {
  constexpr std::pair<std::string_view, TargetWord::Per> kNames[] = {
      {"all", TargetWord::Per::kAll},
      {"core", TargetWord::Per::kCore},
      {"node", TargetWord::Per::kNode}};
  for (const auto& [name, per] : kNames) {
    if (name == text) return per;
  }
  return std::nullopt;
}

// Where the target has what the program calls `low`, whose high half is that of the scope's
// address.
std::optional<uint64_t> AddressOfWord(const ScopeView& view, uint32_t low) {
  const uint64_t high = view.symbol().value_or(0) & ~uint64_t{UINT32_MAX};
  return view.AddressOf(high | low);
}

std::string ValueText(const TargetWord& word, const ScopeCatalog& catalog, uint64_t bits) {
  TraceField field{word.field.name, TraceFieldType::kUnsigned, 32, catalog.NamesOf(word.field)};
  TraceValue value{bits, "", true};
  if (word.field.type == EventField::Type::kSigned) field.type = TraceFieldType::kSigned;
  if (word.field.type == EventField::Type::kText) {
    field.type = TraceFieldType::kText;
    value.text = CharactersOf(bits, 4);
  }
  return word.is_hex ? fmt::format("{:#x}", bits) : FieldText(field, value);
}

void ReadWord(const ScopeView& view, const ScopeCatalog& catalog, const TargetWord& word,
              WordValue* value) {
  const auto at = AddressOfWord(view, word.address + word.stride * value->index);
  std::array<char, 4> bytes = {};
  const auto size = static_cast<size_t>(std::max(8, std::min(word.field.bits, 32)) / 8);
  if (!at) {
    value->text = "not in the memory that can be read";
    return;
  }
  if (Status status = view.scope().target().Read(*at, {bytes.data(), size}); !status.ok()) {
    value->text = "cannot be read";
    return;
  }
  const ByteOrder order = view.layout().order;
  uint64_t bits = size == 1   ? static_cast<uint8_t>(bytes[0])
                  : size == 2 ? Load16(bytes.data(), order)
                              : Load32(bytes.data(), order);
  if (word.field.type == EventField::Type::kSigned) {
    const int unused = 64 - static_cast<int>(size) * 8;
    bits = static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
  }
  value->value = bits;
  value->text = ValueText(word, catalog, bits);
}

std::string OwnerOf(const TargetWord& word, uint32_t index, const WatchScene& scene) {
  switch (word.per) {
    case TargetWord::Per::kAll:
      return "all";
    case TargetWord::Per::kNode: {
      const std::string place = scene.names == nullptr ? "" : scene.names->Node(index);
      return place.empty() ? fmt::format("node {}", index) : "node " + place;
    }
    case TargetWord::Per::kCore:
      return SubjectName({SubjectId::Kind::kCore, index}, scene);
  }
  return {};
}

}  // namespace

std::vector<TargetWord> TargetWords(const ScopeCatalog& catalog) {
  std::vector<TargetWord> words;
  for (const CatalogEntry* const entry : catalog.Entries(HANGSCOPE_CATALOG_WORD)) {
    const std::vector<std::string_view> said = WordsOf(entry->where);
    if (said.size() != 3 || entry->classes > kMostWordStride) continue;
    const bool is_hex = said[0] == "x8" || said[0] == "x16" || said[0] == "x32";
    const auto field = ScopeCatalog::ParseType(is_hex ? "u" + std::string(said[0].substr(1))
                                                      : std::string(said[0]));
    const auto per = PerOf(said[1]);
    if (!field || !per || field->bits > 32 || field->type == EventField::Type::kPointer) continue;
    words.push_back(
        {entry->name, *field, is_hex, *per, said[2] == "shown", entry->id, entry->classes});
    if (words.size() == kMostWords) break;
  }
  return words;
}

std::vector<WordValue> ReadWords(const ScopeView& view, const ScopeCatalog& catalog,
                                 const std::vector<TargetWord>& words, uint32_t cores,
                                 uint32_t nodes) {
  std::vector<WordValue> values;
  for (size_t i = 0; i < words.size(); ++i) {
    const TargetWord::Per per = words[i].per;
    const uint32_t count = per == TargetWord::Per::kAll    ? 1
                           : per == TargetWord::Per::kCore ? cores
                                                           : nodes;
    for (uint32_t index = 0; index < count; ++index) {
      values.push_back({i, index, std::nullopt, ""});
      ReadWord(view, catalog, words[i], &values.back());
    }
  }
  return values;
}

std::vector<std::string> WordLines(const std::vector<TargetWord>& words,
                                   const std::vector<WordValue>& values, const WatchScene& scene) {
  struct Line {
    TargetWord::Per per;
    uint32_t index;
    std::string who;
    std::string text;
  };
  std::vector<Line> lines;
  for (const WordValue& value : values) {
    const TargetWord& word = words[value.word];
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& known) {
      return known.per == word.per && known.index == value.index;
    });
    if (line == lines.end())
      line = lines.insert(line, {word.per, value.index, OwnerOf(word, value.index, scene), ""});
    line->text += fmt::format("{}{} {}", line->text.empty() ? "" : ", ", Printable(word.name),
                              value.value ? value.text : "(" + value.text + ")");
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    const auto place = [](const Line& line) {
      return std::pair(line.per == TargetWord::Per::kAll    ? 0
                       : line.per == TargetWord::Per::kNode ? 1
                                                            : 2,
                       line.index);
    };
    return place(a) < place(b);
  });
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.who.size());
  std::vector<std::string> text;
  for (const Line& line : lines)
    text.push_back(fmt::format("{:<{}}  {}", line.who, width, line.text));
  return text;
}

}  // namespace hangscope
