// Emits tanh and erf under AVX-512: odd functions, each a polynomial for each of 16 ranges of |x|; a
// permutation selects every lane's coefficients. It needs half of the instructions of one formula for all x,
// and no division.
#include "codegen/llvm/builder.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

constexpr int kPieces = 16;
using Row = float[kPieces];

// Coefficients fitted for this file to the smallest relative error, and rounded to float one after the other,
// from the constant up. Each row has one coefficient of all pieces. A piece is half an octave; the last bits
// of the exponent and the leading bit of the mantissa, four bits together, number it. 0 to 2^-4 * 1.5 is one
// piece.
constexpr Row kTanhCenters = {
    2.5, 3.5, 5, 7, 10, 14, 0, 0.109375, 0.15625, 0.21875, 0.3125, 0.4375, 0.625, 0.875, 1.25, 1.75,
};
constexpr Row kTanh[] = {
    {0.986614287, 0.998177886, 0.999909222, 0.999998331, 1, 1, 0, 0.108940929, 0.154990733, 0.215326339,
     0.302709728, 0.411570042, 0.554599702, 0.703905582, 0.848283648, 0.941375554},
    {0.0265922491, 0.00364088453, 0.00018183238, 3.32911895e-06, -6.41791731e-09, 0, 1, 0.988131881,
     0.975977898, 0.95363456, 0.908366621, 0.830610037, 0.692419112, 0.5045169, 0.280414879, 0.113812},
    {-0.0262358598, -0.00363384234, -0.000181846277, -3.2351038e-06, -2.4316348e-08, 0, 7.45113979e-08,
     -0.107627541, -0.151281863, -0.20533815, -0.274969459, -0.341829836, -0.384002656, -0.355123073,
     -0.237872258, -0.1071444},
    {0.0170185622, 0.00241286424, 0.000118911237, 2.17585034e-06, 1.56664068e-08, 0, -0.333340436,
     -0.317634404, -0.301873058, -0.273593277, -0.21933569, -0.136150226, -0.0178193431, 0.0818110928,
     0.108318672, 0.062931098},
    {-0.0080529172, -0.00120081252, -5.94330377e-05, -1.34681693e-06, 0, 0, 0.000200649592, 0, 0.10903094,
     0.123309523, 0.15733844, 0.164160892, 0.136702046, 0.0604111031, -0.0125616798, -0.0233287718},
    {0.00288417679, 0.000486763922, 2.84191337e-05, 5.26669737e-07, 0, 0, 0.131441206, 0, 0, 0, 0, 0,
     -0.0554127954, -0.058977548, -0.0196014978, 0.00344519992},
    {-0.000694267219, -0.00015026897, -9.43712894e-06, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0149183925, 0},
};
// The same around multiples of 1/4.
constexpr Row kErf[] = {
    {0, 0.276326388, 0.520499885, 0.711155653, 0.842700779, 0.92290014, 0.966105163, 0.986671686, 0.995322287,
     0.998537302, 0.999593019, 0.999899387, 0.999977887, 0.999995708, 0.999999285, 0.999999881},
    {1.12837923, 1.06001425, 0.87878263, 0.642931104, 0.415107489, 0.236521125, 0.118930288, 0.0527747273,
     0.0206669867, 0.00714231934, 0.00217828457, 0.000586223148, 0.000139253025, 2.91890574e-05,
     5.39942857e-06, 8.81430083e-07},
    {-1.47056608e-05, -0.264999002, -0.439388394, -0.482204497, -0.41510123, -0.29565981, -0.178406045,
     -0.0923600793, -0.0413452014, -0.0160792824, -0.00543893175, -0.00161373394, -0.000407160231,
     -9.99321055e-05, -2.35079315e-05, -2.83080612e-06},
    {-0.375545591, -0.309197575, -0.146480411, 0.0267741289, 0.138371021, 0.167533964, 0.138752207,
     0.0902672932, 0.0482229702, 0.0217245333, 0.00843150821, 0.0028021317, 0.00079789036, 0.000198571652,
     4.35923394e-05, 8.26078031e-06},
    {-0.00732014887, 0.126092881, 0.182125643, 0.150661871, 0.0688556731, -0.00529104751, -0.0436196998,
     -0.0477782227, -0.0337203033, -0.0185497478, -0.00898320135, -0.0032278765, -0.00167511031, 0, 0, 0},
    {0.141333446, 0.081125468, 0.00833303388, -0.0520880148, -0.0690579116, -0.0470042415, -0.0149381813, 0,
     0.0130323926, 0.0106476638, 0, 0, 0, 0, 0, 0},
};

// The coefficient selected by the last four bits of `piece`.
Value* Coefficient(Builder& b, const Row& row, Value* piece) {
  Value* table = llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef<float>(row));
  return b.CreateIntrinsic(intrinsic::x86_avx512_permvar_sf_512, {}, {table, piece});
}

// The polynomial in x whose coefficients `piece` selects from the rows, that of the lowest power first.
Value* PolynomialOfPiece(Builder& b, llvm::ArrayRef<Row> rows, Value* piece, Value* x) {
  Value* sum = Coefficient(b, rows.back(), piece);
  for (const Row& row : llvm::reverse(rows.drop_back())) sum = b.MulAdd(sum, x, Coefficient(b, row, piece));
  return sum;
}

Value* TanhByPieces(Builder& b, Value* magnitude) {
  constexpr uint32_t kLeast = 0x3d800000;  // 2^-4
  constexpr int kHalfOctave = 22;
  Value* bounded = b.AtMost(magnitude, 10);
  Value* bits = b.AsInt(bounded);
  bits = b.CreateBinaryIntrinsic(intrinsic::umax, bits, Int(bits, kLeast));
  Value* piece = b.CreateLShr(bits, kHalfOctave);
  return PolynomialOfPiece(b, kTanh, piece, b.CreateFSub(bounded, Coefficient(b, kTanhCenters, piece)));
}

Value* ErfByPieces(Builder& b, Value* magnitude) {
  // 1.5 * 2^21: adding it leaves the nearest multiple of 1/4 in a float's low bits.
  llvm::Constant* magic = Float(magnitude, 3145728.0);
  // Larger arguments are limited to the last piece, which ends at 3.875: beyond it only rounding is left.
  Value* bounded = b.AtMost(magnitude, 3.874);
  Value* shifted = b.CreateFAdd(bounded, magic);
  Value* center = b.CreateFSub(shifted, magic);
  return PolynomialOfPiece(b, kErf, b.AsInt(shifted), b.CreateFSub(bounded, center));
}

// The value in the first lanes of a vector of kPieces lanes.
Value* Widened(Builder& b, Value* x) {
  const int lanes = LanesOf(x);
  if (lanes == 1 || lanes == kPieces) return b.Splat(x, kPieces);
  llvm::SmallVector<int, kPieces> from;
  for (int lane = 0; lane < kPieces; ++lane) from.push_back(lane % lanes);
  return b.CreateShuffleVector(x, from);
}

// Its first lanes.
Value* Narrowed(Builder& b, Value* wide, int lanes) {
  if (lanes == 1) return b.CreateExtractElement(wide, uint64_t{0});
  return lanes == kPieces ? wide : b.CreateShuffleVector(wide, llvm::to_vector(llvm::seq(0, lanes)));
}

}  // namespace

Value* Builder::FunctionByPieces(Op op, Value* x) {
  if (!features.avx512f || (op != Op::kTanh && op != Op::kErf) || LanesOf(x) > kPieces) return nullptr;
  Value* magnitude = Widened(*this, Abs(x));
  Value* result = op == Op::kTanh ? TanhByPieces(*this, magnitude) : ErfByPieces(*this, magnitude);
  return CreateCopySign(Narrowed(*this, result, LanesOf(x)), x);
}

}  // namespace mycc
