#include "runtime/bus/bus_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hangscope {
namespace {

constexpr uint64_t kHeap = 0x10000;
constexpr char kNumberOfBus[] = "4596761240066d69967144c9000000ab";

// A message as it is on the wire.
class WireMessage {
 public:
  WireMessage(uint8_t type, uint32_t serial, uint8_t flags = 0) {
    bytes_ = {'l', static_cast<char>(type), static_cast<char>(flags), 1};
    Number(0), Number(serial), Number(0);
  }
  WireMessage& Field(uint8_t field, char type, const std::string& text) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    bytes_ += {static_cast<char>(field), 1, type, 0};
    Number(static_cast<uint32_t>(text.size()));
    bytes_ += text + '\0';
    return *this;
  }
  std::string Bytes() const {
    std::string bytes = bytes_;
    const auto fields = static_cast<uint32_t>(bytes.size() - 16);
    std::memcpy(bytes.data() + 12, &fields, sizeof fields);
    return bytes;
  }

 private:
  void Number(uint32_t number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  std::string bytes_;
};

// A call of Now of the clock; `sender`: as it comes from the bus.
std::string Call(uint32_t serial, const char* destination, const char* sender = nullptr,
                 uint8_t flags = 0) {
  WireMessage call(BusMessage::kCall, serial, flags);
  call.Field(1, 'o', "/clock").Field(6, 's', destination).Field(3, 's', "Now");
  if (sender != nullptr) call.Field(7, 's', sender);
  return call.Bytes();
}

class FakeHeap {
 public:
  uint64_t Put(const std::string& bytes) {
    const uint64_t at = kHeap + image_.size();
    image_ += bytes;
    image_.resize((image_.size() + 15) / 16 * 16);
    return at;
  }
  uint64_t PutText(const std::string& text) { return Put(text + '\0'); }
  // A connection of GLib, which has sent the message `serial` last.
  void Connection(const char* name, uint32_t serial) {
    const uint64_t words[] = {serial, 0x5000, PutText(name), PutText(kNumberOfBus)};
    Put(std::string(reinterpret_cast<const char*>(words), sizeof words));
  }
  bool CalledItself(BusLibrary library) const {
    MemoryMapping heap;
    heap.begin = kHeap, heap.end = kHeap + image_.size(), heap.path = "[heap]";
    heap.readable = heap.writable = true;
    return hangscope::CalledItself(library, {heap},
                                   [this](uint64_t address, void* into, size_t bytes) {
                                     if (address < kHeap || address + bytes > kHeap + image_.size())
                                       return false;
                                     std::memcpy(into, image_.data() + (address - kHeap), bytes);
                                     return true;
                                   });
  }

 private:
  std::string image_ = std::string(64, '\0');
};

TEST(BusReader, AMessageIsReadAsItIsOnTheWire) {
  const auto message = ParseBusMessage(Call(7, "org.zoo.Clock", ":1.5"));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, BusMessage::kCall);
  EXPECT_TRUE(message->wants_answer);
  EXPECT_EQ(message->serial, 7u);
  EXPECT_EQ(message->path, "/clock");
  EXPECT_EQ(message->member, "Now");
  EXPECT_EQ(message->destination, "org.zoo.Clock");
  EXPECT_EQ(message->sender, ":1.5");
  EXPECT_FALSE(ParseBusMessage(Call(7, "org.zoo.Clock", nullptr, 1))->wants_answer);
}

TEST(BusReader, WhatIsCutOrDamagedIsNoMessage) {
  const std::string whole = Call(7, "org.zoo.Clock", ":1.5");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(ParseBusMessage(std::string_view(whole).substr(0, bytes))) << bytes;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char wrong : {'\0', '\x7f', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = wrong;
      ParseBusMessage(damaged);  // it reads nothing that is not there
    }
  }
  std::string of_other_order = whole;
  of_other_order[0] = 'B';
  EXPECT_FALSE(ParseBusMessage(of_other_order));
}

TEST(BusReader, ACallOfGlibThatCameBackIsTheLastThatItsConnectionSent) {
  FakeHeap itself;
  itself.Put(Call(3, "org.zoo.Clock", ":1.5"));
  EXPECT_FALSE(itself.CalledItself(BusLibrary::kGlib)) << "no connection is called so";
  itself.Connection(":1.5", 3);
  EXPECT_TRUE(itself.CalledItself(BusLibrary::kGlib));

  FakeHeap later;  // it has called another one since
  later.Put(Call(3, "org.zoo.Clock", ":1.5"));
  later.Connection(":1.5", 4);
  EXPECT_FALSE(later.CalledItself(BusLibrary::kGlib));

  FakeHeap of_other;
  of_other.Put(Call(3, "org.zoo.Clock", ":1.6"));
  of_other.Connection(":1.5", 3);
  EXPECT_FALSE(of_other.CalledItself(BusLibrary::kGlib));

  FakeHeap wants_none;
  wants_none.Put(Call(3, "org.zoo.Clock", ":1.5", 1));
  wants_none.Connection(":1.5", 3);
  EXPECT_FALSE(wants_none.CalledItself(BusLibrary::kGlib));
}

TEST(BusReader, ACallOfLibdbusThatCameBackIsAlikeButForItsSender) {
  FakeHeap itself;
  itself.Put(Call(2, "org.zoo.Other"));
  itself.Put(Call(3, "org.zoo.Clock"));
  EXPECT_FALSE(itself.CalledItself(BusLibrary::kLibdbus)) << "it has not come yet";
  itself.Put(Call(3, "org.zoo.Clock", ":1.5"));
  EXPECT_TRUE(itself.CalledItself(BusLibrary::kLibdbus));
  itself.Put(Call(4, "org.zoo.Other"));
  EXPECT_FALSE(itself.CalledItself(BusLibrary::kLibdbus)) << "it has called another one since";

  FakeHeap of_other;  // which has sent as many
  of_other.Put(Call(3, "org.zoo.Other"));
  of_other.Put(Call(3, "org.zoo.Clock", ":1.6"));
  EXPECT_FALSE(of_other.CalledItself(BusLibrary::kLibdbus));
}

}  // namespace
}  // namespace hangscope
