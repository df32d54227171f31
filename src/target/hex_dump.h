// A scope as text, as a firmware without any other way out prints it on its console:
//
//   ~hs OOOOOOOO <up to 32 bytes in hex> CCCCCCCC   offset; CRC-32 of offset and bytes
//   ~hs end NNNNNNNN                                how many of these lines there were
//
// Lines of zeros only are left out. Anything may stand between lines, and before ~hs in one.
#ifndef HANGSCOPE_TARGET_HEX_DUMP_H
#define HANGSCOPE_TARGET_HEX_DUMP_H

#include <map>

#include "target/target.h"

namespace hangscope {

class HexDumpTarget final : public Target {
 public:
  // The last dump of the text that has an end; if none has, the last one.
  static Result<std::unique_ptr<HexDumpTarget>> Parse(std::string name, std::string_view text);

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kDead; }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> scope_address() const override { return 0; }
  // Where lines are missing, what no line covers is either zero or was lost. A damaged one lies
  // between its neighbours, as offsets rise.
  bool IsKnown(uint64_t address, uint64_t size_bytes) const override;
  std::string warning() const override;

  uint64_t damaged() const { return damaged_; }
  uint64_t missing() const { return missing_; }
  bool ended() const { return ended_; }

 private:
  explicit HexDumpTarget(std::string name) : name_(std::move(name)) {}
  void HandleLine(std::string_view line);
  void HandleEnd(uint64_t count);
  void CloseHole(uint64_t end);

  const std::string name_;
  std::map<uint64_t, std::string> lines_;  // by offset; may overlap
  std::vector<MemoryRange> holes_;         // that damaged lines may have filled
  uint64_t hole_begin_ = 0;                // behind the sound line before
  bool hole_is_open_ = false;
  uint64_t taken_ = 0;
  uint64_t damaged_ = 0;
  uint64_t missing_ = 0;
  bool ended_ = false;
  static constexpr uint64_t kMostBytes = 16u << 20;  // no console ever printed more
  std::vector<MemoryRange> ranges_{{0, kMostBytes}};
};

}  // namespace hangscope

#endif
