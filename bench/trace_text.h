// Made-up instruction traces, for benchmarks: the lines look like those of a
// simulator whose harts work (no loop at the end), always the same ones.
#ifndef HANGSCOPE_BENCH_TRACE_TEXT_H
#define HANGSCOPE_BENCH_TRACE_TEXT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangscope::bench {

enum class TextKind {
  kQemu,   // QEMU -d exec,nochain
  kSpike,  // Spike -l --log-commits
  kGvsoc,  // gvsoc --trace=insn, long, with colours
  kPlain,  // kQemu's lines with other first letters: as long, but of no trace
};

// "qemu", "spike", "gvsoc", "plain".
std::optional<TextKind> TextKindOf(std::string_view name);

constexpr size_t kChunkBytes = 64 * 1024;

// A stream without end, made of kChunks different chunks of whole lines in an
// order that does not repeat.
class TraceText {
 public:
  explicit TraceText(TextKind kind);

  // The bytes from chunk_number * kChunkBytes on.
  std::string_view Chunk(uint64_t chunk_number) const;
  // All chunks, one after another.
  std::string_view all() const { return text_; }

 private:
  static constexpr size_t kChunks = 128;

  std::string text_;
};

}  // namespace hangscope::bench

#endif
