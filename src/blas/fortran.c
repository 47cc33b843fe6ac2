/* What LAPACK's Fortran calls of its runtime: the concatenation of strings, `SIDE // TRANS`. With it here libgfortran, which
 * brings input and output, signals and tables of units, is not linked into the products. Weak: where more of the
 * runtime is called, that comes with its own. */
#include <string.h>

__attribute__((weak)) void _gfortran_concat_string(size_t size, char *out, size_t n, const char *a,
                                                   size_t m, const char *b);

void _gfortran_concat_string(size_t size, char *out, size_t n, const char *a, size_t m,
                             const char *b) {
  if (n > size) n = size;
  if (m > size - n) m = size - n;
  memcpy(out, a, n);
  memcpy(out + n, b, m);
  memset(out + n + m, ' ', size - n - m);
}
