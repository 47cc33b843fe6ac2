/* Pretty forms by table, one line for each operation whose form is more than its operands and
 * types. The same table drives the writer (text_write.c). Forms that need more than this are in
 * text_special.c.
 *
 *   $         all operands, separated by commas
 *   {name}    an attribute, spelled by its kind: 3, true, KEYWORD, "text", [1, 0], @symbol,
 * dense<..> : T
 *   ?( ... )  only when the attribute inside is there
 *   others    literally; a blank stands for any blanks
 * After the form come `{attributes}` left over, then the types (SigMode).
 */
#include "stablehlo/text_priv.h"

#include <ctype.h>
#include <stdlib.h>

static const Form forms[] = {
    {OP_IOTA, "dim = {iota_dimension}", TS_RESULT},
    {OP_DYNAMIC_IOTA, "$, dim = {iota_dimension}", TS_FUNC},
    {OP_COMPARE, "{comparison_direction}, $?(, {compare_type})", TS_FUNC},
    {OP_COMPLEX, "$", TS_RESULT},
    {OP_TUPLE, "$", TS_RESULT},
    {OP_SELECT, "$", TS_SELECT},
    {OP_CONCATENATE, "$, dim = {dimension}", TS_FUNC},
    {OP_BROADCAST_IN_DIM, "$, dims = {broadcast_dimensions}", TS_FUNC},
    {OP_DYNAMIC_BROADCAST_IN_DIM, "$, dims = {broadcast_dimensions}", TS_FUNC},
    {OP_BROADCAST, "$, sizes = {broadcast_sizes}", TS_FUNC},
    {OP_TRANSPOSE, "$, dims = {permutation}", TS_FUNC},
    {OP_REVERSE, "$, dims = {dimensions}", TS_SAME},
    {OP_DYNAMIC_SLICE, "$, sizes = {slice_sizes}", TS_FUNC},
    {OP_PAD,
     "$, low = {edge_padding_low}, high = {edge_padding_high}, interior = {interior_padding}",
     TS_FUNC},
    {OP_DOT, "$?(, precision = {precision_config})", TS_FUNC},
    {OP_FFT, "$, type = {fft_type}, length = {fft_length}", TS_FUNC},
    {OP_CHOLESKY, "$?(, lower = {lower})", TS_SAME},
    {OP_CLAMP, "$", TS_SAME},
    {OP_EINSUM, "$, config = {einsum_config}", TS_FUNC},
    {OP_UNARY_EINSUM, "$, config = {einsum_config}", TS_FUNC},
    {OP_RNG, "$, distribution = {rng_distribution}", TS_FUNC},
    {OP_RNG_BIT_GENERATOR, "$, algorithm = {rng_algorithm}", TS_FUNC},
    {OP_GET_DIMENSION_SIZE, "$, dim = {dimension}", TS_FUNC},
    {OP_SET_DIMENSION_SIZE, "$, dim = {dimension}", TS_FUNC},
    {OP_GET_TUPLE_ELEMENT, "$[{index}]", TS_FUNC},
    {OP_OPTIMIZATION_BARRIER, "$", TS_PAIRS},
    {OP_RETURN, "$", TS_OPERANDS},
    {OP_AFTER_ALL, "$", TS_SAME},
    {OP_CONVERT, "$", TS_SAME},
    {OP_COPY, "$", TS_SAME},
    {OP_REAL, "$", TS_FUNC},
    {OP_IMAG, "$", TS_FUNC},
    {OP_IS_FINITE, "$", TS_FUNC},
    {OP_COMPOSITE, "{name} $", TS_FUNC}, /* regions may follow the operands */
    {OP_CHECK_EXPECT_EQ_CONST, "$, {value}", TS_NONE},
    {OP_CHECK_EXPECT_ALMOST_EQ_CONST, "$, {value}?(, tolerance = {tolerance})", TS_NONE},
    {OP_CHECK_EXPECT_EQ, "$", TS_FIRST},
    {OP_CHECK_EXPECT_ALMOST_EQ, "$?(, tolerance = {tolerance})", TS_FIRST},
    {OP_CHECK_EXPECT_CLOSE,
     "$?(, max_ulp_difference = {max_ulp_difference})?(, min_ulp_difference = "
     "{min_ulp_difference})",
     TS_OPERANDS},
    {OP_CHECK_EXPECT_SERIALIZED_EQ, "$, probe_id = {probe_id}?(, iter = {iteration})", TS_FIRST},
    {OP_INTERPRETER_PROBE, "$, probe_id = {probe_id}", TS_FIRST},
    {OP_INTERPRETER_PRINT, "$", TS_FIRST},
    {OP_RESHARD, "$ {sharding}", TS_RESULT},
    {OP_SHARDING_CONSTRAINT, "$ {sharding}", TS_RESULT},
    {OP_SHARDING_GROUP, "$ group_id={group_id}", TS_FIRST},
    {OP_PROPAGATION_BARRIER, "$ allowed_direction={allowed_direction}", TS_RESULT},
};

static const Form plain = {OP_UNKNOWN, "$", TS_FUNC}, plain_same = {OP_UNKNOWN, "$", TS_SAME};
static const Form plain_chlo = {OP_UNKNOWN, "$", TS_ARROW};

const Form *text_form_of(OpKind k) {
  static const char *const generic_only[] = {"stablehlo.all_gather",
                                             "stablehlo.all_to_all",
                                             "stablehlo.collective_broadcast",
                                             "stablehlo.collective_permute",
                                             "stablehlo.cross-replica-sum",
                                             "stablehlo.gather",
                                             "stablehlo.dynamic_gather",
                                             "stablehlo.dynamic_conv",
                                             "stablehlo.infeed",
                                             "stablehlo.outfeed",
                                             "stablehlo.send",
                                             "stablehlo.recv",
                                             "stablehlo.batch_norm_grad",
                                             "stablehlo.batch_norm_inference",
                                             "stablehlo.batch_norm_training",
                                             "stablehlo.torch_index_select",
                                             "stablehlo.triangular_solve",
                                             "stablehlo.async_start",
                                             "stablehlo.async_done",
                                             "chlo.ragged_dot",
                                             "interpreter.run_parallel"};
  for (int i = 0; i < COUNT_OF(forms); i++)
    if (forms[i].kind == k) return &forms[i];
  if (k == OP_UNKNOWN || op_info[k].regions != 0) return NULL;
  for (int i = 0; i < COUNT_OF(generic_only); i++)
    if (!strcmp(op_info[k].name, generic_only[i])) return NULL;
  if (!strncmp(op_info[k].name, "chlo.", 5)) return &plain_chlo;
  return op_info[k].cls == OC_EWISE || op_info[k].operands == 0 ? &plain_same : &plain;
}

/* ---- reading ---- */

static Err *keyword(Text *t, Attr **out) {
  if (!text_is(t, T_ID)) return text_expected(t, "a keyword");
  *out = attr_enum(t->m, t->s);
  text_next(t);
  return NULL;
}

static Err *keyword_list(Text *t, Attr **out) {
  AttrList v = {0};
  Err *e = text_want(t, '[', "'[' and keywords");
  if (!e && !text_is(t, ']')) do {
      Attr *a = NULL;
      e = keyword(t, &a);
      *vec_push(&v) = a;
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  if (!e) *out = attr_array(t->m, v.n, v.v);
  vec_free(&v);
  return e;
}

static Err *form_attr(Text *t, OpDraft *d, Str name) {
  const AttrSpec *s = op_attr_spec(d->kind, name);
  assert(s);
  Attr *a = NULL;
  int64_t i;
  bool b;
  Str str;
  switch (s->kind) {
  case SK_I64:
  case SK_I32:
    TRY(text_int(t, &i));
    a = attr_int(t->m, DT_I64, i);
    break;
  case SK_BOOL:
    TRY(text_bool(t, &b));
    a = attr_bool(t->m, b);
    break;
  case SK_ENUM: TRY(keyword(t, &a)); break;
  case SK_STR:
    TRY(text_string(t, &str));
    a = attr_string(t->m, str);
    break;
  case SK_INTS: {
    Ints v = {0};
    Err *e = text_int_list(t, &v);
    if (!e) a = attr_ints(t->m, DT_I64, v.n, v.v);
    vec_free(&v);
    if (e) return e;
    break;
  }
  default:
    if (str_is(name, "precision_config")) TRY(keyword_list(t, &a));
    else if (str_is(name, "sharding") && text_is(t, '<')) TRY(text_sharding(t, &a));
    else if (str_is(name, "tolerance")) {
      double v;
      TRY(text_number(t, &v));
      a = attr_float(t->m, DT_F64, v);
    } else if (str_is(name, "iteration")) {
      TRY(text_int(t, &i));
      a = attr_int(t->m, DT_U32, i);
    } else if (str_is(name, "allowed_direction") && text_is(t, T_ID)) TRY(keyword(t, &a));
    else TRY(text_attr(t, &a));
  }
  *vec_push(&d->attrs) = (NamedAttr){s->name, a};
  return NULL;
}

/* Does the optional group `g` (from after "?(") come next? Its first token is a comma, then a word
 * or an attribute. */
static bool group_next(Text *t, const char *g) {
  if (!text_is(t, ',')) return false;
  g++;
  while (*g == ' ') g++;
  if (*g == '{') return true;
  size_t n = 0;
  while (isalpha((unsigned char)g[n]) || g[n] == '_') n++;
  Text copy = *t; /* a look ahead; nothing is allocated */
  text_next(&copy);
  return copy.tok == T_ID && copy.s.n == n && !memcmp(copy.s.p, g, n);
}

static Err *read_form(Text *t, OpDraft *d, const char *f) {
  while (*f) {
    if (*f == ' ' || *f == ')') {
      f++;
    } else if (*f == '$') {
      if (text_is(t, T_VALUE)) TRY(text_operands(t, &d->operands));
      f++;
    } else if (*f == '{') {
      const char *end = strchr(f, '}');
      TRY(form_attr(t, d, (Str){f + 1, (size_t)(end - f - 1)}));
      f = end + 1;
    } else if (*f == '?' && f[1] == '(') {
      if (group_next(t, f + 2)) f += 2;
      else f = strchr(f, ')') + 1;
    } else if (isalpha((unsigned char)*f)) {
      char word[40];
      size_t n = 0;
      while (isalpha((unsigned char)*f) || *f == '_') word[n++] = *f++;
      word[n] = 0;
      TRY(text_want_word(t, word));
    } else {
      char what[4] = {'\'', *f, '\'', 0};
      TRY(text_want(t, *f, what));
      f++;
    }
  }
  return NULL;
}

Err *text_form_read(Text *t, OpDraft *d) {
  /* `stablehlo.add(%a, %b) : ...` does not exist, but any op may be generic without quotes: name()
   * <{..}> : () -> T */
  bool known = false;
  TRY(text_special_read(t, d, &known));
  if (known) return NULL;
  const Form *f = text_form_of(d->kind);
  if (!f && d->kind != OP_UNKNOWN)
    return text_err_at(t, d->at, "'%.*s' has no short form; write \"%.*s\"(...)", STR_ARG(d->name),
                       STR_ARG(d->name));
  if (d->kind == OP_OPTIMIZATION_BARRIER || d->kind == OP_RETURN) {
    if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
    if (text_is(t, '(')) { /* no operands */
      text_next(t);
      TRY(text_want(t, ')', "')'"));
      if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
      d->typed = true;
      return NULL;
    }
  }
  TRY(read_form(t, d, f ? f->form : "$"));
  if (d->kind == OP_COMPOSITE && text_is(t, '(')) TRY(text_generic_regions(t, d));
  if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
  TypeStyle mode = f ? f->types : TS_FUNC;
  if (mode == TS_NONE) return NULL;
  if (d->operands.n == 0 && !text_is(t, ':') &&
      (d->kind == OP_RETURN || d->kind == OP_OPTIMIZATION_BARRIER))
    return NULL;
  TRY(text_want(t, ':', "':' and types"));
  Sig s = {0};
  Err *e = text_signature(t, &s);
  if (!e) e = text_apply_signature(t, d, &s, mode);
  text_sig_free(&s);
  return e;
}
