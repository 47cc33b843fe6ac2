/* adopt: a train step that was written elsewhere (JAX, PyTorch, Keras; StableHLO or HLO) as a Model,
 * so that the loop, data, checkpoints and profiles of train/ serve it.
 *
 *     program  (arguments...) -> (results...)          in any order
 *     becomes  (state..., batch...) -> (state..., metrics)   of train.h, by a function that calls it
 *
 * An argument is one of
 *   state   a result of the same type is its next value: by names (jax.result_info and the names of
 *           arguments in locations), by aliasing, by order and type; AdoptOpts.state says it
 *   batch   its first dimension counts examples: a field of the data, by name or in order, converted
 *   fixed   neither: a number from AdoptOpts.set, an array of `init`, a random key from the seed
 *
 * Ownership   an Adopted owns its program; its Model lives as long.
 * Threads     one.
 */
#ifndef WEFT_ADOPT_ADOPT_H
#define WEFT_ADOPT_ADOPT_H

#include "train/train.h"

typedef struct Adopted Adopted;
typedef struct AdoptOpts {
  const char *program; /* path of StableHLO text or bytecode, or an HLO module */
  /* Which arguments and results; NULL: found. Lists with commas of numbers (3, 0-11) and names (params,
   * opt_state: all that begins so). state: ARGUMENTS=RESULTS pairs may be given. batch: ARGUMENT=FIELD. */
  const char *state, *batch, *loss;
  /* How bytes of pictures become a floating-point argument: "unit" (x / 255; NULL), "normal" (less mean, over deviation
   * of the data's channels), "bytes" (0 ... 255) */
  const char *pixels;
  const char *const *set; /* NAME=VALUE of fixed arguments */
  int n_set;
  const char *init; /* npz, npy or safetensors that the state begins with; NULL: none */
  /* Programs of (state, batch): to loss and accuracy, on test examples; to the network's answers. NULL: those of the
   * run that goes on; else none. */
  const char *eval_program, *predict_program;
  const char *init_program; /* program whose results the state begins with; NULL: none */
  bool zeros;               /* the state begins with zeros */
  const char
      *resume; /* a checkpoint of such a run: what is NULL above is as it was there; NULL: none */
} AdoptOpts;

/* Does a path name a program (by its ending)? */
bool adopt_is_program(const char *path);
/* errors: those of reading; ERR_INVALID what cannot be matched, with the arguments and results that there are */
Err *adopt_open(const AdoptOpts *o, Adopted **out);
void adopt_close(Adopted *a); /* NULL is fine */
const Model *adopt_model(const Adopted *a);
int64_t adopt_batch(const Adopted *a);
int64_t adopt_eval_batch(const Adopted *a);    /* 0: nothing evaluates */
int64_t adopt_predict_batch(const Adopted *a); /* 0: nothing predicts */
int64_t
adopt_length(const Adopted *a); /* tokens in an example, where an argument has tokens; else 0 */

/* Made-up data for all batch arguments: normal numbers, whole numbers from 0 to classes - 1. */
Err *adopt_synthetic(const Adopted *a, int64_t classes, Data **out);
/* Which field of the data goes to which argument: call before anything is built.
 *   errors    ERR_INVALID naming the argument that no field fits */
Err *adopt_bind(Adopted *a, const Data *d);
/* ---- the state in use: after adopt_bind ---- */

/* The field that the program which predicts takes; -1: it takes several. */
int adopt_predict_field(Adopted *a, const Data *d);
/* (state that the two programs take..., the field that is predicted from) -> f32 (batch, outputs). weight: as in
 * forward_build_with, the state lies inside; NULL: it comes as arguments. */
Err *adopt_build_predict(Adopted *a, const Data *d,
                         Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out),
                         void *arg, StepProgram *out);
/* (the same state..., all fields) -> f32[3], as train.h has evaluations. */
Err *adopt_build_score(Adopted *a, const Data *d, StepProgram *out);
/* "params/dense/kernel" of the state's "params['dense']['kernel']"; its name where it has no path. */
const char *adopt_state_path(const Adopted *a, const char *name);
/* How the state of the program that predicts was found: false: by types and order alone. */
bool adopt_predict_is_named(const Adopted *a);

/* Runs AdoptOpts.init_program, which takes nothing or a seed. */
Err *adopt_run_init(Adopted *a, Client *c, uint64_t seed);
/* Who is who and where the state comes from, for people; new_run: not of a run that goes on. */
void adopt_print(const Adopted *a, const Data *d, bool new_run, Buf *out);

#endif
