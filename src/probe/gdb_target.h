// gdb:HOST:PORT, gdb:PATH: a debug server by GDB's remote serial protocol, over TCP or a socket of
// the file system. Most servers stop the target when one connects; leaving lets it go on.
//
// Protocol: https://sourceware.org/gdb/current/onlinedocs/gdb.html/Remote-Protocol.html
#ifndef HANGSCOPE_PROBE_GDB_TARGET_H
#define HANGSCOPE_PROBE_GDB_TARGET_H

#include "base/clock.h"
#include "probe/target.h"

namespace hangscope {

class GdbTarget final : public Target {
 public:
  // `where`: HOST:PORT, or a path. `patience`: how long an answer may take.
  static Result<std::unique_ptr<Target>> Open(const std::string& where, TimeNs patience);
  ~GdbTarget() override;

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kDead; }  // it stands still as long as this is here
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }

 private:
  GdbTarget(std::string name, int fd, TimeNs patience);
  Status Send(std::string_view packet);
  Result<std::string> Receive();
  Result<std::string> Ask(const std::string& packet);
  Result<char> ReadByte(TimeNs deadline);
  Status Greet();

  const std::string name_;
  const int fd_;
  const TimeNs patience_;
  size_t most_at_once_ = 256;  // bytes of memory in one answer
  std::string received_;
  size_t taken_ = 0;
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
