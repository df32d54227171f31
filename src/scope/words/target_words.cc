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

void ReadWord(const ScopeView& view, const ScopeCatalog& catalog, std::optional<uint64_t> symbol,
              CodeSource* program, const TargetWord& word, uint32_t index, ShownWord* shown) {
  // The program says the low half of the address; the high one is that of the scope's.
  const uint64_t high = symbol.value_or(view.symbol().value_or(0)) & ~uint64_t{UINT32_MAX};
  const uint64_t said = high | (word.address + word.stride * index);
  // An address that is none of the program's may be a register's.
  const bool is_beside = program == nullptr || program->InMemory(said) || view.is_one_memory();
  const auto at = is_beside ? view.AddressOf(said, symbol) : view.scope().target().AddressOf(said);
  std::array<char, 4> bytes = {};
  const auto size = static_cast<size_t>(std::max(8, std::min(word.field.bits, 32)) / 8);
  if (!at) {
    shown->text = "not in the memory that can be read";
    return;
  }
  if (Status status = view.scope().target().Read(*at, {bytes.data(), size}); !status.ok()) {
    shown->text = "cannot be read";
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
  shown->value = static_cast<int64_t>(bits);
  shown->text = ValueText(word, catalog, bits);
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

std::vector<ShownWord> ReadWords(const ScopeView& view, const ScopeCatalog& catalog,
                                 std::optional<uint64_t> symbol, const WordChoice& choice) {
  const std::vector<TargetWord> words = TargetWords(catalog);
  std::vector<ShownWord> shown;
  constexpr std::pair<TargetWord::Per, uint32_t WordChoice::*> kOwners[] = {
      {TargetWord::Per::kAll, nullptr},
      {TargetWord::Per::kNode, &WordChoice::nodes},
      {TargetWord::Per::kCore, &WordChoice::cores}};
  for (const auto& owners : kOwners) {
    const TargetWord::Per per = owners.first;
    const auto count = owners.second;
    const auto is_wanted = [&](const TargetWord& word) {
      return word.per == per && (word.is_shown || choice.dumped);
    };
    if (std::none_of(words.begin(), words.end(), is_wanted)) continue;
    for (uint32_t index = 0; index < (count == nullptr ? 1 : choice.*count); ++index) {
      const std::string owner = choice.owner(per, index);
      if (owner.empty()) continue;
      for (const TargetWord& word : words) {
        if (!is_wanted(word)) continue;
        ReadWord(view, catalog, symbol, choice.program, word, index,
                 &shown.emplace_back(ShownWord{owner, "", Printable(word.name), {}, ""}));
      }
    }
  }
  return shown;
}

std::vector<std::string> WordLines(const std::vector<ShownWord>& words) {
  size_t width = 0;
  for (const ShownWord& word : words) width = std::max(width, word.of.size());
  std::vector<std::string> lines;
  for (size_t i = 0; i < words.size(); ++i) {
    const ShownWord& word = words[i];
    const std::string text = word.name + " " + (word.value ? word.text : "(" + word.text + ")");
    if (i > 0 && words[i - 1].of == word.of && words[i - 1].memory == word.memory)
      lines.back() += ", " + text;
    else
      lines.push_back(fmt::format("{:<{}}  {}", word.of, width, text));
  }
  return lines;
}

}  // namespace hangscope
