// Emits reductions over the blocks of a cluster. Each block combines its own threads' values, sends the
// result to all blocks, and combines what it has received in the order of their ranks. So all blocks have
// bitwise the same result.
//
// There is room for the partial results of two rounds, each with a barrier that counts its bytes. A block
// that sends in round r + 2 has received all of round r + 1, so every block has read round r. A block ends
// after it has received everything that is sent to it, so nothing is sent to an ended block. Hence the blocks
// synchronize only once: they arrive at their beginning, and wait before the first send.
#include "codegen/cuda/kernel_emitter.h"

namespace mycc {

void KernelEmitter::BeginClusterReduce() {
  if (!sends_) return;
  SetUpBarriers(std::vector<int>(kReceiveBuffers, 1));
  Line(Call("cluster_arrive"), ";");
  Line("bool alone = true;");
  Line("int round = 0;");
}

void KernelEmitter::EndClusterReduce() {
  if (sends_) Line("if (alone) ", Call("cluster_wait"), ";");
}

// Combines the parts of one result that `blocks` consecutive blocks have. All threads of a block have the
// same part.
void KernelEmitter::CombineBlocks(const Combine& combine, const Parts& values, int64_t blocks) {
  const std::string full = Name("full"), block = Name("block");
  Line("if (alone) ", Call("cluster_wait"), ";");
  Line("alone = false;");
  const Parts received =
      DeclareArrays(combine, "received", launch_.received_offset, kReceiveBuffers * launch_.cluster_reduce,
                    absl::StrCat(" + round % ", kReceiveBuffers, " * ", launch_.cluster_reduce));
  const std::vector<std::string> types = TypesOf(combine);
  std::string bytes = absl::StrCat("sizeof(", absl::StrJoin(types, ") + sizeof("), ")");
  if (types.size() > 1) bytes = absl::StrCat("(", bytes, ")");
  Line("const unsigned ", full, " = barriers + round % ", kReceiveBuffers, " * 8;");
  Line("if (", ThreadOfBlock(), " == 0) ",
       Call("barrier_arrive_expect", full, absl::StrCat(blocks, " * ", bytes)), ";");
  const bool all = blocks == launch_.cluster_reduce;
  const std::string own = all ? "rank" : absl::StrCat("rank % ", blocks);
  const std::string first = all ? "" : absl::StrCat("rank / ", blocks, " * ", blocks, " + ");
  Open("if (", ThreadOfBlock(), " < ", blocks, ")");
  for (size_t i = 0; i < values.size(); ++i) {
    Line(Call("send_to_block", values[i], absl::StrCat(received[i], " + ", own), full,
              first + ThreadOfBlock()),
         ";");
  }
  Close();
  Line(Call("barrier_wait", full, absl::StrCat("round / ", kReceiveBuffers, " & 1")), ";");
  MergeAll(combine, values, ElementsOf(received, "0"), block, blocks, ElementsOf(received, block));
  Line("++round;");
}

}  // namespace mycc
