/* A trained network from C: what a picture shows, or how a text goes on.
 *
 *   weft train mnist --out run
 *   cc predict.c $(pkg-config --cflags --libs weft) -o predict && ./predict run picture.png
 */
#include <stdio.h>
#include <weft.h>

static int failed(WeftError *e) {
  if (!e) return 0;
  fprintf(stderr, "%s\n", weft_error_message(e));
  weft_error_free(e);
  return 1;
}

static int show_picture(WeftNetwork *net, const WeftNetworkInfo *info, const char *path) {
  int64_t n;
  float *p;
  if (failed(weft_network_predict(net, path, &n, &p))) return 1;
  for (int64_t i = 0; i < n; i++) {
    int64_t best = 0;
    for (int64_t k = 1; k < info->classes; k++)
      if (p[i * info->classes + k] > p[i * info->classes + best]) best = k;
    char label[64];
    weft_network_label(net, best, label, sizeof label);
    printf("class %lld %s %.4f\n", (long long)best, label, (double)p[i * info->classes + best]);
  }
  weft_numbers_free(p);
  return 0;
}

static int go_on(WeftNetwork *net, const char *prompt) {
  char *text;
  if (failed(weft_network_generate(net, prompt, 32, 0, 0, 0, 1, &text))) return 1;
  printf("%s%s\n", prompt, text);
  weft_text_free(text);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: predict RUN PICTURE|TEXT\n"), 2;
  WeftClient *client;
  WeftNetwork *net = NULL;
  if (failed(weft_client_open(NULL, "cpu", &client))) return 1;
  int bad = failed(weft_network_open(client, argv[1], &net));
  if (!bad) {
    WeftNetworkInfo info;
    weft_network_info(net, &info);
    printf("%s, %lld weights\n", info.model, (long long)info.weights);
    bad = info.input_type == WEFT_U8 ? show_picture(net, &info, argv[2]) : go_on(net, argv[2]);
  }
  weft_network_close(net);
  weft_client_close(client);
  return bad;
}
