// The report: one HTML file that needs nothing besides itself. The page is src/report/page/, its
// data docs/report-data.md.
#ifndef HANGSCOPE_REPORT_REPORT_PAGE_H
#define HANGSCOPE_REPORT_REPORT_PAGE_H

#include <string>
#include <string_view>

namespace hangscope {

// A page is the head, the data, the tail, in this order. Any thread may call; the views last as
// long as the program.
std::string_view ReportPageHead();
std::string_view ReportPageTail();

// A piece of the data's JSON, of any length, cut anywhere, as it goes into a page: with `<` as
// `\u003c`, so that no text of a target ends the element that holds the data. In JSON `<` only ever
// stands in texts.
std::string ReportPageData(std::string_view json_piece);

// The whole page, of data that fits in memory twice.
std::string ReportPage(std::string_view data_json);

}  // namespace hangscope

#endif
