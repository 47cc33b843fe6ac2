/* Compiled programs in the cache on disk (base/cache.h). An entry's key is the program's bytes and
 * all that its code depends on besides: device, build, machine, settings. What is found is read with
 * the suspicion that any file deserves, and an entry that does not hold is as good as none. */
#include "base/cache.h"
#include "base/wire.h"
#include "dev/dev.h"

static bool make_key(const Dev *d, const DevCompileOpts *opts, Str code, Buf *key) {
  buf_cstr(key, "program\n");
  if (!cache_is_on() || !dev_keeps(d, opts, key)) return false;
  buf_printf(key, "%d\n", opts->auto_spmd);
  buf_str(key, code);
  return true;
}

bool dev_find(Dev *d, Str code, const DevCompileOpts *opts, Buf *note, DevProgram **out) {
  Buf key = {0}, file;
  Str saved;
  bool found = make_key(d, opts, code, &key) && cache_get((Str){key.p, key.n}, &file, &saved);
  buf_free(&key);
  if (!found) return false;
  Wire w = {.in = saved};
  int n = 0;
  wire_count(&w, &n, 1);
  Str kept_note = wire_view(&w, (size_t)n);
  Err *e = w.bad ? err_new(ERR_DATA_LOSS, "cut short") : dev_program_load(d, w.in, opts, out);
  found = !e;
  if (found) buf_str(note, kept_note);
  err_free(e);
  buf_free(&file);
  return found;
}

void dev_keep(DevProgram *p, Str code, Str note) {
  Buf key = {0}, saved = {0};
  Wire w = {.out = &saved};
  int n = (int)note.n;
  wire_count(&w, &n, 1);
  buf_str(&saved, note);
  if (make_key(p->dev, &p->opts, code, &key) && dev_program_save(p, &saved))
    cache_put((Str){key.p, key.n}, (Str){saved.p, saved.n});
  buf_free(&key);
  buf_free(&saved);
}
