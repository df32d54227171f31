#include "report/report_page.h"

#include <algorithm>

#include "report/report_page_bytes.h"

namespace hangscope {
namespace {

std::string_view View(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string_view ReportPageHead() { return View(kReportPageHead, kReportPageHeadSize); }

std::string_view ReportPageTail() { return View(kReportPageTail, kReportPageTailSize); }

std::string ReportPageData(std::string_view json_piece) {
  std::string escaped;
  escaped.reserve(json_piece.size());
  for (size_t at = 0; at < json_piece.size();) {
    const size_t less = std::min(json_piece.find('<', at), json_piece.size());
    escaped += json_piece.substr(at, less - at);
    if (less < json_piece.size()) escaped += "\\u003c";
    at = less + 1;
  }
  return escaped;
}

std::string ReportPage(std::string_view data_json) {
  const std::string data = ReportPageData(data_json);
  std::string page;
  page.reserve(kReportPageHeadSize + data.size() + kReportPageTailSize);
  page += ReportPageHead();
  page += data;
  page += ReportPageTail();
  return page;
}

}  // namespace hangscope
