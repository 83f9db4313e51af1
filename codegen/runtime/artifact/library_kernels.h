// The library kernels of compiled models, and their calling convention. Plain C over libc and libm, compiled
// into every CPU artifact and into mycc itself. The kernels allocate nothing but texts. Every value of every
// input is safe: an index outside of its tensor is left out. Thread rule: every function may be called from
// several threads at once.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The numbers of codegen/expr/dtype.h.
enum MyccDType {
  kMyccF64,
  kMyccF32,
  kMyccF16,
  kMyccBF16,
  kMyccI64,
  kMyccI32,
  kMyccI8,
  kMyccU8,
  kMyccBool,
  kMyccF8E4M3,
  kMyccF8E5M2,
  kMyccI16,
  kMyccU16,
  kMyccU32,
  kMyccU64,
};

// One tensor of a call: compact and row-major. `dtype` is a MyccDType.
struct MyccTensor {
  void* data;
  int64_t dtype, element_bytes;
  int64_t ndim;
  const int64_t* shape;
};

// `tensors` are the inputs, then the outputs. `workspace` has the bytes that the kernel's workspace function
// asks for, aligned to 8 bytes.
typedef void MyccLibraryKernel(const int64_t* attributes, const struct MyccTensor* tensors,
                               uint8_t* workspace);
typedef int64_t MyccWorkspaceFunction(const int64_t* attributes, const struct MyccTensor* tensors);

// output = input, of the same size.
MyccLibraryKernel MyccCopy;

// The k largest or smallest elements along an axis, the best first; equal ones in the order of their indices.
// NaN counts as larger than every number. Input: x. Outputs: values, indices (i64); k is their extent.
enum { kMyccTopKAxis, kMyccTopKLargest };
MyccLibraryKernel MyccTopK;
MyccWorkspaceFunction MyccTopKWorkspace;

// The determinants of the n x n matrices of a tensor of f32 or f64.
MyccLibraryKernel MyccDet;
MyccWorkspaceFunction MyccDetWorkspace;

// Fourier transforms of a length along axis 1 of x[outer, n, inner, parts], in f32 or f64: parts is 1, or 2
// for complex numbers. Output: y[outer, m, inner, parts]; m is at most the length. A one-sided inverse
// transform reads half of a spectrum.
enum { kMyccDftLength, kMyccDftInverse, kMyccDftOneSided };
MyccLibraryKernel MyccDft;
MyccWorkspaceFunction MyccDftWorkspace;

// data with updates at indices (i32 or i64), which are negative from the end. Inputs: data, indices, updates.
// Updates of one element are applied in row-major order. A reduction other than "none" has no narrow floats.
enum { kMyccScatterNone, kMyccScatterAdd, kMyccScatterMul, kMyccScatterMax, kMyccScatterMin };
enum { kMyccScatterReduction, kMyccScatterAxis };
MyccLibraryKernel MyccScatterElements;  // the index of an update is one of the axis
MyccLibraryKernel MyccScatterND;        // the last axis of the indices tells a slice of data; no axis

// The recurrence of an RNN, GRU or LSTM of D directions, G = 1, 3 or 4 gates, over B sequences of at most T
// steps, in f32 or f64. Inputs: products[T,B,D,G,H] of the inputs, with all biases that are added to them;
// weights[D,G,P,H,32], the transposed recurrent weights of 32 outputs after another, zero beyond H; then
// those that the flags tell: lengths[B] (i32), h[D,B,H], c[D,B,H], peepholes[D,3,H], bias[D,H], which a GRU
// adds to the recurrent product of its hidden gate. Outputs: y[T,D,B,H], h[D,B,H], and of an LSTM c[D,B,H].
enum { kMyccRnn, kMyccGru, kMyccLstm };
enum {
  kMyccRelu,
  kMyccTanh,
  kMyccSigmoid,
  kMyccAffine,
  kMyccLeakyRelu,
  kMyccThresholdedRelu,
  kMyccScaledTanh,
  kMyccHardSigmoid,
  kMyccElu,
  kMyccSoftsign,
  kMyccSoftplus
};
enum {
  kMyccHasLengths = 1,
  kMyccHasH = 2,
  kMyccHasC = 4,
  kMyccHasPeepholes = 8,
  kMyccHasBias = 16,  // linear_before_reset
  kMyccInputForget = 32,
  kMyccFirstReversed = 64,  // direction 0 runs from the last step to the first; direction 1 always does
};
enum {
  kMyccCell,
  kMyccFlags,
  kMyccClip,         // the bits of a double; 0 for none
  kMyccActivations,  // three for each direction, though some cells use fewer: function, alpha, beta
  kMyccPanel = 32,
};
MyccLibraryKernel MyccRecurrent;
MyccWorkspaceFunction MyccRecurrentWorkspace;

// Texts. A tensor of texts holds 64-bit handles, of type u64 here: the address of a text in UTF-8 that a NUL
// ends; NULL is the empty text. A kernel that makes texts makes them in memory of its thread. They live until
// the thread forgets them, or ends.
void MyccForgetTexts(void);
// A kernel that cannot compute its outputs, such as one without memory, says why; the text is constant. The
// first problem since the last one was taken, or NULL.
void MyccSetProblem(const char* problem);
const char* MyccTakeProblem(void);

// The texts of a constant. Input: u8[bytes], each text with a NUL at its end. Output: their handles.
MyccLibraryKernel MyccTexts;
// The texts of two tensors, broadcast to the output: one after the other, and whether they are equal (bool).
MyccLibraryKernel MyccConcatTexts;
MyccLibraryKernel MyccEqualTexts;
// Inputs: texts, keys. Output: the number (i64) of the last key that is equal to a text, or -1.
MyccLibraryKernel MyccFindTexts;

// The texts of a row that are no stop words, in another case. Inputs: texts, and stop words where there are
// some. Outputs: texts, one empty one where none is left; their number (i64). The rest of the row is empty.
enum { kMyccKeepCase, kMyccToLowerCase, kMyccToUpperCase };
enum { kMyccNormalizeCase, kMyccNormalizeSensitive, kMyccNormalizeStops };
MyccLibraryKernel MyccNormalizeTexts;

// The parts of texts x[...] between a delimiter, or between white space where it is empty; after `most`
// splits the rest is one part, unless it is negative. Inputs: x, delimiter[1]. Outputs: parts[...,n], empty
// where a text has fewer; their numbers (i64), as x; n (i64), for which the tensor has room.
MyccLibraryKernel MyccSplitTexts;  // attribute: most

// Texts of numbers of f32, f64, integers and bools, and numbers of texts. Every number is written so that it
// is read as the same.
MyccLibraryKernel MyccPrintNumbers;
MyccLibraryKernel MyccReadNumbers;

// Results of a size that data decide. The output is compact in its actual shape, and zero behind it; the last
// outputs are i64: how many there are.
// The indices[rank,n] of the elements of x[...] other than zero, i64.
MyccLibraryKernel MyccNonZero;
// The slices of x along an axis for which a condition (bool), which may be shorter, holds.
MyccLibraryKernel MyccCompress;  // attribute: axis
// The distinct slices of x along an axis, in their order or that of their first places. NaN equals NaN.
// Outputs: slices, their first places, the number of each slice of x, their counts (i64); the number of the
// slices, three times.
enum { kMyccUniqueAxis, kMyccUniqueSorted };
MyccLibraryKernel MyccUnique;
MyccWorkspaceFunction MyccUniqueWorkspace;
// Inputs: boxes[b,n,4], scores[b,c,n]; the most boxes of a class (i64), the overlap above which the worse of
// two boxes is dropped, the score above which a box counts; f32. Output: rows[...,3] of batch, class and box.
MyccLibraryKernel MyccNonMaxSuppression;  // attribute: boxes are given by their centers
MyccWorkspaceFunction MyccNonMaxSuppressionWorkspace;

#ifdef __cplusplus
}
#endif
