// What the name of a target means.
#include "target/target_spec.h"

#include <gtest/gtest.h>

#include "fakes/fake_file_system.h"

namespace hangscope {
namespace {

using Kind = TargetSpec::Kind;

class TargetSpecTest : public ::testing::Test {
 protected:
  TargetSpec Parse(const std::string& text) { return ParseTargetSpec(files, text); }
  void Make(const std::string& path) { ASSERT_TRUE(WriteWholeFile(files, path, "x").ok()); }

  FakeFileSystem files;
};

TEST_F(TargetSpecTest, EachPrefixIsAKind) {
  const struct {
    const char* text;
    Kind kind;
    const char* where;
    const char* name;
  } specs[] = {{"file:a/ram.bin", Kind::kFile, "a/ram.bin", "a/ram.bin"},
               {"a/ram.bin", Kind::kFile, "a/ram.bin", "a/ram.bin"},
               {"pid:4711", Kind::kProcess, "4711", "process 4711"},
               {"core:dump", Kind::kCore, "dump", "core:dump"},
               {"gdb:localhost:1234", Kind::kServer, "localhost:1234", "gdb:localhost:1234"},
               {"exec:./jtag --port 3", Kind::kHelper, "./jtag --port 3", "exec:./jtag --port 3"}};
  for (const auto& [text, kind, where, name] : specs) {
    const TargetSpec spec = Parse(text);
    EXPECT_EQ(spec.kind, kind) << text;
    EXPECT_EQ(spec.where, where);
    EXPECT_EQ(spec.name, name);
    EXPECT_EQ(spec.pid, kind == Kind::kProcess ? 4711 : 0) << text;
    EXPECT_EQ(spec.offset, std::nullopt) << text;
    EXPECT_TRUE(spec.status.ok()) << spec.status.message();
  }
}

TEST_F(TargetSpecTest, NumberOfAProcess) {
  EXPECT_EQ(Parse("pid:0x10").pid, 16);
  for (const char* other : {"pid:", "pid:0", "pid:-1", "pid:1x", "pid:99999999999"}) {
    EXPECT_EQ(Parse(other).kind, Kind::kProcess) << other;
    EXPECT_EQ(Parse(other).pid, 0) << other;
    EXPECT_EQ(Parse(other).status.code(), Status::Code::kUsage) << other;
  }
  EXPECT_EQ(Parse("pid:x").status.message(), "pid:x: a process's number; for example pid:4711");
  for (const char* other : {"4711", "file:pid:1", ""}) EXPECT_EQ(Parse(other).pid, 0) << other;
}

TEST_F(TargetSpecTest, ScopeOfAGuestInASimulator) {
  const TargetSpec spec = Parse(GuestSpec(4711, 0x7f0000012340));
  EXPECT_EQ(spec.pid, 4711);
  EXPECT_EQ(spec.offset, 0x7f0000012340u);
  EXPECT_EQ(spec.name, "process 4711");
  EXPECT_FALSE(spec.pages);
  EXPECT_EQ(Parse("pid:4711@x").status.code(), Status::Code::kUsage);
  const TargetSpec paged = Parse(GuestSpec(4711, 0x8000cbc0, {0x80000000, 0x55d000001038}));
  EXPECT_EQ(paged.pid, 4711);
  EXPECT_EQ(paged.offset, 0x8000cbc0u);
  ASSERT_TRUE(paged.pages);
  EXPECT_EQ(paged.pages->base, 0x80000000u);
  EXPECT_EQ(paged.pages->header, 0x55d000001038u);
  EXPECT_EQ(Parse("pid:4711@0x1000/2").status.code(), Status::Code::kUsage);
  EXPECT_EQ(Parse("pid:4711@0x1000/2/x").status.code(), Status::Code::kUsage);
}

TEST_F(TargetSpecTest, OffsetStandsBehindTheLastAt) {
  const TargetSpec spec = Parse("file:a@b/ram.bin@0x1000");
  EXPECT_EQ(spec.where, "a@b/ram.bin");
  EXPECT_EQ(spec.offset, 0x1000u);
  EXPECT_EQ(spec.name, "a@b/ram.bin@0x1000");
  EXPECT_EQ(Parse("ram.bin@4096").offset, 4096u);
  EXPECT_EQ(Parse("ram.bin@").status.code(), Status::Code::kUsage);
  EXPECT_EQ(Parse("ram.bin@there").status.message(),
            "'ram.bin@there': behind @ stands where the scope begins, in bytes; for example "
            "file:ram.bin@0x1000");
}

TEST_F(TargetSpecTest, FileWhoseNameHasAnAtIsFoundByItsName) {
  Make("ram@7");
  EXPECT_EQ(Parse("ram@7").where, "ram@7");
  EXPECT_EQ(Parse("file:ram@7").where, "ram@7");
  EXPECT_EQ(Parse("ram@7").offset, std::nullopt);
  EXPECT_EQ(Parse("ram@7@8").where, "ram@7");
  EXPECT_EQ(Parse("ram@7@8").offset, 8u);
}

TEST_F(TargetSpecTest, FileThatLooksLikeATargetNeedsItsPrefix) {
  Make("pid:4711");
  Make("core:x");
  EXPECT_EQ(Parse("pid:4711").pid, 4711);
  EXPECT_EQ(Parse("core:x").kind, Kind::kCore);
  EXPECT_EQ(Parse("file:pid:4711").kind, Kind::kFile);
  EXPECT_EQ(Parse("file:pid:4711").where, "pid:4711");
  EXPECT_EQ(Parse("./pid:4711").kind, Kind::kFile);
}

TEST_F(TargetSpecTest, HelperNeedsACommand) {
  EXPECT_EQ(Parse("exec:").status.message(),
            "exec: wants a command that reaches the target's memory; for example "
            "'exec:./jtag_helper --port 3'");
}

TEST_F(TargetSpecTest, ANumberIsAProcessUnlessAFileHasThatName) {
  EXPECT_EQ(SpecOfWord(files, "4711"), "pid:4711");
  EXPECT_EQ(SpecOfWord(files, "ram.bin"), "ram.bin");
  EXPECT_EQ(SpecOfWord(files, ""), "");
  Make("4711");
  EXPECT_EQ(SpecOfWord(files, "4711"), "4711");
}

TEST_F(TargetSpecTest, WhatIsMadeFromPartsIsParsedIntoThem) {
  EXPECT_EQ(Parse(ProcessSpec(4711)).pid, 4711);
  EXPECT_EQ(Parse(FileSpec("pid:1")).where, "pid:1");
}

TEST_F(TargetSpecTest, ScopeOfAnObservedProgram) {
  for (const char* own : {"pid", "pid:"}) {
    EXPECT_TRUE(ParseScopePlace(own).is_own) << own;
    EXPECT_EQ(ParseScopePlace(own).TargetOf(7), "pid:7");
  }
  EXPECT_TRUE(ParseScopePlace("").none());
  EXPECT_TRUE(ParseScopePlace("").is_searched);
  EXPECT_TRUE(ParseScopePlace("none").none());
  EXPECT_FALSE(ParseScopePlace("none").is_searched);
  EXPECT_FALSE(ParseScopePlace("pid").none());
  EXPECT_EQ(ParseScopePlace("pid:8").TargetOf(7), "pid:8");
}

}  // namespace
}  // namespace hangscope
