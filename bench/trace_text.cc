#include "trace_text.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace hangscope::bench {
namespace {

constexpr uint32_t kHarts = 3;
constexpr uint32_t kPlaces = 700;
constexpr const char* kFunctions[] = {"producer", "crc32_update", "memcpy", "sieve_step",
                                      "wait_for_room"};

// splitmix64's finaliser.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Moment {
  uint64_t number;  // of the step, all harts counted
  uint32_t hart;
  uint32_t place;  // 0 ... kPlaces - 1
  uint32_t value;
  const char* function;

  uint32_t pc() const { return 0x80000000u + 4 * place; }
};

// Mostly straight on, sometimes back into a loop or away into another function.
class Program {
 public:
  Moment Next() {
    const uint64_t dice = Mix(++number_);
    const auto hart = static_cast<uint32_t>(number_ / 16 % kHarts);  // harts take turns
    uint32_t& place = places_[hart];
    if (dice % 8 == 0) place += kPlaces - static_cast<uint32_t>(dice >> 8) % 12;
    if (dice % 64 == 1) place = static_cast<uint32_t>(dice >> 16) % kPlaces;
    place = (place + 1) % kPlaces;
    return {number_, hart, place, static_cast<uint32_t>(dice >> 32),
            kFunctions[place * 5 / kPlaces]};
  }

 private:
  uint64_t number_ = 0;
  uint32_t places_[kHarts] = {0, 100, 200};
};

int Print(TextKind kind, const Moment& at, char* to, size_t room) {
  switch (kind) {
    case TextKind::kQemu:
    case TextKind::kPlain:
      return snprintf(to, room, "%s %u: 0x7f569c%06x [00000000/%08x/00109003/ff080200] %s\n",
                      kind == TextKind::kQemu ? "Trace" : "Chunk", at.hart, at.place * 0x140,
                      at.pc(), at.function);
    case TextKind::kSpike:
      return snprintf(to, room,
                      "core   %u: 0x%08x (0x0025c783) lbu     a5, 2(a1)\n"
                      "core   %u: 3 0x%08x (0x0025c783) x15 0x%08x mem 0x%08x\n",
                      at.hart, at.pc(), at.hart, at.pc(), at.value, 0x8000b000u + at.value % 4096);
    case TextKind::kGvsoc:
      return snprintf(to, room,
                      "%" PRIu64 ": %" PRIu64
                      ": [\033[34m/soc/pe%u/insn                 \033[0m] %s:%u"
                      "                       M %016x lbu                 a5, 2(a1)"
                      "                 a5=%016x  a1:%016x  PA:%016x \n",
                      at.number * 100'000, at.number, at.hart, at.function, at.place % 90, at.pc(),
                      at.value & 255, 0x8000b000u + at.value % 4096, 0x8000b002u + at.value % 4096);
  }
  return 0;
}

}  // namespace

std::optional<TextKind> TextKindOf(std::string_view name) {
  if (name == "qemu") return TextKind::kQemu;
  if (name == "spike") return TextKind::kSpike;
  if (name == "gvsoc") return TextKind::kGvsoc;
  if (name == "plain") return TextKind::kPlain;
  return std::nullopt;
}

TraceText::TraceText(TextKind kind) {
  text_.reserve(kChunks * kChunkBytes);
  Program program;
  char lines[512];
  for (size_t chunk = 0; chunk < kChunks; ++chunk) {
    const size_t end = (chunk + 1) * kChunkBytes;
    for (;;) {
      const auto length = static_cast<size_t>(Print(kind, program.Next(), lines, sizeof lines));
      if (text_.size() + length > end) break;
      text_.append(lines, length);
    }
    // The last line is filled up with blanks, so that the chunk ends with it.
    text_.pop_back();
    text_.resize(end - 1, ' ');
    text_ += '\n';
  }
}

std::optional<TraceText> TraceText::Named(const std::string& name) {
  if (const auto kind = TextKindOf(name)) return TraceText(*kind);
  std::ifstream file(name, std::ios::binary);
  TraceText found;
  found.text_.assign(std::istreambuf_iterator<char>(file), {});
  if (found.text_.size() < kChunkBytes) return std::nullopt;
  found.repeats_after_ = found.text_.size();
  found.text_.append(found.text_, 0, kChunkBytes);
  return found;
}

std::string_view TraceText::Chunk(uint64_t chunk_number) const {
  const uint64_t at = repeats_after_ != 0 ? chunk_number * kChunkBytes % repeats_after_
                                          : Mix(chunk_number) % kChunks * kChunkBytes;
  return std::string_view(text_).substr(at, kChunkBytes);
}

}  // namespace hangscope::bench
