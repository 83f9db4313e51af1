// Moves computations that depend only on const inputs to the packing function, which runs once.
//
//   alloc w.r packed                                   pack:   for ..: w.r[..] = w[..]
//   for ..: w.r[..] = w[..]                      ->            for ..: b'[..] = b[..]
//   for ..: y[..] += x[..] * w.r[..] + b[..]           kernel: for ..: y[..] += x[..] * w.r[..] + b'[..]
#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Unused bytes after every packed buffer: a vector load of its last elements may read past them.
constexpr int64_t kPackedSlack = 64;
constexpr int64_t kLine = 64;  // bytes of a cache line, where a packed buffer begins
// A tensor that is not in scope `packed` is precomputed only if that enlarges the weights by at most this
// factor.
constexpr int64_t kMostGrowth = 4;

// A statement at the root.
struct RootStmt {
  Stmt stmt;
  BufferSet reads, writes, allocs;
};

class Hoister {
 public:
  explicit Hoister(const Function& function) : function_(function) {
    Flatten(function.body);
    result_.kernel = {function.name, function.params, nullptr};
    result_.pack.name = absl::StrCat(function.name, "_pack");
    for (size_t i = 0; i < function.params.size(); ++i) {
      const bool is_const = function.params[i].kind == ParamKind::kConst;
      if (is_const) home_[function.params[i].buffer.get()] = static_cast<int>(i);
      if (is_const) result_.pack.params.push_back(function.params[i]);
      result_.packed_bytes.push_back(is_const ? kPackedHeaderBytes : 0);
    }
  }

  LoweredFunction Run() {
    DivideBodies();
    PlacePackedTensors();
    CopyConstsReadDirectly();
    return std::move(result_);
  }

 private:
  // Collects the statements at the root, without the Allocs around them.
  void Flatten(const Stmt& stmt) {
    if (stmt->kind == StmtKind::kSeq) {
      for (const Stmt& part : As<Seq>(stmt).stmts) Flatten(part);
    } else if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      allocated_.push_back(alloc->buffer);
      Flatten(alloc->body);
    } else {
      RootStmt& root = roots_.emplace_back(RootStmt{stmt, LoadedUnder(stmt), WrittenUnder(stmt), {}});
      VisitEach<Alloc>(stmt, [&](const Alloc& inside) { root.allocs.insert(inside.buffer.get()); });
    }
  }

  // The first const parameter that the statement depends on; -1 when it depends on other inputs too, or on no
  // const parameter.
  int ConstHome(const RootStmt& root) const {
    int home = -1;
    for (const BufferNode* read : root.reads) {
      if (root.writes.contains(read) || root.allocs.contains(read)) continue;
      const auto it = home_.find(read);
      if (it == home_.end()) return -1;
      home = home < 0 ? it->second : std::min(home, it->second);
    }
    return home;
  }

  bool MayPrecompute(const BufferNode* buffer, const RootStmt& writer, int home) const {
    if (writer.allocs.contains(buffer)) return true;
    const auto is_param = [&](const Param& param) { return param.buffer.get() == buffer; };
    // Outputs alone are parameters that are written.
    if (std::ranges::any_of(function_.params, is_param)) return false;
    for (const RootStmt& other : roots_) {
      if (&other != &writer && other.writes.contains(buffer)) return false;
    }
    return buffer->scope == Scope::kPacked ||
           buffer->bytes() <= kMostGrowth * function_.params[home].buffer->bytes();
  }

  // Both bodies, each under the Allocs of the buffers that only it uses.
  void DivideBodies() {
    std::vector<Stmt> pack, kernel;
    for (const RootStmt& root : roots_) {
      const int home = ConstHome(root);
      const auto may_precompute = [&](const BufferNode* written) {
        return MayPrecompute(written, root, home);
      };
      if (home >= 0 && std::ranges::all_of(root.writes, may_precompute)) {
        pack.push_back(root.stmt);
        for (const BufferNode* written : root.writes) home_[written] = home;
      } else {
        kernel.push_back(root.stmt);
        read_by_kernel_.insert(root.reads.begin(), root.reads.end());
      }
    }
    result_.kernel.body = MakeSeq(std::move(kernel));
    result_.pack.body = MakeSeq(std::move(pack));
    for (auto it = allocated_.rbegin(); it != allocated_.rend(); ++it) {
      const bool in_pack = home_.contains(it->get());
      if (in_pack && read_by_kernel_.contains(it->get())) continue;
      Stmt& body = (in_pack ? result_.pack : result_.kernel).body;
      body = std::make_shared<Alloc>(*it, std::move(body));
    }
  }

  void Place(const Buffer& buffer, int param) {
    int64_t& bytes = result_.packed_bytes[param];
    result_.packed.push_back(PackedBuffer{buffer, param, bytes});
    bytes += RoundUp(buffer->bytes() + kPackedSlack, kLine);
  }

  void PlacePackedTensors() {
    for (const Buffer& buffer : allocated_) {
      if (!home_.contains(buffer.get()) || !read_by_kernel_.contains(buffer.get())) continue;
      Buffer packed = buffer;
      if (buffer->scope != Scope::kPacked) {
        packed = MakeBuffer(buffer->name, buffer->dtype, buffer->shape, Scope::kPacked);
        result_.pack.body = ReplaceBuffer(result_.pack.body, buffer, packed);
        result_.kernel.body = ReplaceBuffer(result_.kernel.body, buffer, packed);
      }
      Place(packed, home_.at(buffer.get()));
    }
  }

  static Stmt VerbatimCopy(const Buffer& from, const Buffer& to) {
    std::vector<LoopSpec> loops;
    std::vector<Expr> indices;
    for (int d = 0; d < from->rank(); ++d) {
      const LoopKind kind = d + 1 == from->rank() ? LoopKind::kVector : LoopKind::kSerial;
      loops.push_back({MakeVar(absl::StrCat(to->name, ".c", d), from->shape[d]), kind});
      indices.push_back(VarRef(loops.back().var));
    }
    return MakeNest(loops, std::make_shared<Store>(to, indices, Load(from, indices)));
  }

  void CopyConstsReadDirectly() {
    for (const Param& param : function_.params) {
      if (param.kind != ParamKind::kConst || !read_by_kernel_.contains(param.buffer.get())) continue;
      const Buffer copy = MakeBuffer(absl::StrCat(param.buffer->name, ".c"), param.buffer->dtype,
                                     param.buffer->shape, Scope::kPacked);
      result_.kernel.body = ReplaceBuffer(result_.kernel.body, param.buffer, copy);
      result_.pack.body = MakeSeq({std::move(result_.pack.body), VerbatimCopy(param.buffer, copy)});
      Place(copy, home_.at(param.buffer.get()));
    }
  }

  const Function& function_;
  std::vector<RootStmt> roots_;
  std::vector<Buffer> allocated_;  // around them
  BufferSet read_by_kernel_;
  // The const parameter whose packed buffer contains it; for const parameters and what `pack` writes.
  std::unordered_map<const BufferNode*, int> home_;
  LoweredFunction result_;
};

}  // namespace

LoweredFunction HoistPacked(const Function& scheduled) { return Hoister(scheduled).Run(); }

}  // namespace mycc
