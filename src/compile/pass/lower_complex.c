/* pass_lower_complex: arithmetic on complex numbers becomes arithmetic on their parts.
 *
 *   z = x * y      re = real(x) real(y) - imag(x) imag(y), im = ..., z = complex(re, im)
 *
 * The parts of a value that was just put together are at hand; those of one that is only moved
 * (broadcast, sliced, reshaped, ...) are the moved parts. What is left of `real` and `imag` reads
 * complex numbers from memory, what is left of `complex` writes them there, and everything between
 * is fused as other arithmetic is. A result that nobody wants whole goes away with pass_simplify.
 *
 * Functions are written in their parts, too (lower_complex_math.c). */
#include <math.h>

#include "compile/pass/pass_priv.h"
#include "compile/pass/lower_complex.h"

typedef struct ComplexLowering {
  Build b;
  Map *rep;   /* value -> what stands for it now */
  Map *parts; /* value -> Pair, made in this region */
  Arena *mem;
} ComplexLowering;

static Pair parts_of(ComplexLowering *p, Value *v);

static Str key_of(Value *const *v) { return (Str){(const char *)v, sizeof *v}; }

static bool is_complex(const Value *v) {
  return v->type->kind == TY_TENSOR && dtype_is_complex(v->type->dtype);
}

static Type *part_type(ComplexLowering *p, const Type *t) {
  return b_type_as(&p->b, t, dtype_real_of(t->dtype));
}

/* ---- parts ---- */

static bool is_move(const Op *op) {
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
  case OP_CONCATENATE:
  case OP_COPY:
  case OP_PAD:
  case OP_RESHAPE:
  case OP_REVERSE:
  case OP_SLICE:
  case OP_TRANSPOSE: return type_is_static(op_type(op)) && op->n_operands <= 8;
  default: return false;
  }
}

static Value *constant_part(ComplexLowering *p, const Value *v, int imag) {
  Tensor *t = value_constant(v), *part = NULL;
  DType r = dtype_real_of(t->dtype);
  int64_t b = dtype_bytes(r), n = t->count;
  const char *from = (const char *)t->data + imag * b;
  if (t->splat) {
    err_free(tensor_splat(r, t->rank, t->dims, from, &part)); /* fails for shapes that t has not */
  } else {
    part = tensor_make(r, t->rank, t->dims);
    for (int64_t i = 0; i < n; i++) memcpy((char *)part->data + i * b, from + 2 * i * b, (size_t)b);
  }
  NamedAttr a = {STR("value"), attr_tensor(p->b.m, part, NULL)};
  Type *type = part_type(p, v->type);
  return &b_op(&p->b, OP_CONSTANT, 0, NULL, 1, &type, 1, &a, 0, NULL)->results[0];
}

static Pair moved_parts(ComplexLowering *p, const Op *op) {
  Value *part[2][8], *out[2];
  for (int i = 0; i < op->n_operands; i++) {
    Pair x = parts_of(p, op->operands[i]);
    part[0][i] = x.re, part[1][i] = x.im;
  }
  Type *t = part_type(p, op_type(op));
  for (int k = 0; k < 2; k++)
    out[k] = &b_op(&p->b, op->kind, op->n_operands, part[k], 1, &t, op->n_attrs, op->attrs, 0, NULL)
                  ->results[0];
  return (Pair){out[0], out[1]};
}

static Value *read_part(ComplexLowering *p, OpKind kind, Value *v) {
  Type *t = part_type(p, v->type);
  return &b_op(&p->b, kind, 1, &v, 1, &t, 0, NULL, 0, NULL)->results[0];
}

static Pair parts_of(ComplexLowering *p, Value *v) {
  Op *def = v->def;
  if (def && def->kind == OP_COMPLEX) return (Pair){def->operands[0], def->operands[1]};
  Pair *known = map_get(p->parts, key_of(&v));
  if (known) return *known;
  Pair x;
  if (def && value_constant(v) && value_constant(v)->data)
    x = (Pair){constant_part(p, v, 0), constant_part(p, v, 1)};
  else if (def && is_move(def)) x = moved_parts(p, def);
  else x = (Pair){read_part(p, OP_REAL, v), read_part(p, OP_IMAG, v)};
  known = ARENA_NEW(p->mem, Pair);
  *known = x;
  map_set(p->parts, key_of(&v), known);
  return x;
}

/* ---- arithmetic ---- */

bool pair_is_real(Pair x) {
  const void *s = value_splat(x.im);
  return s && elem_get_f64(x.im->type->dtype, s) == 0;
}

Pair pair_select(Build *b, Value *pred, Pair yes, Pair no) {
  return (Pair){b_select(b, pred, yes.re, no.re), b_select(b, pred, yes.im, no.im)};
}

Pair pair_multiply(Build *b, Pair x, Pair y) {
  return (Pair){b_sub(b, b_mul(b, x.re, y.re), b_mul(b, x.im, y.im)),
                b_add(b, b_mul(b, x.re, y.im), b_mul(b, x.im, y.re))};
}

static Pair pair_square(Build *b, Pair x) {
  Value *xy = b_mul(b, x.re, x.im);
  return (Pair){b_mul(b, b_sub(b, x.re, x.im), b_add(b, x.re, x.im)), b_add(b, xy, xy)};
}

static Value *is_infinite(Build *b, Value *x) {
  return b_compare(b, "EQ", b_abs(b, x), b_full(b, x->type, INFINITY));
}

static Value *one_if(Build *b, Value *condition, Value *like) { /* with the sign of `like` */
  Value *one = b_convert(b, condition, b_dtype(like));
  return b_select(b, b_compare(b, "LT", like, b_full(b, like->type, 0)), b_neg(b, one), one);
}

/* Smith's way: nothing overflows that need not. A divisor of zero or infinity as in C's Annex G. */
Pair pair_divide(Build *b, Pair x, Pair y) {
  if (pair_is_real(y)) return (Pair){b_div(b, x.re, y.re), b_div(b, x.im, y.re)};
  Value *by_re = b_compare(b, "GE", b_abs(b, y.re), b_abs(b, y.im));
  Value *large = b_select(b, by_re, y.re, y.im), *small = b_select(b, by_re, y.im, y.re);
  Value *p = b_select(b, by_re, x.re, x.im), *q = b_select(b, by_re, x.im, x.re);
  Value *r = b_div(b, small, large), *den = b_add(b, large, b_mul(b, small, r));
  Pair z = {b_div(b, b_add(b, p, b_mul(b, q, r)), den), b_div(b, b_sub(b, q, b_mul(b, p, r)), den)};
  z.im = b_select(b, by_re, z.im, b_neg(b, z.im));
  Value *zero = b_compare(b, "EQ", large, b_full(b, large->type, 0));
  Value *inf_re = is_infinite(b, y.re), *inf_im = is_infinite(b, y.im);
  Value *inf = b_or(b, inf_re, inf_im);
  Value *c = one_if(b, inf_re, y.re), *d = one_if(b, inf_im, y.im);
  Pair far = pair_multiply(b, x, (Pair){c, b_neg(b, d)});
  z.re = b_select(b, inf, b_muls(b, far.re, 0), z.re);
  z.im = b_select(b, inf, b_muls(b, far.im, 0), z.im);
  return (Pair){b_select(b, zero, b_div(b, x.re, y.re), z.re),
                b_select(b, zero, b_div(b, x.im, y.re), z.im)};
}

Value *pair_abs(Build *b, Pair x) {
  Value *re = b_abs(b, x.re), *im = b_abs(b, x.im);
  Value *large = b_max(b, re, im), *r = b_div(b, b_min(b, re, im), large);
  Value *one = b_full(b, large->type, 1);
  Value *size = b_mul(b, large, b_sqrt(b, b_add(b, one, b_mul(b, r, r))));
  Value *as_is = b_or(b, b_compare(b, "EQ", large, b_full(b, large->type, 0)),
                      b_compare(b, "EQ", large, b_full(b, large->type, INFINITY)));
  return b_select(b, as_is, large, size);
}

static Pair sign(Build *b, Pair x) {
  Value *r = pair_abs(b, x), *zero = b_compare(b, "EQ", r, b_full(b, r->type, 0));
  return (Pair){b_select(b, zero, x.re, b_div(b, x.re, r)),
                b_select(b, zero, x.im, b_div(b, x.im, r))};
}

/* The imaginary part of e^x is that of x where it is zero, and both are NaN where it is infinite. */
static Pair exponential(Build *b, Pair x) {
  Value *e = b_exp(b, x.re), *zero = b_compare(b, "EQ", x.im, b_full(b, x.im->type, 0));
  return (Pair){b_mul(b, e, b_cos(b, x.im)), b_select(b, zero, x.im, b_mul(b, e, b_sin(b, x.im)))};
}

/* By real, then by imaginary part; NaN wins. */
static Pair extreme(Build *b, const char *before, Pair x, Pair y) {
  Value *tie = b_and(b, b_compare(b, "EQ", x.re, y.re), b_compare(b, before, y.im, x.im));
  Value *other = b_or(b, b_compare(b, before, y.re, x.re), tie);
  Value *bad_x = b_or(b, b_compare(b, "NE", x.re, x.re), b_compare(b, "NE", x.im, x.im));
  Value *bad_y = b_or(b, b_compare(b, "NE", y.re, y.re), b_compare(b, "NE", y.im, y.im));
  return pair_select(b, b_and(b, b_or(b, other, bad_y), b_not(b, bad_x)), y, x);
}

static Value *compare(ComplexLowering *p, const Op *op, Pair x, Pair y) {
  bool equal = str_is(op_str(op, "comparison_direction"), "EQ");
  const char *how = equal ? "EQ" : "NE";
  Value *re = b_compare(&p->b, how, x.re, y.re), *im = b_compare(&p->b, how, x.im, y.im);
  return equal ? b_and(&p->b, re, im) : b_or(&p->b, re, im);
}

static Pair convert(ComplexLowering *p, Value *x, DType to) {
  DType r = dtype_real_of(to);
  if (!is_complex(x)) {
    Value *re = b_convert(&p->b, x, r);
    return (Pair){re, b_full(&p->b, re->type, 0)};
  }
  Pair z = parts_of(p, x);
  return (Pair){b_convert(&p->b, z.re, r), b_convert(&p->b, z.im, r)};
}

/* A sum of complex numbers is the sums of the parts. */
static bool is_plain_sum(const Op *op) {
  if (op->kind != OP_REDUCE || op->n_results != 1) return false;
  const Op *add = op->regions[0]->first;
  return add && add->kind == OP_ADD && add->next == op->regions[0]->last &&
         add->operands[0] != add->operands[1] && add->next->operands[0] == &add->results[0] &&
         add->operands[0]->region == op->regions[0] && add->operands[1]->region == op->regions[0];
}

static Pair sum(ComplexLowering *p, const Op *op) {
  Pair x = parts_of(p, op->operands[0]), init = parts_of(p, op->operands[1]);
  Type *t = part_type(p, op_type(op));
  Value *in[2][2] = {{x.re, init.re}, {x.im, init.im}}, *out[2];
  for (int k = 0; k < 2; k++) {
    Region *body = b_combiner(&p->b, OP_ADD, t->dtype);
    out[k] = &b_op(&p->b, OP_REDUCE, 2, in[k], 1, &t, op->n_attrs, op->attrs, 1, &body)->results[0];
  }
  return (Pair){out[0], out[1]};
}

/* ---- the walk ---- */

static bool is_expanded(const Op *op) {
  if (op->n_results != 1 || !op->n_operands || op_type(op)->kind != TY_TENSOR) return false;
  bool any = is_complex(&op->results[0]);
  for (int i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->type->kind != TY_TENSOR || !type_is_static(op->operands[i]->type))
      return false;
    any |= is_complex(op->operands[i]);
  }
  if (!any || !type_is_static(op_type(op))) return false;
  switch (op->kind) {
  case OP_ABS:
  case OP_ADD:
  case OP_CHLO_CONJ:
  case OP_CONVERT:
  case OP_DIVIDE:
  case OP_EXPONENTIAL:
  case OP_IMAG:
  case OP_CHLO_SQUARE:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_MULTIPLY:
  case OP_NEGATE:
  case OP_REAL:
  case OP_SELECT:
  case OP_SIGN:
  case OP_SUBTRACT: return true;
  case OP_COMPARE:
    return str_is(op_str(op, "comparison_direction"), "EQ") ||
           str_is(op_str(op, "comparison_direction"), "NE");
  default: return pair_has_function(op->kind) || is_plain_sum(op);
  }
}

/* What stands for the op's result, of complex or of real type. */
static Value *expand(ComplexLowering *p, const Op *op) {
  Build *b = &p->b;
  Value *const *in = op->operands;
  Pair z, x = {0}, y = {0};
  int first = op->kind == OP_SELECT;
  if (is_complex(in[first])) x = parts_of(p, in[first]);
  if (op->n_operands > first + 1 && op->kind != OP_REDUCE) y = parts_of(p, in[first + 1]);
  switch (op->kind) {
  case OP_REAL: return x.re;
  case OP_IMAG: return x.im;
  case OP_ABS: return pair_abs(b, x);
  case OP_COMPARE: return compare(p, op, x, y);
  case OP_ADD: z = (Pair){b_add(b, x.re, y.re), b_add(b, x.im, y.im)}; break;
  case OP_SUBTRACT: z = (Pair){b_sub(b, x.re, y.re), b_sub(b, x.im, y.im)}; break;
  case OP_MULTIPLY: z = pair_multiply(b, x, y); break;
  case OP_DIVIDE: z = pair_divide(b, x, y); break;
  case OP_NEGATE: z = (Pair){b_neg(b, x.re), b_neg(b, x.im)}; break;
  case OP_CHLO_CONJ: z = (Pair){x.re, b_neg(b, x.im)}; break;
  case OP_EXPONENTIAL: z = exponential(b, x); break;
  case OP_SIGN: z = sign(b, x); break;
  case OP_SELECT: z = pair_select(b, in[0], x, y); break;
  case OP_MAXIMUM: z = extreme(b, "GT", x, y); break;
  case OP_MINIMUM: z = extreme(b, "LT", x, y); break;
  case OP_CHLO_SQUARE: z = pair_square(b, x); break;
  case OP_CONVERT:
    z = convert(p, in[0], op_type(op)->dtype);
    if (!is_complex(&op->results[0])) return z.re;
    break;
  case OP_REDUCE: z = sum(p, op); break;
  default: z = pair_function(b, op->kind, x, y); break;
  }
  Type *t = op_type(op);
  return &b_op(b, OP_COMPLEX, 2, (Value *[]){z.re, z.im}, 1, &t, 0, NULL, 0, NULL)->results[0];
}

static void resolve(ComplexLowering *p, Op *op) {
  for (int i = 0; i < op->n_operands; i++) {
    Value *by = map_get(p->rep, key_of(&op->operands[i]));
    if (by) op->operands[i] = by;
  }
}

static bool has_complex(const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++)
      if (is_complex(&op->results[i])) return true;
    for (int i = 0; i < op->n_operands; i++)
      if (is_complex(op->operands[i])) return true;
    for (int i = 0; i < op->n_regions; i++)
      if (has_complex(op->regions[i])) return true;
  }
  return false;
}

/* The bodies of reductions and the like work on scalars and stay as they are. */
static bool has_blocks(const Op *op) {
  return op->kind == OP_WHILE || op->kind == OP_CASE || op->kind == OP_IF ||
         op->kind == OP_MANUAL_COMPUTATION;
}

/* Every op moves to the end of its region, one after another, with its parts before it. */
static void walk(ComplexLowering *p, Region *r, bool blocks) {
  Build outer = p->b;
  Map *parts = p->parts;
  p->parts = map_new();
  p->b.r = r;
  Op *last = r->last;
  for (Op *op = r->first, *next; op; op = next) {
    next = op == last ? NULL : op->next;
    resolve(p, op);
    for (int i = 0; i < op->n_regions; i++) walk(p, op->regions[i], blocks && has_blocks(op));
    p->b.loc = op->loc;
    op_remove(op);
    if (blocks && is_expanded(op)) {
      Value *v = &op->results[0];
      map_set(p->rep, key_of(&v), expand(p, op));
    } else {
      op_append(r, op);
    }
  }
  map_free(p->parts);
  p->parts = parts;
  p->b = outer;
}

Err *pass_lower_complex(Module *m) {
  Region *body = module_main(m)->body;
  if (!has_complex(body)) return NULL;
  ComplexLowering p = {.b = {.m = m}, .rep = map_new(), .mem = arena_new()};
  walk(&p, body, true);
  map_free(p.rep);
  arena_free(p.mem);
  return NULL;
}
