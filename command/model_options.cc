#include "command/model_options.h"

#include "command/choices.h"

namespace mycc {

void AddModelOptions(CLI::App* app, ModelSource* source) {
  app->add_option(
         "--shape", source->shapes,
         "the shape of a model's input, repeatable: NAME=1x3x48x192, or NAME=scalar; NAME[0]=... for an "
         "element "
         "of a sequence, NAME=empty for a sequence without any, NAME=absent for an optional without a value")
      ->type_name("SHAPE");
  app->add_option(
         "--value", source->values,
         "the value of a model's input, repeatable: NAME=0,2 or NAME=FILE.npy; it becomes a constant, "
         "and is no argument of the library")
      ->type_name("VALUE");
  app->add_option(
         "--dtype", source->dtype,
         "mixed precision of a model: bf16 or f16 where it is safe, sums in f32; its inputs and outputs "
         "keep their types")
      ->check(OneOf({"bf16", "f16"}));
}

}  // namespace mycc
