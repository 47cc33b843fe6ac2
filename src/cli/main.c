/* The command `weft`: finds the verb and runs it. Verbs are files cmd_*.c; the build makes the
 * list. The program that people start (start.c) gets it from the plugin's table. */
#include "cli/cli.h"

#include "pjrt/pjrt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define VERB(name) extern const CliVerb cli_##name;
#include "verb_list.inc"
#undef VERB

static const CliVerb *const verbs[] = {
#define VERB(name) &cli_##name,
#include "verb_list.inc"
#undef VERB
};

static void help(FILE *f) {
  fprintf(f, "usage: weft VERB [options]        weft VERB --help\n\n"
             "Train and run StableHLO programs on this CPU, on virtual TPUs and GPUs, and on real "
             "ones.\n\n");
  for (int i = 0; i < COUNT_OF(verbs); i++)
    fprintf(f, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
  fprintf(f, "  %-10s %s\n", "version", "print the version");
}

static const CliVerb *find(const char *name) {
  for (int i = 0; i < COUNT_OF(verbs); i++)
    if (!strcmp(name, verbs[i]->name)) return verbs[i];
  return NULL;
}

/* A full disk must not look like a success. */
static int written(int rc) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return rc;
  fprintf(stderr, "weft: cannot write the output: %s\n", strerror(errno));
  return rc ? rc : 1;
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return 2;
  }
  const char *name = argv[1];
  bool wants_help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
  if (wants_help && argc == 2) {
    help(stdout);
    return written(0);
  }
  if (!strcmp(name, "version") || !strcmp(name, "--version")) {
    printf("weft %s\n", WEFT_VERSION);
    return written(0);
  }
  if (wants_help) name = argv[2]; /* weft help VERB */
  const CliVerb *verb = find(name);
  if (verb && wants_help) return written(verb->run(2, (char *[]){argv[2], "--help", NULL}));
  if (verb) return written(verb->run(cli_take_script_args(argc - 1, argv + 1), argv + 1));
  Nearest near = {.want = str_from(name)};
  for (int i = 0; i < COUNT_OF(verbs); i++) nearest_see(&near, verbs[i]->name);
  if (near.best) {
    fprintf(stderr, "weft: no verb '%s'; did you mean %s?   (weft help)\n", name, near.best);
    return 2;
  }
  fprintf(stderr, "weft: no verb '%s'\n\n", name);
  help(stderr);
  return 2;
}

static WeftCommandExtension command = {.base = {sizeof command, PJRT_EXTENSION_WEFT_COMMAND, NULL},
                                       .run = run};

__attribute__((constructor)) static void offer(void) { pjrt_extend(&command.base); }
