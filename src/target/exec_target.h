// exec:COMMAND: a helper that reaches a target's memory in its own way (JTAG, PCIe, a vendor's
// library). It is started with `sh -c`, reads requests on its standard input, and answers on its
// standard output:
//
//   helper, once:  hangscope-probe 1\n          the version of what follows
//                  range 0x80000000 0x4000000\n what can be read: begin, bytes; any number, in
//                  order
//                  scope 0x80001000\n           perhaps: where the scope begins
//                  most 4096\n                  perhaps: bytes in one request; else 65536
//                  ready\n
//
//   request                           answer
//   read 0x80001000 256\n             ok 256\n and 256 bytes    or  error what went wrong\n
//   write 0x80001000 4\n and 4 bytes  ok 0\n                    or  error ...\n
//   alive\n                           live\n, dead\n or unknown\n
//   (end of input)                    it ends
//
// Addresses are hexadecimal with 0x, sizes decimal. A request is sent when the one before is
// answered. Without a range all addresses may be asked for. What the helper prints on its standard
// error is kept for messages. A helper that is late, ends, or answers something else is out of
// step: it is killed, with its process group, and each later request fails with the sentence that
// said why.
#ifndef HANGSCOPE_TARGET_EXEC_TARGET_H
#define HANGSCOPE_TARGET_EXEC_TARGET_H

#include <functional>

#include "base/clock.h"
#include "target/byte_channel.h"
#include "target/target.h"

namespace hangscope {

class ExecTarget final : public Target {
 public:
  // `patience`: how long an answer may take, and the start twice as long.
  static Result<std::unique_ptr<Target>> Open(const std::string& command, TimeNs patience);
  // Over a channel whose other side is somebody else's. `last_words`: what there is to say of a
  // helper that went wrong: " (it ended with status 1: no device)"; it also ends it.
  static Result<std::unique_ptr<Target>> Open(std::string name,
                                              std::unique_ptr<ByteChannel> channel, TimeNs patience,
                                              std::function<std::string()> last_words);

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override;
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> scope_address() const override { return scope_address_; }
  // Of the scope's symbol: a helper that knows where the scope is knows better than the program.
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override {
    return scope_address_.value_or(elf_address);
  }
  // Whether the helper said what can be read, so that it can be searched.
  bool has_ranges() const { return has_ranges_; }

 private:
  ExecTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience,
             std::function<std::string()> last_words);
  Status Greet();
  Status ParseGreeting(std::string_view line);
  Status AddRange(uint64_t begin, uint64_t size_bytes);
  Status Send(std::string_view request, TimeNs deadline);
  Result<std::string> ReceiveLine(TimeNs deadline);
  Status ReceiveBytes(std::span<char> bytes, TimeNs deadline);
  // The answer to what was sent: how many bytes follow.
  Result<uint64_t> ReceiveOk(std::string_view request, uint64_t wanted, TimeNs deadline);
  // Nothing more is asked.
  Status GiveUp(Status why);
  Status GiveUp(ByteChannel::Outcome outcome);
  TimeNs Deadline() const;

  const std::string name_;
  std::unique_ptr<ByteChannel> channel_;
  ByteReader reader_;
  const TimeNs patience_;
  std::function<std::string()> last_words_;
  Status warning_;  // not ok: it is out of step
  bool greeted_ = false;
  bool has_ranges_ = false;
  uint64_t most_at_once_ = 65536;
  std::vector<MemoryRange> ranges_;
  std::optional<uint64_t> scope_address_;
};

}  // namespace hangscope

#endif
