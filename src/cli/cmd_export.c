/* weft export: a trained network for other programs. */
#include "cli/use.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: weft export RUN --to DIR [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out`, or a checkpoint in one. Writes into DIR:\n"
    "\n"
    "  forward.mlirbc        the network as StableHLO bytecode, weights and preprocessing inside:\n"
    "                        pictures as bytes, or tokens, to logits. weft run, any PJRT plugin, "
    "JAX\n"
    "  load_jax.py           f = load(): the same in JAX, by jax.export\n"
    "  pytorch.safetensors   the weights under PyTorch's names: those of transformers (gpt2, "
    "bert,\n"
    "                        llama), torchvision (resnet), timm (vit), torch.nn (others)\n"
    "  load_pytorch.py       the network with them (not for every model)\n"
    "  keras.safetensors, load_keras.py   the same for Keras, of mnist and mlp\n"
    "  export.json           what goes in and what comes out, names of the classes\n"
    "\n"
    "Of a train step of your own: state.safetensors, under the names of the state, load_state.py; "
    "and with\n"
    "the program that predicts forward.mlirbc, load_jax.py and export.json.\n"
    "\n"
    "  --predict-program P   of a train step of your own: from state and batch to answers "
    "(default: "
    "the\n"
    "                     run's)\n"
    "  --to DIR           the folder; made where it is not there\n"
    "  --batch N          examples that the program takes (default 1)\n"
    "  --help             this text\n";

enum { O_TO = CLI_FIRST, O_BATCH, O_PROGRAM };
static const struct option options[] = {{"to", 1, NULL, O_TO},
                                        {"batch", 1, NULL, O_BATCH},
                                        {"predict-program", 1, NULL, O_PROGRAM},
                                        CLI_HELP_ROW,
                                        {0}};

/* The files, and not which of them: loaders are not there for every model. */
static void say(const Infer *i, const char *to) {
  if (!infer_info(i)->program)
    printf(
        "%s: forward.mlirbc, weights for other programs (*.safetensors), load_*.py, export.json\n",
        to);
  else
    printf("%s: state.safetensors, load_state.py%s\n", to,
           infer_fixed_batch(i)
               ? ", forward.mlirbc, load_jax.py, export.json"
               : "; with --predict-program also the network (forward.mlirbc, load_jax.py)");
}

static int export(int argc, char **argv) {
  ExportOpts o = {0};
  InferOpts run = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int k; (k = cli_next(&args)) != -1;) {
    if (k == CLI_HELP) return fputs(usage, stdout), 0;
    if (k == '?') return 2;
    if (k == O_TO) o.to = optarg;
    else if (k == O_PROGRAM) run.predict_program = optarg;
    else if (!cli_count(&args, 1, &o.batch)) return 2;
  }
  if (optind != argc - 1) return cli_wrong(&args, "wants one RUN");
  if (!o.to) return cli_wrong(&args, "wants --to DIR");
  Infer *i = NULL;
  run.run = argv[optind];
  Err *e = infer_open(&run, &i);
  if (!e) use_say_guesses(i);
  if (!e) e = infer_export(i, &o);
  if (!e) say(i, o.to);
  infer_close(i);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_export = {"export", "a trained network for JAX, PyTorch, Keras and others",
                            export};
