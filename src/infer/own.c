/* Runs of train steps of one's own in use: the programs that came beside the step say what the network is. */
#include "infer/infer_priv.h"

Err *own_open(Infer *i, const InferOpts *o, const char *checkpoint, StepProgram *p) {
  AdoptOpts a = {.program = i->info.program,
                 .resume = checkpoint,
                 .eval_program = o->eval_program,
                 .predict_program = o->predict_program};
  Data *d = i->info.data;
  i->field = -1;
  TRY(adopt_open(&a, &i->own));
  i->model = adopt_model(i->own);
  TRY(adopt_bind(i->own, d));
  i->fixed = adopt_predict_batch(i->own);
  if (i->fixed) {
    TRY(adopt_build_predict(i->own, d, NULL, NULL, p));
    i->field = adopt_predict_field(i->own, d);
    i->outputs = type_count(module_main(p->m)->body->last->operands[0]->type) / i->fixed;
    return NULL;
  }
  if (adopt_eval_batch(i->own)) return adopt_build_score(i->own, d, p);
  TrainConfig c = i->info.config;
  return step_build(i->model, &c, d, true, p);
}
