/* GPT-2 training steps of llm.c, whose train_gpt2.c is included: its checkpoint, tokens and labels come from llmc.py. Prints "loss wall_s
 * cpu_s" for each step.   llmc CHECKPOINT TOKENS BATCH TIME STEPS LR BETA1 BETA2 EPS */
#define TESTING /* without its main */
#include "train_gpt2.c"

static double seconds(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 10) return 2;
  int batch = atoi(argv[3]), time = atoi(argv[4]), steps = atoi(argv[5]);
  size_t n = (size_t)batch * (size_t)time;
  GPT2 model;
  gpt2_build_from_checkpoint(&model, argv[1]);
  int *tokens = malloc(2 * n * sizeof *tokens); /* then the labels */
  FILE *f = fopen(argv[2], "rb");
  if (!f || fread(tokens, sizeof *tokens, 2 * n, f) != 2 * n) return 3;
  fclose(f);
  for (int step = 1; step <= steps; step++) {
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    gpt2_forward(&model, tokens, tokens + n, batch, time);
    float loss = model.mean_loss;
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, (float)atof(argv[6]), (float)atof(argv[7]), (float)atof(argv[8]),
                (float)atof(argv[9]), 0, step);
    printf("%f %f %f\n", loss, seconds(CLOCK_MONOTONIC) - wall,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    fflush(stdout);
  }
  return 0;
}
