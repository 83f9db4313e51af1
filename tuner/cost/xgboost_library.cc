// XGBoost, opened when it is first called: programs that link the cost model start without it. Each function
// of its C interface that the cost model calls is defined here under its own name, and passes the call on;
// the linker names one that is missing.
//
// A library that cannot be opened makes every call fail, and XGBGetLastError says why. Thread rule:
// thread-safe.
#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "xgboost/c_api.h"

namespace mycc {
namespace {

constexpr char kXgboost[] = "libxgboost.so.0";  // the ABI that the header is of

class XgboostLibrary {
 public:
  // It stays open: boosters may be freed as late as the program ends.
  static const XgboostLibrary& Get() {
    static const auto* const library = new XgboostLibrary();
    return *library;
  }

  // The library's own function, never the one of this file, whose name is the same; null with error().
  template <typename Function>
  Function* Find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  const std::string& error() const { return error_; }

 private:
  XgboostLibrary() : handle_(dlopen(kXgboost, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* const why = dlerror();
    error_ = absl::StrCat("the library of XGBoost 1.x cannot be opened: ", why == nullptr ? kXgboost : why);
  }

  void* const handle_;
  std::string error_;
};

template <typename... Parameters, typename... Arguments>
int Call(int (*)(Parameters...), const char* name, Arguments... arguments) {
  const auto function = XgboostLibrary::Get().Find<int(Parameters...)>(name);
  return function == nullptr ? -1 : function(arguments...);
}

// While this lives, OpenMP starts no thread for the calling one. Loading and saving a model ignore the
// booster's number of threads: they would start one for each processor, which a confined process cannot
// afford.
class OneThread {
 public:
  OneThread()
      : set_(XgboostLibrary::Get().Find<void(int)>("omp_set_num_threads")),
        get_(XgboostLibrary::Get().Find<int()>("omp_get_max_threads")) {
    if (!IsKnown()) return;
    before_ = get_();
    set_(1);
  }
  ~OneThread() {
    if (IsKnown()) set_(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  // A library that was built without OpenMP has no threads.
  bool IsKnown() const { return set_ != nullptr && get_ != nullptr; }

  void (*const set_)(int);
  int (*const get_)();
  int before_ = 0;
};

}  // namespace
}  // namespace mycc

const char* XGBGetLastError() {
  const mycc::XgboostLibrary& library = mycc::XgboostLibrary::Get();
  const auto function = library.Find<const char*()>(__func__);
  return function == nullptr ? library.error().c_str() : function();
}

int XGDMatrixCreateFromMat_omp(const float* data, bst_ulong nrow, bst_ulong ncol, float missing,
                               DMatrixHandle* out, int nthread) {
  return mycc::Call(&XGDMatrixCreateFromMat_omp, __func__, data, nrow, ncol, missing, out, nthread);
}

int XGDMatrixFree(DMatrixHandle handle) { return mycc::Call(&XGDMatrixFree, __func__, handle); }

int XGDMatrixSetFloatInfo(DMatrixHandle handle, const char* field, const float* array, bst_ulong len) {
  return mycc::Call(&XGDMatrixSetFloatInfo, __func__, handle, field, array, len);
}

int XGBoosterCreate(const DMatrixHandle dmats[], bst_ulong len, BoosterHandle* out) {
  return mycc::Call(&XGBoosterCreate, __func__, dmats, len, out);
}

int XGBoosterFree(BoosterHandle handle) { return mycc::Call(&XGBoosterFree, __func__, handle); }

int XGBoosterSetParam(BoosterHandle handle, const char* name, const char* value) {
  return mycc::Call(&XGBoosterSetParam, __func__, handle, name, value);
}

int XGBoosterUpdateOneIter(BoosterHandle handle, int iter, DMatrixHandle dtrain) {
  return mycc::Call(&XGBoosterUpdateOneIter, __func__, handle, iter, dtrain);
}

int XGBoosterPredictFromDMatrix(BoosterHandle handle, DMatrixHandle dmat, const char* config,
                                const bst_ulong** out_shape, bst_ulong* out_dim, const float** out_result) {
  return mycc::Call(&XGBoosterPredictFromDMatrix, __func__, handle, dmat, config, out_shape, out_dim,
                    out_result);
}

int XGBoosterLoadModelFromBuffer(BoosterHandle handle, const void* buf, bst_ulong len) {
  const mycc::OneThread one_thread;
  return mycc::Call(&XGBoosterLoadModelFromBuffer, __func__, handle, buf, len);
}

int XGBoosterSaveModelToBuffer(BoosterHandle handle, const char* config, bst_ulong* out_len,
                               const char** out_dptr) {
  const mycc::OneThread one_thread;
  return mycc::Call(&XGBoosterSaveModelToBuffer, __func__, handle, config, out_len, out_dptr);
}

int XGDMatrixSetUIntInfo(DMatrixHandle handle, const char* field, const unsigned* array, bst_ulong len) {
  return mycc::Call(&XGDMatrixSetUIntInfo, __func__, handle, field, array, len);
}

int XGBoosterFeatureScore(BoosterHandle handle, const char* config, bst_ulong* out_n_features,
                          char const*** out_features, bst_ulong* out_dim, bst_ulong const** out_shape,
                          float const** out_scores) {
  return mycc::Call(&XGBoosterFeatureScore, __func__, handle, config, out_n_features, out_features, out_dim,
                    out_shape, out_scores);
}
