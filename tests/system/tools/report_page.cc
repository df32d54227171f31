// Standard input is the data of a report, standard output the page with it: hangscope's page for tests that make
// the data themselves.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "export/report_page.h"

int main() {
  std::ios::sync_with_stdio(false);
  const std::string data{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << hangscope::ReportPage(data);
  return std::cout.flush() ? 0 : 1;
}
