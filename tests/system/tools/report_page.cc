// Standard input is the data of a report, standard output the page with it: hangscope's page for
// tests that make the data themselves.
#include "report/report_page.h"

#include <iostream>
#include <sstream>

int main() {
  std::ios::sync_with_stdio(false);
  std::ostringstream data;
  data << std::cin.rdbuf();
  std::cout << hangscope::ReportPage(data.view());
  return std::cout.flush() ? 0 : 1;
}
