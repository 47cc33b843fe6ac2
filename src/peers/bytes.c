/* Bytes over a connection, all or none. */
#include "peers/peers_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define TIMEOUT_S 300

int64_t peers_patience(void) { return env_int("WEFT_EXCHANGE_TIMEOUT", 1, 1 << 24, TIMEOUT_S); }

/* Until the other side takes more. */
static Err *wait_for_room(int fd, int64_t seconds) {
  double until_s = time_now_s() + (double)seconds;
  struct pollfd f = {.fd = fd, .events = POLLOUT};
  while (poll(&f, 1, 1000) <= 0)
    if (time_now_s() >= until_s)
      return err_new(ERR_DEADLINE, "nothing was taken in for %lld s", (long long)seconds);
  return NULL;
}

Err *peers_write_all(int fd, const void *data, size_t n, int64_t seconds) {
  const char *at = data;
  while (n) {
    ssize_t k = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      TRY(wait_for_room(fd, seconds));
      continue;
    }
    if (k < 0) return err_new(ERR_UNAVAILABLE, "%s", strerror(errno));
    at += k;
    n -= (size_t)k;
  }
  return NULL;
}

bool peers_read_all(int fd, void *data, size_t n) {
  char *at = data;
  while (n) {
    ssize_t k = recv(fd, at, n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}
