/* What the files that order kernels share: order.c, order_items.c, order_list.c. */
#pragma once
#include "sim/schedule/compiler.h"

typedef VEC(int) Ints;
typedef VEC(HValue *) Values;

/* What a loop begins with that is made of constants: its stacks and sums. Operations of their own make
 * room for each, and fill it; they come in the order as kernels do. */
typedef struct Start {
  const HNode *loop;
  int kernel, slot; /* of the loop; of its state */
  double bytes;
} Start;

/* An operation of the compiler's graph: a kernel, a start, or what names an argument or one of a kernel's
 * several results. */
typedef struct Item {
  Ints users;   /* operations that read what it makes, in the order of the program */
  Ints from;    /* operations that it reads */
  Ints before;  /* others that run first */
  Ints after;   /* operations that it is before */
  Ints buffers; /* that it reads */
  int readers;  /* users, and the program's end */
  double makes; /* bytes */
  bool number;  /* a single one is its result */
  bool outside; /* an argument or a constant */
  /* the list's */
  int wait;   /* of `from` and `before`, those that have not run */
  bool ready; /* all have */
  double
      net; /* its priority, as it was reckoned last: bytes that it frees less those that it makes */
  int since; /* when that was */
  /* depth first */
  double uses; /* users beyond the first, its own and those of all before it */
  double size; /* and bytes */
} Item;

enum { ORDER_LIST, ORDER_DEPTH, ORDER_POST, ORDERS };

typedef struct Order {
  Schedule *p;
  int n;             /* kernels */
  Ints *succ, *pred; /* by kernel */
  int *key;          /* place in the program */
  VEC(Start) starts;
  int all;         /* kernels and starts */
  VEC(Item) items; /* kernels, starts, names */
  int *name;       /* by value: the item that makes or names it; -1: none */
  int n_values;    /* buffers: values, then what an item makes beside them */
  double *bytes;   /* by buffer */
  int *left;       /* by buffer: items that read it, and the program's end */
  Ints ways[ORDERS];
} Order;

/* Made here, not an argument or a constant. */
static inline bool order_own(const Order *o, const HValue *v) {
  return !v->is_param && v->node->comp == o->p->comp;
}

static inline bool order_is_loop(const Kernel *k) {
  return k->roots.n && k->roots.v[0]->kind == H_WHILE;
}

/* Its results are values of their own. */
static inline bool order_of_several(const HNode *n) {
  return n->kind == H_WHILE || n->kind == H_COND || n->n_results > 1;
}

/* What a GPU's library is given to work in counts as if it were a result; libtpu's lists know nothing of it. */
static inline double order_room(const Schedule *p, const Kernel *k) {
  return p->compiler->orders_scratch ? p->compiler->scratch(p, k) : 0;
}

/* order_items.c */
void order_items(Order *o);
void order_items_free(Order *o);
HValue *order_after_loop(const HNode *loop,
                         int slot); /* that state's value then, if anything reads it */

/* order_list.c */
void order_list(Order *o, Ints *out);

/* hide.c: kernels in an order in which exchanges run beside computing, and those beside which gathers do; false: there
 * are none */
bool order_hides(const Order *o, const Ints *order, Ints *out, Ints *carry);
