/* What exports of all networks write: files of a folder, the network as StableHLO, what goes in and what comes out. */
#include "infer/infer_priv.h"

#include "stablehlo/stablehlo.h"

#include <stdlib.h>

Err *export_put(const char *folder, const char *name, const void *p, size_t n) {
  char *path = xasprintf("%s/%s", folder, name);
  Err *e = file_write(path, p, n);
  free(path);
  return e;
}

static void put_input(Buf *b, const Field *f, int64_t batch) {
  buf_printf(b, "{\"name\": \"%s\", \"type\": \"%s\", \"shape\": [%lld", f->name,
             dtype_name(f->type), (long long)batch);
  for (int k = 0; k < f->rank; k++) buf_printf(b, ", %lld", (long long)f->dims[k]);
  buf_cstr(b, "]}");
}

/* At most n lines as a list; text NULL: null. */
static void put_lines(Buf *b, const char *name, const char *text, int64_t n) {
  buf_printf(b, ",\n  \"%s\": %s", name, text ? "[" : "null");
  if (!text) return;
  for (int64_t i = 0; i < n; i++) {
    char *line = xstrndup(text, strcspn(text, "\n"));
    if (i) buf_cstr(b, ", ");
    buf_json_str(b, line);
    free(line);
    text += strcspn(text, "\n");
    if (!*text++) break;
  }
  buf_byte(b, ']');
}

/* What goes in and what comes out, for people and programs; `inputs` where there are several. */
static Err *write_description(const Infer *i, const char *to, const Type *answer) {
  const Data *d = i->info.data;
  const Field *f = infer_field(i);
  int64_t batch = answer->dims[0];
  Buf b = {0};
  buf_cstr(&b, "{\n  \"model\": ");
  buf_json_str(&b, i->info.model);
  buf_printf(&b, ",\n  \"weights\": %lld,\n  \"input\": ", (long long)i->elements);
  put_input(&b, f, batch);
  int inputs = i->model ? MAX(1, i->model->inputs) : 1;
  for (int k = 0; inputs > 1 && k < inputs; k++) {
    buf_cstr(&b, k ? ", " : ",\n  \"inputs\": [");
    put_input(&b, &d->fields[k], batch);
  }
  if (inputs > 1) buf_byte(&b, ']');
  buf_printf(&b, ",\n  \"output\": {\"type\": \"f32\", \"shape\": [%lld", (long long)batch);
  for (int k = 1; k < answer->rank; k++) buf_printf(&b, ", %lld", (long long)answer->dims[k]);
  buf_printf(&b, "]},\n  \"classes\": %lld", (long long)d->classes);
  data_channels_json(d, &b);
  put_lines(&b, "labels", d->labels, INT64_MAX);
  if (d->column_names) put_lines(&b, "columns", d->column_names, d->fields[0].dims[0]);
  buf_cstr(&b, "\n}\n");
  Err *e = export_put(to, "export.json", b.p, b.n);
  buf_free(&b);
  return e;
}

Err *export_program(const Infer *i, const char *to, const Module *m) {
  Buf code = {0};
  Err *e = stablehlo_write_bytecode(&code, m, NULL);
  if (!e) e = export_put(to, "forward.mlirbc", code.p, code.n);
  buf_free(&code);
  return e ? e : write_description(i, to, module_main(m)->body->last->operands[0]->type);
}
