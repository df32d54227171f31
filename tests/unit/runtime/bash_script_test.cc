#include "runtime/bash/bash_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Redirection Reads(const char* name) { return {name, true, false}; }
Redirection Writes(const char* name) { return {name, false, true}; }

TEST(BashScript, RedirectionsAreThoseOfFiles) {
  EXPECT_THAT(RedirectionsOf("exec 5<$d/replies 6>>\"$d/re quests\" 7<>/tmp/both"),
              ElementsAre(Reads("replies"), Writes("re quests"), Redirection{"both", true, true}));
  EXPECT_THAT(RedirectionsOf("cat < 'a b' >| out; (sort<in)"),
              ElementsAre(Reads("a b"), Writes("out"), Reads("in")));
  EXPECT_THAT(RedirectionsOf("make 2>&1 >log <&3 3>&-"), ElementsAre(Writes("log")));
  EXPECT_THAT(RedirectionsOf("diff <(sort a) >(cat) <<<word <<END"), IsEmpty());
  EXPECT_THAT(RedirectionsOf("echo '> a' \"> \\\" b\" \\> c # > d"), IsEmpty());
  EXPECT_THAT(RedirectionsOf("echo >$log >a$b > >"), IsEmpty()) << "their names are not known";
  EXPECT_THAT(RedirectionsOf("echo 'open > a"), IsEmpty());
  EXPECT_THAT(RedirectionsOf("echo a#b >c"), ElementsAre(Writes("c")));
}

constexpr std::string_view kScript =
    "#!/bin/bash\n"                  // 1
    "consumer() {\n"                 // 2
    "  exec 5<$d/replies 4>first\n"  // 3
    "  exec 4>$d/requests\n"         // 4
    "}\n"                            // 5
    "producer() {\n"                 // 6
    "  read x <$d/requests\n"        // 7
    "}\n"                            // 8
    "consumer <main\n"               // 9
    "later() {\n"                    // 10
    "  echo >later\n"                // 11
    "}\n"                            // 12
    "(\n"                            // 13
    "  read x <one\n"                // 14
    "  echo >two\n"                  // 15
    ") &\n"                          // 16
    "echo >three\n";                 // 17

TEST(BashScript, LaterIsWhatFollowsInTheFunction) {
  EXPECT_THAT(RedirectionsAfter(kScript, 3, "consumer", "replies"),
              ElementsAre(Writes("first"), Writes("requests")));
  EXPECT_THAT(RedirectionsAfter(kScript, 3, "consumer", "first"), ElementsAre(Writes("requests")));
  EXPECT_THAT(RedirectionsAfter(kScript, 3, "consumer", ""), ElementsAre(Writes("requests")));
  EXPECT_THAT(RedirectionsAfter(kScript, 7, "producer", "requests"), IsEmpty());
}

TEST(BashScript, OutsideOfFunctionsWhatTheyOpenIsNotLater) {
  EXPECT_THAT(RedirectionsAfter(kScript, 9, "main", "main"),
              ElementsAre(Reads("one"), Writes("two")));
  EXPECT_THAT(RedirectionsAfter(kScript, 14, "main", "one"), ElementsAre(Writes("two")))
      << "another shell runs what follows";
  EXPECT_THAT(RedirectionsAfter(kScript, 17, "main", ""), IsEmpty());
  EXPECT_THAT(RedirectionsAfter(kScript, 99, "main", ""), IsEmpty());
  EXPECT_THAT(RedirectionsAfter("", 1, "main", ""), IsEmpty());
}

}  // namespace
}  // namespace hangscope
