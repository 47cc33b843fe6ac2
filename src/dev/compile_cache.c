/* Compiled programs in the cache on disk (base/cache.h). An entry's key is the program's bytes and
 * all that its code depends on besides: device, build, machine, settings. What is found is read with
 * the suspicion that any file deserves, and an entry that does not hold is as good as none. */
#include "base/cache.h"
#include "base/wire.h"
#include "dev/dev.h"

/* copies: replicas, of which only programs are kept that exchange nothing. */
static bool make_key(const Dev *d, const DevCompileOpts *opts, int copies, Str code, Buf *key) {
  buf_cstr(key, "program\n");
  if (!cache_is_on() || !dev_cache_key(d, opts, key)) return false;
  buf_printf(key, "%d %d %d\n", opts->auto_spmd, copies, opts->round_each);
  buf_str(key, code);
  return true;
}

bool dev_cache_get(Dev *d, Str code, const DevCompileOpts *opts, Buf *note, DevProgram **out) {
  Buf key = {0}, file;
  Str saved;
  bool found = make_key(d, opts, opts->replicas, code, &key) &&
               cache_get((Str){key.p, key.n}, &file, &saved);
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

/* An entry that waits for its code takes memory meanwhile, as much as the program's bytes: one with large
 * constants is not kept. */
#define MOST_LATE (1 << 20)

static bool put(DevProgram *p, Str key, Str note) {
  Buf saved = {0};
  Wire w = {.out = &saved};
  int n = (int)note.n;
  wire_count(&w, &n, 1);
  buf_str(&saved, note);
  bool ok = dev_program_save(p, &saved);
  if (ok) cache_put(key, (Str){saved.p, saved.n});
  buf_free(&saved);
  return ok;
}

void dev_cache_put(DevProgram *p, Str code, Str note) {
  Buf key = {0};
  bool keeps = p->opts.replicas == 1 && make_key(p->dev, &p->opts, p->copies, code, &key);
  p->opts.keep = keeps && !put(p, (Str){key.p, key.n}, note) && key.n <= MOST_LATE;
  if (p->opts.keep) {
    p->cache_key = key;
    buf_str(&p->cache_note, note);
  } else {
    buf_free(&key);
  }
}

void dev_cache_complete(DevProgram *p) {
  if (!p->cache_key.n) return;
  put(p, (Str){p->cache_key.p, p->cache_key.n}, (Str){p->cache_note.p, p->cache_note.n});
  buf_free(&p->cache_key);
  buf_free(&p->cache_note);
}
