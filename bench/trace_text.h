// Texts for benchmarks. Made-up instruction traces: the lines look like those of a
// simulator whose harts work (no loop at the end), always the same ones. Or a file.
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

// A stream without end: made-up text of kChunks different chunks of whole lines in an
// order that does not repeat; or a file, over and over.
class TraceText {
 public:
  explicit TraceText(TextKind kind);
  // A kind by its name, else the file of that path; nothing where it cannot be read,
  // or is shorter than a chunk.
  static std::optional<TraceText> Named(const std::string& name);

  // The bytes from chunk_number * kChunkBytes on.
  std::string_view Chunk(uint64_t chunk_number) const;
  // All chunks, one after another; of made-up text.
  std::string_view all() const { return text_; }

 private:
  static constexpr size_t kChunks = 128;

  TraceText() = default;

  std::string text_;
  size_t repeats_after_ = 0;  // of a file; text_ goes on with its beginning
};

}  // namespace hangscope::bench

#endif
