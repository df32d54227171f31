// gdb:HOST:PORT, gdb:PATH: a debug server by GDB's remote serial protocol, over TCP or a socket of
// the file system. Most servers stop the target when one connects; leaving lets it go on.
// A server that answers late or nonsense is out of step: it is asked nothing more.
#ifndef HANGSCOPE_TARGET_GDB_TARGET_H
#define HANGSCOPE_TARGET_GDB_TARGET_H

#include "base/clock.h"
#include "target/gdb_packet.h"
#include "target/target.h"

namespace hangscope {

class GdbTarget final : public Target {
 public:
  // `where`: HOST:PORT, or a path. `patience`: how long an answer may take.
  static Result<std::unique_ptr<Target>> Open(const std::string& where, TimeNs patience);
  // Over a connection that is there.
  static Result<std::unique_ptr<Target>> Open(std::string name,
                                              std::unique_ptr<ByteChannel> channel,
                                              TimeNs patience);
  ~GdbTarget() override;

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kDead; }  // it stands still as long as this is here
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }
  // Of a server that says which of its threads is which hart as QEMU does.
  std::optional<CoreRegisters> RegistersOf(uint32_t hart, int xlen) override;

 private:
  GdbTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience);
  Result<std::string> Ask(const std::string& packet);
  Status Greet();
  Status GiveUp(Status why);
  const std::vector<std::string>& Threads();
  std::optional<std::string> ThreadOfHart(uint32_t hart);

  const std::string name_;
  std::unique_ptr<ByteChannel> channel_;
  GdbPacketReader packets_;
  const TimeNs patience_;
  size_t most_at_once_ = 256;                        // bytes of memory in one answer
  Status warning_;                                   // not ok: it is out of step
  std::optional<std::vector<std::string>> threads_;  // as it calls them, once they are asked for
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
