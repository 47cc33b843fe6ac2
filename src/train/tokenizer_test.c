/* Tokenizers against what the `tokenizers` package makes of the same texts with the same files
 * (tests/train/tokens/make.py), and what is wrong with files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "base/test_folder.h"
#include "train/train.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-tokens-XXXXXX";

static char *in_folder(const char *name) { return xasprintf("%s/%s", folder, name); }

static const char tokens_folder[] = WEFT_SOURCE_DIR "/tests/train/tokens";

static Buf read_golden(const char *name) {
  Buf b = {0};
  char *path = xasprintf("%s/%s", tokens_folder, name);
  ok(file_read(path, &b));
  free(path);
  return b;
}

/* All cases with one tokenizer, against the list of that name in ids.json. */
static void check_cases(const char *path, const cJSON *want, Str cases) {
  static const char between[] = "\n====\n";
  char *full = xasprintf("%s/%s", tokens_folder, path);
  Tokenizer *t;
  ok(tokenizer_open(full, &t));
  const cJSON *list;
  int n = 0;
  cJSON_ArrayForEach(list, want) {
    const char *end = memmem(cases.p, cases.n, between, sizeof between - 1);
    Str text = {cases.p, end ? (size_t)(end - cases.p) : cases.n};
    IdVec ids = {0};
    tokenizer_encode(t, text, &ids);
    bool same = ids.n == cJSON_GetArraySize(list);
    for (int i = 0; i < ids.n && same; i++)
      same = ids.v[i] == cJSON_GetArrayItem(list, i)->valueint;
    if (!same) {
      fprintf(stderr, "%s, case %d '%.*s':", path, n, STR_ARG(text));
      for (int i = 0; i < ids.n; i++) fprintf(stderr, " %d", ids.v[i]);
      fprintf(stderr, "\n");
    }
    assert_true(same);
    vec_free(&ids);
    size_t used = text.n + (end ? sizeof between - 1 : 0);
    cases = (Str){cases.p + used, cases.n - used};
    n++;
  }
  assert_int_equal(cases.n, 0);
  tokenizer_close(t);
  free(full);
}

static void as_the_package(void **state) {
  (void)state;
  static const char *const kinds[][2] = {{"uncased/tokenizer.json", "uncased"},
                                         {"uncased/vocab.txt", "uncased"},
                                         {"cased/tokenizer.json", "cased"},
                                         {"cased/vocab.txt", "cased"},
                                         {"accents", "accents"},
                                         {"gpt2/tokenizer.json", "gpt2"},
                                         {"gpt2", "gpt2"}};
  Buf json = read_golden("ids.json"), cases = read_golden("cases.txt");
  cJSON *ids = cJSON_ParseWithLength(json.p, json.n);
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    const cJSON *want = cJSON_GetObjectItem(ids, kinds[i][1]);
    assert_true(cJSON_GetArraySize(want) > 15);
    check_cases(kinds[i][0], want, (Str){cases.p, cases.n});
  }
  cJSON_Delete(ids);
  buf_free(&json);
  buf_free(&cases);
}

static void marks_and_pieces(void **state) {
  (void)state;
  char *path = xasprintf("%s/uncased", tokens_folder);
  Tokenizer *t;
  ok(tokenizer_open(path, &t));
  TokenMarks m = tokenizer_marks(t);
  assert_true(m.there);
  assert_int_equal(m.pad, 0);
  assert_int_equal(m.begin, 2);
  assert_int_equal(m.end, 3);
  assert_int_equal(m.mask, 4);
  assert_string_equal(tokenizer_kind(t), "wordpiece");
  Buf b = {0};
  tokenizer_decode(t, 4, &b);
  tokenizer_decode(t, -1, &b);
  tokenizer_decode(t, tokenizer_size(t), &b);
  assert_string_equal(b.p, "[MASK]");
  buf_free(&b);
  tokenizer_close(t);
  free(path);
}

/* tokenizer_config.json beside a vocabulary says whether case counts; a copy keeps it. */
static void settings_beside(void **state) {
  (void)state;
  static const char vocab[] = "[UNK]\r\nweft\r\nWeft\r\n##s\r\n",
                    config[] = "{\"do_lower_case\": true}";
  char *words = in_folder("vocab.txt"), *config_file = in_folder("tokenizer_config.json");
  for (int lower = 0; lower < 2; lower++) {
    ok(file_write(words, vocab, sizeof vocab - 1));
    if (lower) ok(file_write(config_file, config, sizeof config - 1));
    char *copy = in_folder("copy");
    mkdir(copy, 0777);
    ok(tokenizer_copy(lower ? words : folder, copy));
    Tokenizer *t;
    ok(tokenizer_open(copy, &t));
    IdVec ids = {0};
    tokenizer_encode(t, STR("Wefts"), &ids);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.v[0], lower ? 1 : 2);
    assert_int_equal(ids.v[1], 3);
    assert_false(tokenizer_marks(t).there);
    vec_free(&ids);
    tokenizer_close(t);
    free(copy);
  }
  free(words);
  free(config_file);
}

static void refuses(const char *name, const char *bytes, ErrCode code, const char *words) {
  char *path = in_folder(name);
  Tokenizer *t;
  ok(file_write(path, bytes, strlen(bytes)));
  Err *e = tokenizer_open(path, &t);
  assert_non_null(e);
  assert_int_equal(e->code, code);
  if (!strstr(e->msg, words)) fail_msg("'%s' does not say '%s'", e->msg, words);
  err_free(e);
  free(path);
}

static void wrong_files(void **state) {
  (void)state;
  refuses("a.txt", "the\nof\n", ERR_DATA_LOSS, "has no token [UNK]");
  refuses("a.json", "[1]", ERR_DATA_LOSS, "not a JSON object");
  refuses("a.json", "{\"model\": {\"type\": \"Unigram\"}}", ERR_UNIMPLEMENTED, "'Unigram'");
  refuses("a.json", "{\"model\": {\"type\": \"WordPiece\"}}", ERR_UNIMPLEMENTED, "normalizer");
  refuses("a.json",
          "{\"model\": {\"type\": \"BPE\"}, \"pre_tokenizer\": {\"type\": \"Metaspace\"}}",
          ERR_UNIMPLEMENTED, "Metaspace");
  refuses("a.json",
          "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}}, "
          "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}}",
          ERR_DATA_LOSS, "token 'a' has no number");
  char *none = in_folder("nothing-there"), *empty = in_folder("empty");
  Tokenizer *t;
  Err *e = tokenizer_open(none, &t);
  assert_int_equal(e->code, ERR_NOT_FOUND);
  err_free(e);
  mkdir(empty, 0777);
  e = tokenizer_open(empty, &t);
  assert_int_equal(e->code, ERR_NOT_FOUND);
  assert_non_null(strstr(e->hint, "vocab.txt"));
  err_free(e);
  free(none);
  free(empty);
}

static int open_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static void remove_one(const char *path, void *arg) {
  (void)arg;
  test_each_file(path, remove_one, NULL);
  remove(path);
}

static int remove_folder(void **state) {
  (void)state;
  remove_one(folder, NULL);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_the_package), cmocka_unit_test(marks_and_pieces),
      cmocka_unit_test(settings_beside), cmocka_unit_test(wrong_files)};
  return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
