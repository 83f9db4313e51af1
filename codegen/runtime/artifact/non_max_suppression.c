// NonMaxSuppression: the best boxes of each class that do not overlap a better one too much.
#include "codegen/runtime/artifact/elements.h"

struct Box {
  double top, left, bottom, right;
};

static double Least(double a, double b) { return a < b ? a : b; }
static double Most(double a, double b) { return a > b ? a : b; }

static double FloatAt(const struct MyccTensor* tensor, int64_t place) {
  float value;
  memcpy(&value, (const uint8_t*)tensor->data + place * 4, 4);
  return value;
}

static struct Box BoxAt(const struct MyccTensor* boxes, int64_t row, int is_center) {
  const double a = FloatAt(boxes, row * 4), b = FloatAt(boxes, row * 4 + 1), c = FloatAt(boxes, row * 4 + 2),
               d = FloatAt(boxes, row * 4 + 3);
  if (is_center) return (struct Box){b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return (struct Box){Least(a, c), Least(b, d), Most(a, c), Most(b, d)};
}

static double AreaOf(struct Box box) { return (box.bottom - box.top) * (box.right - box.left); }

static int Overlap(struct Box a, struct Box b, double threshold) {
  const double height = Least(a.bottom, b.bottom) - Most(a.top, b.top);
  const double width = Least(a.right, b.right) - Most(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return 0;
  const double common = height * width, all = AreaOf(a) + AreaOf(b) - common;
  return all > 0 && common / all > threshold;
}

struct Scores {
  const struct MyccTensor* scores;
  int64_t first;  // of the class
};

static int IsBetter(const void* context, int64_t a, int64_t b) {
  const struct Scores* of = context;
  return FloatAt(of->scores, of->first + a) > FloatAt(of->scores, of->first + b);
}

int64_t MyccNonMaxSuppressionWorkspace(const int64_t* attributes, const struct MyccTensor* tensors) {
  (void)attributes;
  return 2 * tensors[1].shape[2] * (int64_t)sizeof(int64_t);
}

void MyccNonMaxSuppression(const int64_t* attributes, const struct MyccTensor* tensors, uint8_t* workspace) {
  const struct MyccTensor *boxes = &tensors[0], *scores = &tensors[1], *rows = &tensors[5];
  const int64_t batches = scores->shape[0], classes = scores->shape[1], count = scores->shape[2];
  const int64_t most = MyccInt64At(&tensors[2], 0), room = rows->shape[0];
  const double overlap = FloatAt(&tensors[3], 0), least = FloatAt(&tensors[4], 0);
  const int is_center = attributes[0] != 0;
  int64_t *order = (int64_t*)workspace, *other = order + count, written = 0;
  for (int64_t c = 0; c < batches * classes; ++c) {
    const struct Scores of = {scores, c * count};
    const int64_t first_box = c / classes * count;
    int64_t candidates = 0, kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (FloatAt(scores, of.first + i) > least) order[candidates++] = i;
    }
    MyccSort(order, other, candidates, IsBetter, &of);
    // The kept ones take the places of those that were looked at.
    for (int64_t i = 0; i < candidates && kept < most && written < room; ++i) {
      const struct Box box = BoxAt(boxes, first_box + order[i], is_center);
      int is_hidden = 0;
      for (int64_t k = 0; k < kept && !is_hidden; ++k)
        is_hidden = Overlap(box, BoxAt(boxes, first_box + order[k], is_center), overlap);
      if (is_hidden) continue;
      const int64_t row[] = {c / classes, c % classes, order[i]};
      for (int64_t k = 0; k < 3; ++k) MyccSetInt64(rows, written * 3 + k, row[k]);
      order[kept++] = order[i];
      ++written;
    }
  }
  MyccClearFrom(rows, written * 3);
  MyccSetInt64(&tensors[6], 0, written);
}
