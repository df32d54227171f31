// gdb:HOST:PORT, gdb:PATH: a debug server by GDB's remote serial protocol, over TCP or a socket of
// the file system. Most servers stop the target when one connects; leaving lets it go on where it
// ran before. A server that answers late or nonsense is out of step: it is asked nothing more.
//
// Servers differ: QEMU's resumes what it stopped and what stood still before alike, and says
// unasked that it stopped one that ran; OpenOCD's resumes nothing by itself; Black Magic's has no
// target until one is attached, or until it is asked what the last one's registers are.
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
  // Over a connection that is there. `clock` outlives it, and is the one of the channel's
  // deadlines.
  static Result<std::unique_ptr<Target>> Open(std::string name,
                                              std::unique_ptr<ByteChannel> channel, TimeNs patience,
                                              Clock& clock);
  ~GdbTarget() override;

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kDead; }
  bool is_held() const override { return true; }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }
  // Of a server that says which of its threads is which hart as QEMU does.
  std::optional<CoreRegisters> RegistersOf(uint32_t hart, int xlen) override;

 private:
  GdbTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience, Clock& clock);
  Result<std::string> Ask(const std::string& packet, GdbPacketKind wanted = GdbPacketKind::kAnswer);
  Status Greet();
  Status GiveUp(Status why);
  bool Offers(std::string_view feature) const;
  std::string Monitor(std::string_view command);
  void Leave();
  bool StoodStillInQemu();
  Result<std::string> AskForMemory(uint64_t address, size_t count);
  const char* WhyRefused(std::string_view answer) const;
  void Adapt(size_t got, TimeNs took);
  bool AttachAgain();
  const std::vector<std::string>& Threads();
  std::optional<std::string> ThreadOfHart(uint32_t hart);

  const std::string name_;
  std::unique_ptr<ByteChannel> channel_;
  GdbPacketReader packets_;
  const TimeNs patience_;
  Clock& clock_;
  // Bytes of memory in one answer: what the server takes, what has worked, what to ask for next.
  size_t most_at_once_ = 256;
  size_t proven_ = 0;
  size_t piece_ = 64;
  std::string features_;                             // as it tells them
  std::string console_;                              // what it printed since it was asked
  bool said_stop_ = false;                           // unasked
  bool said_end_ = false;                            // of the target
  bool attached_again_ = false;                      // or tried to
  Status warning_;                                   // not ok: it is out of step
  std::optional<std::vector<std::string>> threads_;  // as it calls them, once they are asked for
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
