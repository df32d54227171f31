// What lies at a path.
#include "snapshot/recording_kind.h"

#include <gtest/gtest.h>

#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"

namespace hangscope {
namespace {

class KindOfRecording : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    ASSERT_TRUE(WriteWholeFile(files, path, bytes).ok());
  }

  FakeFileSystem files;
};

TEST_F(KindOfRecording, FolderIsASnapshotWhereItHasAManifest) {
  ASSERT_TRUE(files.MakeFolders("fw.snapshot-0001").ok());
  EXPECT_EQ(KindOf(files, "fw.snapshot-0001"), RecordingKind::kFolder);
  Write("fw.snapshot-0001/manifest.json", "damaged");
  EXPECT_EQ(KindOf(files, "fw.snapshot-0001"), RecordingKind::kSnapshot);
}

TEST_F(KindOfRecording, FolderIsADebuggersWhereItHasSettings) {
  ASSERT_TRUE(files.MakeFolders("board").ok());
  Write("board/snapshot.ini", "[snapshot]");
  EXPECT_EQ(KindOf(files, "board"), RecordingKind::kDebugger);
  EXPECT_FALSE(IsFolder(KindOf(files, "board"))) << "no snapshot of hangscope's";
}

TEST_F(KindOfRecording, FileTellsByItsFirstBytes) {
  Write("cpu.perf.data", PerfStory().image.File());
  Write("trace.log", "0x80000000: nop\n");
  Write("ram.bin", std::string("text, then\0", 11));
  Write("empty", "");
  EXPECT_EQ(KindOf(files, "cpu.perf.data"), RecordingKind::kPerfData);
  EXPECT_EQ(KindOf(files, "trace.log"), RecordingKind::kText);
  EXPECT_EQ(KindOf(files, "ram.bin"), RecordingKind::kOther);
  EXPECT_EQ(KindOf(files, "empty"), RecordingKind::kOther);
}

TEST_F(KindOfRecording, RingIsKnownByItsPrefixAndByItsFiles) {
  Write("trace/fw.stdout.index", "text");
  Write("trace/fw.stdout.0", "text");
  for (const char* path : {"trace/fw", "trace/fw.stdout", "trace/fw.stdout.0"})
    EXPECT_EQ(KindOf(files, path), RecordingKind::kRing) << path;
}

TEST_F(KindOfRecording, NameOfATargetIsNoRecording) {
  for (const char* name : {"pid:7", "exec:cat /dev/null", "none", ""})
    EXPECT_EQ(KindOf(files, name), RecordingKind::kOther) << name;
}

}  // namespace
}  // namespace hangscope
