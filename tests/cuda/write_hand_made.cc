// write_hand_made FILE.so ARCH: the hand-made library, for programs of other languages.
#include <iostream>

#include "base/file.h"
#include "tests/cuda/hand_made.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const absl::StatusOr<mycc::SharedObject> object = mycc::HandMadeLibrary(mycc::TargetOfArch(argv[2]));
  const absl::Status status =
      object.ok() ? mycc::WriteFileAtomically(argv[1], object->bytes, true) : object.status();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
