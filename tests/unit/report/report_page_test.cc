// The report's page around its data; tests/system/test_report_page.py looks at it in a browser.
#include "report/report_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace hangscope {
namespace {

// What the page's script finds between the tags that hold the data, up to where a browser ends
// them.
std::string DataIn(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"hangscope-data\">";
  const size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script", at) - at);
}

size_t Count(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(ReportPage, HoldsItsDataAsItIs) {
  const nlohmann::json data = {{"version", 1},
                               {"headline", "deadlock, 2 of 3 cores wait for each other"}};
  EXPECT_EQ(nlohmann::json::parse(DataIn(ReportPage(data.dump()))), data);
}

TEST(ReportPage, TextOfATargetCannotEndTheDataNorBeginAComment) {
  const nlohmann::json data = {{"headline", "</script><script>alert(1)</script><!--<script>"},
                               {"title", "a < b"}};
  const std::string page = ReportPage(data.dump());
  EXPECT_EQ(nlohmann::json::parse(DataIn(page)), data);
  EXPECT_EQ(DataIn(page).find('<'), std::string::npos);
  EXPECT_EQ(Count(page, "</script"), Count(ReportPage("{}"), "</script"));
}

TEST(ReportPage, InPiecesIsTheSameAsAtOnce) {
  const std::string data = R"({"title":"<a><b>","evidence":["<","<<"]})";
  std::string page{ReportPageHead()};
  for (const char byte : data) page += ReportPageData({&byte, 1});
  page += ReportPageTail();
  EXPECT_EQ(page, ReportPage(data));
}

TEST(ReportPage, HasItsStyleAndItsScriptsInItAndNothingFromElsewhere) {
  const std::string page = ReportPage("{}");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos) << "page.css is missing";
  EXPECT_NE(page.find("class Timeline {"), std::string::npos) << "timeline.js is missing";
  EXPECT_NE(page.find("new Page();"), std::string::npos) << "main.js is missing";
  EXPECT_EQ(page.find("/*! "), std::string::npos) << "a place was not filled";
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos)
      << "the browser is not told to fetch nothing";
  for (const char* source : {"src=", "@import", "url(http", "fetch(", "innerHTML",
                             "insertAdjacentHTML", "document.write"}) {
    EXPECT_EQ(page.find(source), std::string::npos) << source;
  }
}

}  // namespace
}  // namespace hangscope
