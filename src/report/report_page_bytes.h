// The report's page without its data, as bytes: cmake/embed_page.cmake makes the .cc from
// src/report/page/.
#ifndef HANGSCOPE_REPORT_REPORT_PAGE_BYTES_H
#define HANGSCOPE_REPORT_REPORT_PAGE_BYTES_H

namespace hangscope {

extern const unsigned char kReportPageHead[];
extern const unsigned long kReportPageHeadSize;
extern const unsigned char kReportPageTail[];
extern const unsigned long kReportPageTailSize;

}  // namespace hangscope

#endif
