/* A Python script in place of a program: its training step, which `python -m weft.torch --capture` writes, or
 * weft.tf for one that imports TensorFlow or Keras. The script runs as it is, on a device that computes
 * nothing, until it has made the step that repeats. */
#include "cli/cli.h"

#include "base/system.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* In a source tree the package stands beside the build; an installed one Python finds by itself. */
static void add_tree_to_path(void) {
  char exe[4096];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n <= 0) return;
  exe[n] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
  }
  char *package = xasprintf("%s/python/weft/torch/__main__.py", exe);
  if (access(package, R_OK) == 0) {
    const char *path = env_get("PYTHONPATH");
    char *both = xasprintf("%s/python%s%s", exe, path ? ":" : "", path ? path : "");
    setenv("PYTHONPATH", both, 1);
    free(both);
  }
  free(package);
}

/* Does a line of the script import it? */
static bool imports(const char *text, const char *module) {
  size_t n = strlen(module);
  for (const char *at = text; (at = strstr(at, "import ")); at += 7) {
    const char *line = at;
    while (line > text && line[-1] != '\n') line--;
    const char *first = line + strspn(line, " \t");
    const char *name = !strncmp(first, "from ", 5) ? first + 5 : first == at ? at + 7 : NULL;
    if (name && !strncmp(name, module, n) && strcspn(name, " .,\r\n") == n) return true;
  }
  return false;
}

/* The package that can run the script. */
static const char *package_for(const char *script) {
  Buf text = {0};
  err_free(file_read(script, &text));
  buf_add(&text, "", 1);
  bool tf = !imports(text.p, "torch") && (imports(text.p, "tensorflow") ||
                                          imports(text.p, "keras") || imports(text.p, "tf_keras"));
  buf_free(&text);
  return tf ? "weft.tf" : "weft.torch";
}

static char **own_args; /* of the script: what the command line has after "--" */
static int n_own_args;

int cli_take_script_args(int argc, char **argv) {
  int end = 1;
  while (end < argc && strcmp(argv[end], "--")) end++;
  bool script = false;
  for (int i = 1; i < end; i++) script |= cli_is_script(argv[i]);
  if (!script || end == argc) return argc;
  own_args = argv + end + 1;
  n_own_args = argc - end - 1;
  argv[end] = NULL;
  return end;
}

static Err *run_python(const char *python, const char *script, const char *to) {
  const char *package = package_for(script);
  const char *first[] = {python, "-m", package, "--capture", to, script};
  char **argv = xcalloc((size_t)n_own_args + COUNT_OF(first) + 1, sizeof *argv);
  memcpy(argv, first, sizeof first);
  if (n_own_args) memcpy(argv + COUNT_OF(first), own_args, sizeof *argv * (size_t)n_own_args);
  posix_spawn_file_actions_t io;
  posix_spawn_file_actions_init(&io);
  posix_spawn_file_actions_adddup2(&io, 2, 1); /* what the script prints is not our answer */
  pid_t child;
  int failed = posix_spawnp(&child, python, &io, NULL, argv, environ), status = 0;
  posix_spawn_file_actions_destroy(&io);
  free(argv);
  if (failed)
    return err_hint(err_new(ERR_NOT_FOUND, "cannot start %s: %s", python, strerror(failed)),
                    "WEFT_PYTHON names the Python that the script runs with");
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return NULL;
  return err_hint(err_new(ERR_INVALID, "%s: no training step was captured", script),
                  "what went wrong stands above; %s needs weft and %s (WEFT_PYTHON names another "
                  "Python)",
                  python, strcmp(package, "weft.tf") ? "torch, torch_xla" : "tensorflow");
}

bool cli_is_script(const char *path) {
  size_t n = strlen(path);
  return n > 3 && !strcmp(path + n - 3, ".py");
}

Err *cli_script_step(const char *path, Buf *out) {
  if (access(path, R_OK)) return err_errno("%s", path);
  char file[] = "/tmp/weft-step-XXXXXX";
  int fd = mkstemp(file);
  if (fd < 0) return err_new(ERR_INTERNAL, "cannot make a file in /tmp: %s", strerror(errno));
  close(fd);
  add_tree_to_path();
  const char *python = env_get("WEFT_PYTHON");
  Err *e = run_python(python ? python : "python3", path, file);
  if (!e) e = file_read(file, out);
  unlink(file);
  return e;
}
