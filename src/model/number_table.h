// Numbers as a table of texts, as people read them.
#ifndef HANGSCOPE_MODEL_NUMBER_TABLE_H
#define HANGSCOPE_MODEL_NUMBER_TABLE_H

#include <string>
#include <vector>

namespace hangscope {

struct NumberTable {
  std::string title;
  std::string note;  // what the numbers mean, and what lowers them; may be empty
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`
};

}  // namespace hangscope

#endif
