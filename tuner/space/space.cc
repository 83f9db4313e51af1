#include "tuner/space/space.h"

#include "base/check.h"

namespace mycc {

double Space::size() const {
  double points = 1;
  for (const Decision& decision : decisions) points *= static_cast<double>(decision.choices.size());
  return points;
}

int64_t Space::Value(const Choice& choice, const std::string& decision) const {
  MYCC_CHECK(choice.size() == decisions.size())
      << "a choice of " << choice.size() << " in a space of " << decisions.size() << " decisions";
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].name == decision) return decisions[i].choices[choice[i]];
  }
  MYCC_CHECK(false) << "no decision is called " << decision;
  return 0;
}

}  // namespace mycc
