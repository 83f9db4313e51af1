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
  Line("const unsigned barriers = ", prelude_.Use("shared_address"), "(shared + ", launch_.barriers_offset,
       ");");
  Open("if (", ThreadOfBlock(), " == 0)");
  for (int64_t buffer = 0; buffer < kReceiveBuffers; ++buffer)
    Line(prelude_.Use("barrier_init"), "(barriers + ", 8 * buffer, ", 1);");
  Line(prelude_.Use("barrier_init_fence"), "();");
  Close();
  Line(prelude_.Use("cluster_arrive"), "();");
  Line("bool alone = true;");
  Line("int round = 0;");
}

void KernelEmitter::EndClusterReduce() {
  if (sends_) Line("if (alone) ", prelude_.Use("cluster_wait"), "();");
}

// Combines the parts of one result that `blocks` consecutive blocks have. All threads of a block have the
// same part.
void KernelEmitter::CombineBlocks(const Combine& combine, const Parts& values, int64_t blocks) {
  const std::vector<std::string> types = TypesOf(combine);
  Parts received;
  for (size_t i = 0; i < types.size(); ++i) received.push_back(Name("received"));
  const std::string full = Name("full"), block = Name("block");
  Line("if (alone) ", prelude_.Use("cluster_wait"), "();");
  Line("alone = false;");
  int64_t offset = launch_.received_offset;
  size_t part = 0;
  std::string bytes;
  combine.ForEachBuffer([&](const Buffer& buffer) {
    const std::string& type = types[part];
    Line(type, "* const ", received[part], " = reinterpret_cast<", type, "*>(shared + ", offset,
         ") + round % ", kReceiveBuffers, " * ", launch_.cluster_reduce, ";");
    absl::StrAppend(&bytes, bytes.empty() ? "" : " + ", "sizeof(", type, ")");
    offset += ExchangedBytes(buffer) * kReceiveBuffers * launch_.cluster_reduce;
    ++part;
  });
  if (part > 1) bytes = absl::StrCat("(", bytes, ")");
  Line("const unsigned ", full, " = barriers + round % ", kReceiveBuffers, " * 8;");
  Line("if (", ThreadOfBlock(), " == 0) ", prelude_.Use("barrier_arrive_expect"), "(", full, ", ", blocks,
       " * ", bytes, ");");
  const bool all = blocks == launch_.cluster_reduce;
  const std::string own = all ? "rank" : absl::StrCat("rank % ", blocks);
  const std::string first = all ? "" : absl::StrCat("rank / ", blocks, " * ", blocks, " + ");
  Open("if (", ThreadOfBlock(), " < ", blocks, ")");
  for (size_t i = 0; i < values.size(); ++i) {
    Line(prelude_.Use("send_to_block"), "(", values[i], ", ", received[i], " + ", own, ", ", full, ", ",
         first, ThreadOfBlock(), ");");
  }
  Close();
  Line(prelude_.Use("barrier_wait"), "(", full, ", round / ", kReceiveBuffers, " & 1);");
  const auto from = [&](const std::string& place) {
    return EachPart(received, [&](const std::string& array) { return absl::StrCat(array, "[", place, "]"); });
  };
  SetEach(values, from("0"));
  Line("#pragma unroll");
  Open("for (int ", block, " = 1; ", block, " < ", blocks, "; ++", block, ")");
  Merge(combine, values, values, from(block));
  Close();
  Line("++round;");
}

}  // namespace mycc
