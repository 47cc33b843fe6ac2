/* Names near a mistyped one. */
#include "base/base.h"

#include <ctype.h>

static bool same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

int str_distance(Str a, Str b) {
  enum { MOST = 64 };
  int rows[3][MOST + 1], n = (int)MIN(b.n, MOST), m = (int)MIN(a.n, MOST);
  for (int j = 0; j <= n; j++) rows[0][j] = j;
  for (int i = 1; i <= m; i++) {
    int *row = rows[i % 3], *above = rows[(i + 2) % 3], *over = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int d = above[j - 1] + !same(a.p[i - 1], b.p[j - 1]);
      d = MIN(d, MIN(above[j], row[j - 1]) + 1);
      bool swapped = i > 1 && j > 1 && same(a.p[i - 1], b.p[j - 2]) && same(a.p[i - 2], b.p[j - 1]);
      row[j] = swapped ? MIN(d, over[j - 2] + 1) : d;
    }
  }
  return rows[m % 3][n];
}

void nearest_see(Nearest *near, const char *name) {
  Str s = str_from(name);
  size_t n = near->want.n, k = 0;
  while (k < n && k < s.n && same(s.p[k], near->want.p[k])) k++;
  /* a beginning of at least three letters is as good as one slip */
  int d = k == n && n > 2 ? (s.n > n) : str_distance(near->want, s);
  if (d > (n > 7 ? 3 : n > 4 ? 2 : 1) || (near->best && d >= near->distance)) return;
  near->best = name;
  near->distance = d;
}
