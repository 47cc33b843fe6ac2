/* weft import: weights that other programs trained, as a run. */
#include "cli/use.h"

#include <stdio.h>

static const char usage[] =
    "usage: weft import MODEL FILE.safetensors|FOLDER --to RUN [options]\n"
    "\n"
    "Makes a run folder of weights under the names of transformers (gpt2, bert, llama), "
    "torchvision\n"
    "(resnet) or timm (vit): weft eval, predict, generate and export use it, and `weft train "
    "MODEL\n"
    "--init RUN` goes on from its weights. Pictures are taken as ImageNet's (mean, deviation).\n"
    "Of a FOLDER as transformers write it the depth is that of its config.json, and its tokenizer "
    "is\n"
    "taken; weights may lie in several files. A config.json there or beside FILE that tells of\n"
    "another network than weft builds (heads, epsilon, activation, positions) is refused.\n"
    "\n"
    "  --to RUN           the folder; made where it is not there\n"
    "  --tokenizer PATH   text as tokens: a folder with GPT-2's encoder.json and vocab.bpe (or\n"
    "                     vocab.json and merges.txt), BERT's vocab.txt, or tokenizer.json; or one\n"
    "                     of the last two of any name. --bpe is the same\n"
    "  --length N         tokens in an example (default 1024; BERT 512)\n"
    "  --size N           variant of the model (layers)\n"
    "  --overwrite        RUN may hold a run already: it is replaced\n"
    "  --help             this text\n";

enum { O_TO = CLI_FIRST, O_TOKENIZER, O_LENGTH, O_SIZE, O_OVERWRITE };
static const struct option options[] = {{"to", 1, NULL, O_TO},
                                        {"tokenizer", 1, NULL, O_TOKENIZER},
                                        {"bpe", 1, NULL, O_TOKENIZER},
                                        {"length", 1, NULL, O_LENGTH},
                                        {"size", 1, NULL, O_SIZE},
                                        {"overwrite", 0, NULL, O_OVERWRITE},
                                        CLI_HELP_ROW,
                                        {0}};

static bool set(const CliArgs *args, int which, ImportOpts *o) {
  switch (which) {
  case O_TO: o->to = optarg; return true;
  case O_TOKENIZER: o->tokenizer = optarg; return true;
  case O_LENGTH: return cli_count(args, 1, &o->length);
  case O_SIZE: return cli_int(args, 1, &o->size);
  case O_OVERWRITE: o->overwrite = true; return true;
  default: return false;
  }
}

static int import(int argc, char **argv) {
  ImportOpts o = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int k; (k = cli_next(&args)) != -1;) {
    if (k == CLI_HELP) return fputs(usage, stdout), 0;
    if (k == '?' || !set(&args, k, &o)) return 2;
  }
  if (optind != argc - 2) return cli_wrong(&args, "wants MODEL and FILE.safetensors or FOLDER");
  if (!o.to) return cli_wrong(&args, "wants --to RUN");
  o.model = argv[optind];
  o.file = argv[optind + 1];
  Err *e = infer_import(&o);
  if (e) {
    err_report(e);
    return 1;
  }
  printf("%s: checkpoint.safetensors\n", o.to);
  return 0;
}

const CliVerb cli_import = {"import", "weights that other programs trained, as a run", import};
