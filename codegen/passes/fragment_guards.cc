#include "codegen/passes/fragment_guards.h"

#include <unordered_map>

#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

class EdgeStores {
 public:
  EdgeStores(const Stmt& body, const FragmentLayouts& layouts) : layouts_(layouts) {
    VisitEach<Store>(body, [&](const Store& store) {
      if (!IsUpdate(store)) ++stores_[store.buffer.get()];
    });
    Walk(body, body.get());
  }

  std::unordered_set<const Store*> Take() { return std::move(found_); }

 private:
  // In the order of execution. Statements with the same `site` are executed equally often.
  void Walk(const Stmt& stmt, const StmtNode* site) {
    if (const Alloc* alloc = DynAs<Alloc>(stmt)) {
      allocated_[alloc->buffer.get()] = site;
      return Walk(alloc->body, site);
    }
    if (layouts_.IsRoot(stmt)) {
      for (const FragmentNest& nest : NestsOf(stmt)) See(nest, site);
      return;
    }
    for (const Stmt& child : Children(stmt)) Walk(child, stmt->kind == StmtKind::kSeq ? site : child.get());
  }

  void See(const FragmentNest& nest, const StmtNode* site) {
    const Buffer& target = nest.store->buffer;
    bool reads_defined = true;
    ForEachLoad(nest.store->value,
                [&](const ExprNode& load) { reads_defined &= defined_.contains(load.buffer.get()); });
    const auto allocated = allocated_.find(target.get());
    const bool fills = layouts_.Find(target) != nullptr && allocated != allocated_.end() &&
                       allocated->second == site && !IsUpdate(*nest.store);
    if (!fills) return;
    if (!nest.conditions.empty()) {
      if (!reads_defined || stores_.at(target.get()) != 1) return;
      found_.insert(nest.store);
    }
    defined_.insert(target.get());
  }

  const FragmentLayouts& layouts_;
  std::unordered_map<const BufferNode*, int> stores_;                 // that do not update
  std::unordered_map<const BufferNode*, const StmtNode*> allocated_;  // the site
  BufferSet defined_;                                                 // laid-out tiles: all their elements
  std::unordered_set<const Store*> found_;
};

}  // namespace

std::unordered_set<const Store*> StoresBeyondEdges(const Stmt& body, const FragmentLayouts& layouts) {
  return EdgeStores(body, layouts).Take();
}

}  // namespace mycc
