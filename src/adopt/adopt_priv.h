/* Private to adopt. */
#ifndef WEFT_ADOPT_ADOPT_PRIV_H
#define WEFT_ADOPT_ADOPT_PRIV_H

#include "adopt/adopt.h"
#include "base/npy.h"
#include "base/path.h"

typedef enum Role { ROLE_NONE, ROLE_STATE, ROLE_BATCH, ROLE_FIXED } Role;

typedef struct AdoptArg {
  char *name; /* "params['w']", "arg3" */
  char *path; /* "params/w"; "" when it has no name of its own */
  const Type *type;
  Role role;
  int result;  /* ROLE_STATE: its next value */
  int field;   /* ROLE_BATCH: of the data; -1: not bound */
  char *wants; /* ROLE_BATCH: name of the field that was asked for, or NULL */
  bool set;    /* not ROLE_BATCH: --set gives it `value` */
  double value;
  int alias; /* result that aliases it; -1: none */
  bool donated;
} AdoptArg;

typedef struct AdoptResult {
  char *name, *path;
  const Type *type;
  bool taken; /* by a state argument, or as a metric */
} AdoptResult;

struct Adopted {
  Model model; /* first: a Model * is an Adopted * */
  Module *m;
  Func *f;
  Buf bytes; /* the file */
  char *name, *program, *ending;
  AdoptArg *args;
  AdoptResult *results;
  int n_args, n_results;
  int loss, accuracy, rate; /* results; -1: none */
  int rate_arg; /* where no result is the learning rate: the argument that is; -1: none */
  int extra[STEP_EXTRA];
  char *extra_names[STEP_EXTRA];
  int n_extra;
  int64_t batch;
  int devices; /* that the program is written for; 0: one, so that it may be spread over any */
  char *state_opt, *batch_opt, *loss_opt, *pixels; /* AdoptOpts', kept for checkpoints */
  NamedTensor *start;                              /* arrays that the state begins with */
  int n_start;
  bool start_npz, start_in_order, zeros;
  char *start_name;
  char *init_program;
  struct Adopted *eval, *predict; /* programs beside it: args, results, batch; NULL: none */
  int answer;                     /* of a program that predicts: the result */
  bool by_type;                   /* of a program beside a step: state was found without names */
};

/* names.c */
const char *
adopt_ending(const char *path); /* the part of a file's name that tells its kind, or NULL */
/* "params['a'].w" -> "params/a/w"; a result's begins after "result". The caller frees it. */
char *adopt_path(Str name);
const char *adopt_tail(const char *path); /* without the first part: "a/w"; "" of one part */
/* Does a path lie in another ("params/a/w" in "params")? */
bool adopt_lies_in(const char *path, const char *in);
Err *adopt_read_names(Adopted *a);
/* ERR_INVALID that first lists the arguments and results, so that what is wrong stands last. */
Err *adopt_wrong(const Adopted *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* roles.c */
Err *adopt_roles(Adopted *a, const AdoptOpts *o);
Err *adopt_find_metrics(Adopted *a); /* loss and accuracy alone */
bool adopt_named_as_batch(const AdoptArg *g);

/* step.c */
/* A program around `a`, in a module of its own: main takes the step's state, then a batch of fields, and calls it.
 * `a` is the step itself, or a program that takes some of its state (AdoptArg.result). */
typedef struct Around {
  Build b;
  Func *f;
  StepProgram p;
  Value **state; /* by argument of the step; NULL: of the batch, or left out */
  Op *call;
} Around;
typedef struct AroundOpts {
  const bool *state;  /* by argument of the step: which of the state there is; NULL: all */
  const bool *fields; /* which fields; NULL: all */
  Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out); /* NULL: arguments */
  void *arg;
} AroundOpts;
Err *adopt_around(const Adopted *step, const Adopted *a, const Data *d, const AroundOpts *o,
                  Around *out);
/* Ends main with these results; frees what is not in *out. */
Err *adopt_end(Around *w, const Adopted *a, int n, Value *const *results, StepProgram *out);
Value *adopt_scalar(Build *b, Value *x); /* f32[1]: its mean */
Err *adopt_build(const Model *m, const TrainConfig *c, const Data *d, StepProgram *out);

/* beside.c */
Err *adopt_read_eval(Adopted *a, const char *path);
Err *adopt_read_predict(Adopted *a, const char *path);
/* How many numbers the program that predicts answers for an example; 0: there is none. */
int64_t adopt_answers(const Adopted *a);
Err *adopt_build_eval(const Model *m, const TrainConfig *c, const Data *d, StepProgram *out);

/* devices.c */
Err *adopt_read_devices(Adopted *a);
/* Makes a step's program one of n devices. */
void adopt_spread(const Adopted *a, int n, StepProgram *p);

/* start.c */
Err *adopt_read_start(Adopted *a, const char *path);
Err *adopt_first(const Model *m, const StateSpec *s, uint64_t seed, void *out);
/* Which array the i-th argument begins with; NULL: none. */
const NamedTensor *adopt_start_of(const Adopted *a, int arg);
Err *adopt_set(Adopted *a, const char *text); /* takes ARGUMENT=NUMBER */
bool adopt_is_set(const Model *m, const StateSpec *s);
bool adopt_is_key(const AdoptArg *a);            /* a random key of JAX's, by name and type */
bool adopt_has_value(const Adopted *a, int arg); /* a fixed argument: from somewhere */

#endif
