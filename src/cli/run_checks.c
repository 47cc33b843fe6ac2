/* weft run on files that check themselves: several modules, functions without arguments, check.* ops. */
#include "cli/run.h"

#include "dev/dev.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>

static Err *run_function(Dev *dev, const Module *m, const Func *f) {
  if (!strcmp(dev->ops->name, "interp")) {
    int n = f->type->n_results;
    Shards *res = xcalloc((size_t)n, sizeof *res);
    Err *e = interp_run(m, f->name, NULL, NULL, 0, res, n);
    for (int j = 0; j < n; j++) shards_free(&res[j]);
    free(res);
    return e;
  }
  Module *copy = module_clone(m);
  Func *g = module_func(copy, f->name);
  g->name = STR("main");
  DevProgram *p = NULL;
  Err *e = dev_compile(dev, copy, NULL, &p);
  module_free(copy);
  if (e) return e;
  DevBuffer **outs = xcalloc((size_t)p->n_results, sizeof *outs);
  int device = 0;
  DevBuffer *const *args[1] = {NULL};
  DevBuffer **const out_lists[1] = {outs};
  e = dev_execute(p, &(DevPart){1, NULL, &device, NULL}, args, NULL, out_lists, NULL);
  for (int j = 0; j < p->n_results; j++) dev_buffer_release(outs[j]);
  free(outs);
  dev_program_release(p);
  return e;
}

Err *run_checks(const RunArgs *a, Module **modules, int n) {
  Dev *dev = NULL;
  TRY(dev_open(a->device, &dev));
  int ran = 0, failed = 0;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < modules[i]->funcs.n; k++) {
      const Func *f = modules[i]->funcs.v[k];
      bool only_main = module_func(modules[i], STR("main")) && !str_is(f->name, "main");
      if (f->is_private || !f->body || f->type->n_elems || only_main) continue;
      ran++;
      Err *e = run_function(dev, modules[i], f);
      if (!e) continue;
      failed++;
      err_report(err_wrap(e, "@%.*s", STR_ARG(f->name)));
    }
  dev_close(dev);
  if (failed) return err_new(ERR_ABORTED, "%d of %d functions failed", failed, ran);
  printf("%d functions passed\n", ran);
  return NULL;
}

static Err found_check; /* its address says: yes */

static Err *find_check(Op *op, void *arg) {
  (void)arg;
  bool call = op->kind == OP_CUSTOM_CALL && str_starts(op_str(op, "call_target_name"), "check.");
  return call || op_info[op->kind].cls == OC_TEST ? &found_check : NULL;
}

bool run_is_self_checking(Module *const *modules, int n) {
  if (n != 1) return true;
  const Func *f = module_func(modules[0], STR("main"));
  if (f && f->type->n_elems) return false;
  for (int k = 0; k < modules[0]->funcs.n; k++)
    if (modules[0]->funcs.v[k]->body && ir_walk(modules[0]->funcs.v[k]->body, find_check, NULL))
      return true;
  return false;
}
