#include "codegen/workload/spellings.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/workload/operators.h"

namespace mycc {
namespace {

// Words in lower case and without `_`, with their spelling in this language.
struct Spelling {
  std::string_view words;  // with a space before and after each
  const char* instead;
};

// Functions of one to three numbers.
constexpr Spelling kExpressions[] = {
    {" relu ", "max(x, 0.0)"},
    {" relu6 ", "clamp(x, 0.0, 6.0)"},
    {" leakyrelu lrelu ", "select(x > 0.0, x, 0.01 * x)"},
    {" elu ", "select(x > 0.0, x, exp(x) - 1.0)"},
    {" sigmoid logistic expit ", "1.0 / (1.0 + exp(-x))"},
    {" silu swish ", "x / (1.0 + exp(-x))"},
    {" gelu ", "0.5 * x * (1.0 + erf(x * 0.70710678))"},
    {" gelutanh newgelu fastgelu ", "0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * x * x * x)))"},
    {" softplus ", "max(x, 0.0) + log(1.0 + exp(-abs(x)))"},
    {" mish ", "x * tanh(max(x, 0.0) + log(1.0 + exp(-abs(x))))"},
    {" hardsigmoid ", "clamp(x / 6.0 + 0.5, 0.0, 1.0)"},
    {" hardswish hardsilu ", "x * clamp(x / 6.0 + 0.5, 0.0, 1.0)"},
    {" hardtanh ", "clamp(x, -1.0, 1.0)"},
    {" square sqr squared ", "x * x"},
    {" reciprocal recip rcp inv inverse ", "1.0 / x"},
    {" expm1 ", "exp(x) - 1.0"},
    {" log1p ", "log(1.0 + x)"},
    {" exp2 ", "exp(x * 0.69314718)"},
    {" log2 ", "log(x) * 1.44269504"},
    {" log10 ", "log(x) * 0.43429448"},
    {" sinh ", "0.5 * (exp(x) - exp(-x))"},
    {" cosh ", "0.5 * (exp(x) + exp(-x))"},
    {" tan ", "sin(x) / cos(x)"},
    {" sign sgn ", "select(x > 0.0, 1.0, select(x < 0.0, -1.0, 0.0))"},
    {" trunc truncate ", "select(x < 0.0, ceil(x), floor(x))"},
    {" fma mad muladd ", "x * y + z"},
    {" add ", "x + y"},
    {" sub subtract minus ", "x - y"},
    {" mul multiply times ", "x * y"},
    {" div divide truediv ", "x / y"},
    {" neg negative ", "-x"},
    {" fmax fmaxf maximum ", "max(x, y)"},
    {" fmin fminf minimum ", "min(x, y)"},
    {" power powf ", "pow(x, y)"},
    {" fabs fabsf absolute ", "abs(x)"},
    {" expf fastexp ", "exp(x)"},
    {" logf ln fastlog ", "log(x)"},
    {" sqrtf ", "sqrt(x)"},
    {" invsqrt rsqrtf ", "rsqrt(x)"},
    {" tanhf fasttanh tanhapprox ", "tanh(x)"},
    {" erff ", "erf(x)"},
    {" sinf ", "sin(x)"},
    {" cosf ", "cos(x)"},
    {" floorf ", "floor(x)"},
    {" ceilf ceiling ", "ceil(x)"},
    {" rint rintf nearbyint roundeven ", "round(x)"},
    {" where cond ifthenelse ternary if iif ", "select(x < y, x, y)"},
    {" clip saturate ", "clamp(x, 0.0, 1.0)"},
};

// Words whose spelling is not a single expression.
constexpr Spelling kAdvice[] = {
    {" mean avg average reducemean ", "a mean is a sum of quotients: sum[k:8](x[k] / 8.0)"},
    {" reducesum total ", "a sum names its axes: sum[k:8](x[k])"},
    {" reducemax amax ", "a maximum names its axes: max[k:8](x[k])"},
    {" reducemin amin ", "a minimum names its axes: min[k:8](x[k])"},
    {" product reduceprod ", "a product names its axes: prod[k:8](x[k])"},
    {" any ", "over bools: max[k:8](i32(p[k]))"},
    {" all ", "over bools: min[k:8](i32(p[k]))"},
    {" softmax ",
     "softmax takes three stages: m[i] = max[k:8](x[i,k]), s[i] = sum[k:8](exp(x[i,k] - m[i])) and "
     "y[i,j] = exp(x[i,j] - m[i]) / s[i]"},
    {" logsumexp logsoftmax ",
     "stages: m[i] = max[k:8](x[i,k]) and s[i] = sum[k:8](exp(x[i,k] - m[i])), whose logarithm is "
     "m[i] + log(s[i])"},
    {" var variance std stddev ",
     "a variance takes two stages: m[i] = sum[k:8](x[i,k] / 8.0) and v[i] = sum[k:8](pow(x[i,k] - m[i], 2.0) "
     "/ 8.0)"},
    {" layernorm rmsnorm batchnorm groupnorm instancenorm normalize norm ",
     "a norm takes stages: sums over the axis, such as s[i] = sum[k:8](x[i,k] * x[i,k] / 8.0), then x[i,j] * "
     "rsqrt(s[i] + 1e-5)"},
    {" matmul dot gemm mm bmm einsum linear dense tensordot ",
     "a matrix product is a sum: c[i,j] = sum[k:8](a[i,k] * b[k,j])"},
    {" conv conv1d conv2d conv3d convolution ",
     "a convolution is a sum over its window: sum[c:64, r:3, s:3](x[n,c,i+r,j+s] * w[k,c,r,s])"},
    {" maxpool maxpool2d pool pooling ", "pooling is a reduction: max[r:2, s:2](x[n,c,2*i+r,2*j+s])"},
    {" avgpool avgpool2d ", "pooling is a reduction: sum[r:2, s:2](x[n,c,2*i+r,2*j+s] / 4.0)"},
    {" cumsum scan prefixsum ", "a running sum: y[i] = sum[k:8](select(k <= i, x[k], 0.0))"},
    {" transpose permute swapaxes ", "indices transpose: y[i,j] = x[j,i]"},
    {" reshape view flatten ", "indices reshape: y[i,j] = x[i * 8 + j]"},
    {" broadcast broadcastto expand expanddims unsqueeze ",
     "an index that is left out broadcasts: y[i,j] = b[j]"},
    {" concat cat concatenate stack ", "select joins tensors: y[i] = select(i < 4, a[i], b[i-4])"},
    {" pad padding ", "select pads: p[i] = select(1 <= i && i < 9, x[i-1], 0.0)"},
    {" slice ", "indices slice: y[i] = x[i + 2]"},
    {" gather take embedding lookup ", "data may index a tensor, clamped: t[clamp(idx[i], 0, 999), j]"},
    {" zeros zeroslike ", "a literal fills a tensor: y[i] = 0.0"},
    {" ones oneslike full fill ", "a literal fills a tensor: y[i] = 1.0"},
    {" arange range iota ", "an axis is a number, an i64: y[i] = f32(i)"},
    {" for while loop ", "the axes are the loops: y[i] = x[i] is for every i"},
    {" then else ", "a choice is select(c, a, b)"},
    {" cast astype convert staticcast to ", "a cast is written with its type: f32(x)"},
    {" let def auto val ", "every stage names a tensor and its type: t[i]: f32[8] = x[i]"},
    {" return yield ", "the outputs after `->` are what is returned"},
    {" func fn function kernel ", "a computation begins with `workload`"},
    {" mod fmod rem remainder ", "the remainder of integers is x % y, floored"},
    {" isnan ", "a NaN differs from itself: x != x"},
    {" isinf ", "abs(x) == inf"},
    {" and ", "and is written `&&`"},
    {" or ", "or is written `||`"},
    {" not ", "not is written `!`"},
    {" xor ", "of bools it is `!=`"},
    {" pi mpi ", "write the number, 3.141592653589793"},
    {" infinity ", "infinity is written inf"},
    {" none null nil ", "every element has a value"},
    {" random rand randn dropout ", "there are no random numbers; pass them as an input"},
    {" sort argsort topk ", "there is no sort; max, min, argmax and argmin reduce"},
};

constexpr Spelling kTypes[] = {
    {" float float32 fp32 single float32t real ", "f32"},
    {" double float64 fp64 float64t ", "f64"},
    {" half float16 fp16 float16t ", "f16"},
    {" bfloat16 bfloat bfloat16t ", "bf16"},
    {" float8 fp8 f8 e4m3 e4m3fn float8e4m3 float8e4m3fn fp8e4m3 f8e4m3fn ", "f8e4m3"},
    {" e5m2 float8e5m2 fp8e5m2 ", "f8e5m2"},
    {" int int32 int32t signed s32 ", "i32"},
    {" long longlong int64 int64t index sizet s64 ", "i64"},
    {" int8 int8t char s8 ", "i8"},
    {" uint8 uint8t uchar byte ", "u8"},
    {" int16 int16t short s16 ", "i16"},
    {" uint16 uint16t ushort ", "u16"},
    {" uint uint32 uint32t unsigned ", "u32"},
    {" ulong ulonglong uint64 uint64t ", "u64"},
    {" boolean bool1 i1 logical ", "bool"},
};

struct Sign {
  std::string_view text;
  const char* hint;
};
constexpr char kComment[] = "a comment begins with `#`";
constexpr Sign kSigns[] = {
    {"&", "and is written `&&`"},
    {"|", "or is written `||`"},
    {"^", "a power is written pow(x, y)"},
    {"~", "not is written `!`"},
    {"?", "a choice is written select(c, a, b)"},
    {";", "nothing stands between stages"},
    {"@", "a matrix product is a sum: c[i,j] = sum[k:8](a[i,k] * b[k,j])"},
    {".", "a number has digits before its point, as in 0.5; a tensor is read as x[i]"},
    {"'", "the language has no strings"},
    {"\"", "the language has no strings"},
    {"\\", "a line may end anywhere"},
    {"\xef\xbb\xbf", "a byte order mark, which editors hide; save the file without it"},
    {"\xc2\xa0", "a space that does not break; write a plain one"},
    {"\xc3\x97", "a product is written `*`"},
    {"\xc2\xb7", "a product is written `*`"},
    {"\xe2\x88\x92", "a minus is written `-`"},
    {"\xe2\x80\x93", "a minus is written `-`"},
    {"\xc3\xb7", "a quotient is written `/`"},
    {"\xe2\x89\xa4", "written `<=`"},
    {"\xe2\x89\xa5", "written `>=`"},
    {"\xe2\x89\xa0", "written `!=`"},
    {"\xe2\x86\x92", "written `->`"},
    {"\xe2\x88\x9e", "infinity is written inf"},
    {"\xce\xa3", "a sum is written sum[k:8](x[k])"},
    {"\xe2\x88\x91", "a sum is written sum[k:8](x[k])"},
};

struct Pair {
  std::string_view previous, token;
  const char* hint;
};
constexpr Pair kPairs[] = {
    {"*", "*", "a power is written pow(x, y)"},
    {"/", "*", kComment},
    {"&&", "&&", "and is written `&&`"},
    {"+", "=", "a stage is written once; a sum is sum[k:8](x[k])"},
    {"*", "=", "a stage is written once; a product is prod[k:8](x[k])"},
    {"+", "+", "`+` stands between two values"},
    {"]", "[", "all indices stand in one pair of brackets: x[i,j]"},
    {":", "=", "a stage is written y[i] = ..."},
    {"<", "-", "a stage is written y[i] = ..."},
};

std::string Plain(const std::string& word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(word), {{"_", ""}});
}

template <size_t kCount>
const char* Find(const Spelling (&table)[kCount], const std::string& plain) {
  const std::string spaced = absl::StrCat(" ", plain, " ");
  for (const Spelling& spelling : table) {
    if (spelling.words.find(spaced) != std::string_view::npos) return spelling.instead;
  }
  return nullptr;
}

std::string Written(const std::string& word, const std::string& instead) {
  return absl::StrCat("`", word, "` is written ", instead);
}

}  // namespace

std::string SpellingOfName(const std::string& word) {
  const std::string plain = Plain(word);
  if (plain != word && IsReservedWord(plain)) return Written(word, plain);
  if (const char* expression = Find(kExpressions, plain)) return Written(word, expression);
  if (const char* type = Find(kTypes, plain)) return Written(word, type);
  const char* advice = Find(kAdvice, plain);
  return advice == nullptr ? "" : advice;
}

std::string SpellingOfType(const std::string& word) {
  const std::string plain = Plain(word);
  if (plain != word && ParseDType(plain)) return Written(word, plain);
  if (plain == "tf32" || plain == "tensorfloat32") return "tf32(x) rounds an f32, which stays one";
  if (plain == "const") return "only inputs are const";
  if (const char* type = Find(kTypes, plain)) return Written(word, type);
  const bool is_number = absl::StartsWith(plain, "int") || absl::StartsWith(plain, "uint") ||
                         absl::StartsWith(plain, "i1") || absl::StartsWith(plain, "u");
  return is_number ? "the integers have 64, 32, 16 or 8 bits: i64, u64, .. i8, u8" : "";
}

std::string SpellingOfSigns(const std::string& previous, const std::string& token) {
  if (token == "//") return kComment;
  const auto* pair = std::find_if(std::begin(kPairs), std::end(kPairs),
                                  [&](const Pair& p) { return p.previous == previous && p.token == token; });
  return pair == std::end(kPairs) ? "" : pair->hint;
}

std::string SpellingInExpression(const std::string& token) {
  return token == "=" ? "equality is written `==`" : "";
}

std::string SpellingOfSign(const std::string& text) {
  if (absl::StartsWith(text, ".") && text.size() > 1 && absl::ascii_isdigit(text[1]))
    return "a number has digits before its point: 0.5";
  const auto* sign = std::find_if(std::begin(kSigns), std::end(kSigns), [&](const Sign& s) {
    return text.compare(0, s.text.size(), s.text.data(), s.text.size()) == 0;
  });
  return sign == std::end(kSigns) ? "" : sign->hint;
}

std::string SpellingOfNumberTail(const std::string& tail) {
  if (tail == ".") return "a number has digits after its point: 1.0";
  if (tail == "f" || tail == ".f") return "a float without a type takes that of its neighbour, or f32: 1.0";
  if (tail == "L" || tail == "l" || tail == "u" || tail == "U")
    return "an integer without a type takes that of its neighbour, or i64";
  return !tail.empty() && tail[0] == '_' ? "digits stand without `_`" : "";
}

std::vector<std::string> ProposedExpressions() {
  std::vector<std::string> expressions;
  for (const Spelling& spelling : kExpressions) expressions.push_back(spelling.instead);
  return expressions;
}

}  // namespace mycc
