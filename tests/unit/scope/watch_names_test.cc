// What a watcher calls things: by the catalog, the ELF, and by number where both are silent.
#include "scope/watch_names.h"

#include <gtest/gtest.h>

#include "hangscope/abi/catalog.h"
#include "hangscope/abi/watch.h"

namespace hangscope {
namespace {

constexpr uint64_t kProgramAt = 0x5555'0000'0000;

// A program of one function and one variable.
class TinyCode final : public CodeSource {
 public:
  std::optional<uint32_t> InsnAt(uint64_t) override { return std::nullopt; }
  Location Locate(uint64_t pc) override {
    if (pc >= 0x4000 && pc < 0x5000)
      return {pc == 0x4000 ? "_ZN4Lock7AcquireEv" : "_Znonsense", 0x4000, "sync.cc", 52};
    return pc >= 0x1000 && pc < 0x2000 ? Location{"cb_push", 0x1000, "cb.h", 7} : Location{};
  }
  bool InMemory(uint64_t) override { return true; }
  std::string Variable(uint64_t address) override { return address == 0x3000 ? "queue_lock" : ""; }
  int xlen() const override { return 64; }
};

class WatchNamesTest : public ::testing::Test {
 protected:
  void Entry(uint32_t kind, uint32_t id, const std::string& name, const std::string& text = "",
             const std::string& where = "") {
    std::string entry;
    const auto word = [&](std::string* to, uint32_t value) {
      for (int i = 0; i < 4; ++i) to->push_back(static_cast<char>(value >> 8 * i));
    };
    word(&entry, kind);
    word(&entry, id);
    word(&entry, 0);
    for (const std::string& string : {name, text, where}) entry += string + '\0';
    while (entry.size() % 4 != 0) entry += '\0';
    std::string list;
    word(&list, HANGSCOPE_CATALOG_MAGIC);
    word(&list, HANGSCOPE_CATALOG_VERSION);
    word(&list, static_cast<uint32_t>(12 + entry.size()));
    const Status status = catalog_.Add(list + entry);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  WatchNames Names() { return {catalog_, &code_, kProgramAt}; }

  ScopeCatalog catalog_;
  TinyCode code_;
};

TEST_F(WatchNamesTest, PendingTransactionsAreToldByKindWhereTheKindIsKnown) {
  CoreFault fault;
  fault.type = FaultType::kPending;
  fault.length = 1;
  EXPECT_EQ(Names().Fault(fault), "the kernel ended with 1 pending transaction");
  fault.kind = 1;
  fault.length = 3;
  fault.value = uint64_t{2} << 16 | uint64_t{1} << 48;
  EXPECT_EQ(Names().Fault(fault),
            "the kernel ended with 3 pending transactions: 2 writes, 1 posted write");
  fault.length = 70'001;
  fault.value = 0xffff | uint64_t{1} << 32;
  EXPECT_EQ(Names().Fault(fault),
            "the kernel ended with 70001 pending transactions: 65535 or more reads, 1 atomic");
}

TEST_F(WatchNamesTest, TasksAndCausesHaveTheirNames) {
  Entry(HANGSCOPE_CATALOG_TASK, 2, "radio");
  Entry(HANGSCOPE_CATALOG_EXCEPTION, 2, "illegal instruction");
  EXPECT_EQ(Names().Task(2), "task 2 radio");
  EXPECT_EQ(Names().Task(3), "task 3");
  catalog_.SetGiven({{HANGSCOPE_CATALOG_TASK, 3, "mo\ntor", false}});
  EXPECT_EQ(Names().Task(3).find('\n'), std::string::npos);
  EXPECT_TRUE(Names().Task(3).starts_with("task 3 mo"));
  CoreFault fault;
  fault.type = FaultType::kHardware;
  fault.reason = 2;
  EXPECT_EQ(Names().Fault(fault), "hardware fault, cause 0x2 illegal instruction, value 0x0");
}

TEST_F(WatchNamesTest, FunctionsReadAsTheyWereWritten) {
  WatchNames names = Names();
  EXPECT_EQ(names.Place(kProgramAt + 0x4000), "sync.cc:52 in Lock::Acquire()");
  EXPECT_EQ(names.Place(kProgramAt + 0x4001), "sync.cc:52 in _Znonsense");
  Entry(HANGSCOPE_CATALOG_WAYPOINT, 0x4000, "LCKW", "take a lock", "src/sync.cc:52");
  EXPECT_EQ(Names().WaypointPlace('L' | 'C' << 8 | 'K' << 16 | 'W' << 24),
            "take a lock, sync.cc:52 in Lock::Acquire()");
}

TEST_F(WatchNamesTest, AResourceIsNamedByCatalogNodeVariableOrNumber) {
  Entry(HANGSCOPE_CATALOG_RESOURCE, 0x30003, "the bus");
  Entry(HANGSCOPE_CATALOG_NODE_RESOURCE, 3, "cb3");
  WatchNames names = Names();
  EXPECT_EQ(names.Resource(0x30003), "the bus");
  EXPECT_EQ(names.Resource(0x20003), "cb3 of node 1");
  names.SetCores({}, {{0, 0, {}, 0}, {1, 2, {}, 0}});
  EXPECT_EQ(names.Resource(0x20003), "cb3 of (1,2)");
  EXPECT_EQ(names.Resource(0x70003), "0x70003") << "there is no such node";
  EXPECT_EQ(names.Resource(3), "0x3") << "of no node";
  EXPECT_EQ(names.Resource(static_cast<uint32_t>(kProgramAt + 0x3000)), "queue_lock");
  EXPECT_EQ(names.Resource(0x80001234), "0x80001234");
}

TEST_F(WatchNamesTest, ACoreIsNamedByItsThreadOrByNumberRoleAndNode) {
  Entry(HANGSCOPE_CATALOG_ROLE, 2, "writer");
  WatchNames names = Names();
  CoreSample sample;
  sample.role = 2;
  sample.node = 1;
  EXPECT_EQ(names.Core(3, sample), "core 3 writer");
  ScopeCore thread;
  thread.index = 4;
  thread.name =
      "deco\x1b"
      "der";
  names.SetCores({thread}, {{0, 0, {}, 0}, {1, 2, {}, 0}});
  EXPECT_EQ(names.Core(3, sample), "core 3 writer (1,2)");
  EXPECT_EQ(names.Core(4, sample), "thread deco\\x1bder");
}

TEST_F(WatchNamesTest, AWaypointIsNamedWithAllPlacesWhereItStands) {
  Entry(HANGSCOPE_CATALOG_WAYPOINT, 0x1008, "CRBW", "reserve back", "src/cb.c:41");
  // inlined a second time
  Entry(HANGSCOPE_CATALOG_WAYPOINT, 0x1108, "CRBW", "reserve back", "src/cb.c:41");
  Entry(HANGSCOPE_CATALOG_WAYPOINT, 0x9000, "CRBW", "", "other.c:3");
  EXPECT_EQ(Names().WaypointPlace(0x57425243), "reserve back, cb.c:41 in cb_push or other.c:3");
  EXPECT_EQ(Names().WaypointPlace(0x58), "");
  EXPECT_EQ(WatchNames::Waypoint(0x00425243), "CRB");
  EXPECT_EQ(WatchNames::Waypoint(0x07425243), "CRB");
}

TEST_F(WatchNamesTest, AKernelHasItsNameAndPath) {
  Entry(HANGSCOPE_CATALOG_KERNEL, 7, "matmul", "kernels/matmul.cc");
  EXPECT_EQ(Names().Kernel(7), "7 matmul (kernels/matmul.cc)");
  EXPECT_EQ(Names().Kernel(8), "8");
}

TEST_F(WatchNamesTest, AnAssertIsTheNearestOneOfItsLine) {
  Entry(HANGSCOPE_CATALOG_ASSERT, 0x1010, "", "count below capacity", "src/cb.c:41");
  Entry(HANGSCOPE_CATALOG_ASSERT, 0x1800, "", "of another file", "src/noc.c:41");
  Entry(HANGSCOPE_CATALOG_ASSERT, 0x1014, "", "of another line", "src/cb.c:42");
  CoreFault fault;
  fault.type = FaultType::kAssert;
  fault.line = 41;
  fault.pc = kProgramAt + 0x1014;
  EXPECT_EQ(Names().Fault(fault), "assert 'count below capacity' tripped at cb.c:41 in cb_push");
  fault.pc = kProgramAt + 0x1700;
  EXPECT_EQ(Names().Fault(fault), "assert 'of another file' tripped at noc.c:41 in cb_push");
  fault.line = 50;
  EXPECT_EQ(Names().Fault(fault), "assert tripped at cb.h:7 in cb_push");
}

TEST_F(WatchNamesTest, EachTypeOfFaultIsOneSentence) {
  Entry(HANGSCOPE_CATALOG_GUARD, 1, "canary");
  CoreFault fault;
  fault.type = FaultType::kBus;
  fault.kind = HANGSCOPE_BUS_WRITE;
  fault.reason = HANGSCOPE_BUS_ZERO_LENGTH;
  fault.where = 3 | 1 << 8;
  fault.address = 0x1000;
  fault.local = 0x200;
  fault.length = 64;
  EXPECT_EQ(Names().Fault(fault), "write of 64 bytes to (3,1) 0x1000 from 0x200: zero length");
  fault.kind = HANGSCOPE_BUS_READ;
  fault.reason = 99;
  EXPECT_EQ(Names().Fault(fault),
            "read of 64 bytes from (3,1) 0x1000 to 0x200: for a reason that is not known");
  fault.kind = HANGSCOPE_BUS_MULTICAST;
  fault.reason = HANGSCOPE_BUS_MULTICAST_RANGE;
  fault.where |= 4u << 16 | 5u << 24;
  EXPECT_EQ(Names().Fault(fault),
            "multicast of 64 bytes to (3,1)-(4,5) 0x1000 from 0x200: a rectangle over the edge, or "
            "turned round");
  fault = {};
  fault.type = FaultType::kGuard;
  fault.kind = 1;
  fault.address = 4;
  fault.value = 9;
  EXPECT_EQ(Names().Fault(fault), "guard word 'canary' at 0x4 changed: 0x9 was found");
  fault.type = FaultType::kHardware;
  fault.reason = 5;
  fault.pc = 0x77;
  EXPECT_EQ(Names().Fault(fault), "hardware fault, cause 0x5, value 0x9 at 0x77");
}

}  // namespace
}  // namespace hangscope
