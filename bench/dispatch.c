/* What a call costs: runs a program that does next to nothing in a loop, as a trainer in C would,
 * and prints microseconds per call (the least of several rounds).
 *
 *   build/dispatch [DEVICE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

static void check(WeftError *e) {
  if (!e) return;
  fprintf(stderr, "%s\n", weft_error_message(e));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* n arguments of 8 numbers, each result one more than its argument. */
static char *program(int n, int donate) {
  size_t room = 512 + (size_t)n * 256, at = 0;
  char *s = malloc(room);
#define ADD(...) at += (size_t)snprintf(s + at, room - at, __VA_ARGS__)
  ADD("func.func @main(");
  for (int i = 0; i < n; i++) {
    ADD("%s%%a%d: tensor<8xf32>", i ? ", " : "", i);
    if (donate) ADD(" {tf.aliasing_output = %d : i32}", i);
  }
  ADD(") -> (");
  for (int i = 0; i < n; i++) ADD("%stensor<8xf32>", i ? ", " : "");
  ADD(") {\n  %%one = stablehlo.constant dense<1.0> : tensor<8xf32>\n");
  for (int i = 0; i < n; i++) ADD("  %%r%d = stablehlo.add %%a%d, %%one : tensor<8xf32>\n", i, i);
  ADD("  return ");
  for (int i = 0; i < n; i++) ADD("%s%%r%d", i ? ", " : "", i);
  ADD(" : ");
  for (int i = 0; i < n; i++) ADD("%stensor<8xf32>", i ? ", " : "");
  ADD("\n}\n");
#undef ADD
  return s;
}

static void measure(WeftClient *c, int n, int donate) {
  char *text = program(n, donate);
  WeftProgram *p;
  check(weft_compile(c, text, strlen(text), &p));
  free(text);
  WeftBuffer **in = calloc((size_t)n, sizeof *in), **out = calloc((size_t)n, sizeof *out);
  const float zeros[8] = {0};
  const int64_t eight = 8;
  for (int i = 0; i < n; i++) check(weft_buffer_new(c, 0, WEFT_F32, 1, &eight, zeros, &in[i]));
  double best = 1e9;
  const int calls = 2000;
  for (int round = 0; round < 15; round++) {
    double t = now();
    for (int k = 0; k < calls; k++) {
      check(weft_execute(p, in, n, out));
      for (int i = 0; i < n; i++) weft_buffer_free(in[i]);
      memcpy(in, out, sizeof *in * (size_t)n); /* the results are the next arguments */
    }
    t = (now() - t) / calls;
    if (t < best) best = t;
  }
  float last[8];
  check(weft_buffer_read(in[0], last, sizeof last));
  if (last[7] != 15.0f * calls) {
    fprintf(stderr, "wrong result: %g\n", (double)last[7]);
    exit(1);
  }
  printf("%3d argument%s%s: %.2f us\n", n, n == 1 ? "" : "s", donate ? ", donated" : "",
         best * 1e6);
  for (int i = 0; i < n; i++) weft_buffer_free(in[i]);
  free(in);
  free(out);
  weft_program_free(p);
}

int main(int argc, char **argv) {
  WeftClient *c;
  check(weft_client_open(NULL, argc > 1 ? argv[1] : "cpu", &c));
  for (int n = 1; n <= 100; n *= 10)
    for (int donate = 0; donate < 2; donate++) measure(c, n, donate);
  weft_client_close(c);
  return 0;
}
