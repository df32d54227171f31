// What a debug server sends, whatever it is asked.
#include <memory>
#include <string>

#include "fakes/fake_channel.h"
#include "fakes/fake_clock.h"
#include "fuzz.h"
#include "target/gdb_target.h"

namespace hangscope::fuzz {
namespace {

// Gives each packet the checksum that it should have, or few mutations get past it.
std::string WithChecksums(std::string_view bytes) {
  std::string fixed;
  while (!bytes.empty()) {
    const size_t begin = std::min(bytes.find('$'), bytes.size());
    fixed += bytes.substr(0, begin);
    bytes.remove_prefix(begin);
    const size_t end = bytes.find('#');
    if (bytes.empty() || end == std::string_view::npos) break;
    fixed += FrameGdbPacket(bytes.substr(1, end - 1));
    bytes.remove_prefix(std::min(end + 3, bytes.size()));
  }
  return fixed + std::string(bytes);
}

void CheckGdbStatus(const Status& status) {
  FUZZ_REQUIRE(status.ok() || (!status.message().empty() && status.message().size() < 1000));
}

}  // namespace

// The first byte: bit 0, checksums are made right; the others, how many bytes come at once, less
// one.
void FuzzGdb(std::string_view input) {
  if (input.empty()) return;
  const auto how = static_cast<uint8_t>(input[0]);
  std::string script(input.substr(1));
  if ((how & 1) != 0) script = WithChecksums(script);
  if (const auto data = ExpandGdbPacket(script))
    FUZZ_REQUIRE(data->size() <= GdbPacketReader::kLongest);
  FakeClock clock;
  auto target = GdbTarget::Open(
      "the server",
      std::make_unique<FakeChannel>(std::vector<std::string>{"", script}, 1 + (how >> 1)), kSecond,
      clock);
  CheckGdbStatus(target.status());
  if (!target.ok()) return;
  std::string bytes(300, '\0');
  for (int i = 0; i < 4; ++i) {
    const Status status = (*target)->Read(0x80000000, bytes);
    CheckGdbStatus(status);
    CheckGdbStatus((*target)->Write(0x80000000, bytes));
  }
}

}  // namespace hangscope::fuzz
