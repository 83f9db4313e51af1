// The main function of tests that depend on what the detector says: --cpu=NAME tells it a processor.
#include <cstdio>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/target/told_cpus.h"
#include "tests/target/told_host.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const std::string option = "--cpu=";
  std::optional<std::string> name;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.compare(0, option.size(), option) != 0 || !mycc::CpuidOf(word.substr(option.size()))) {
      std::fprintf(stderr, "%s: %s; expected --cpu= and a processor of tests/target/told_cpus.h\n", argv[0],
                   argv[i]);
      return 2;
    }
    name = word.substr(option.size());
  }
  const mycc::ToldCpu told(name);
  return RUN_ALL_TESTS();
}
