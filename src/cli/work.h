/* A model of the zoo, or a StableHLO program in a file, as work that verbs ask about (advise/advise.h). */
#ifndef WEFT_CLI_WORK_H
#define WEFT_CLI_WORK_H

#include "advise/advise.h"
#include "zoo/zoo.h"

typedef struct CliWorkOpts { /* 0 or NULL: as the model or the program has it */
  const char *verb;          /* for messages */
  const char *data, *data_dir;
  int64_t batch, eval_batch; /* over all devices */
  double epochs, steps;
  int64_t length;
  int size;
  DType compute; /* DT_F32 or DT_BF16, of the zoo's models */
} CliWorkOpts;

typedef struct CliWork {
  AdviseWork work;
  const Model *model; /* NULL: a program */
  TrainConfig config;
  Data *data;
  AdviseProgram *keep;
} CliWork;

/* What people type: it is a model's name, or a file. errors: neither; a file that is no program; data that is
 * not known. `out` must stay where it is until cli_work_close, which takes it in any state. */
Err *cli_work_open(const char *what, const CliWorkOpts *o, CliWork *out);
void cli_work_close(CliWork *w);
/* It names a file rather than a model. */
bool cli_work_is_file(const char *what);

#endif
