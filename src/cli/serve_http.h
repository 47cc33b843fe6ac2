/* cli/serve_http: a small HTTP server on libmicrohttpd, which is loaded when it is first used. */
#ifndef WEFT_CLI_SERVE_HTTP_H
#define WEFT_CLI_SERVE_HTTP_H

#include "base/base.h"

typedef struct HttpCall {
  const char *method, *path;
  const char *type; /* Content-Type; "" where it was not told */
  Str body;
  int status; /* 200, or what http_error makes it */
  Buf answer; /* JSON */
} HttpCall;
typedef struct HttpServer HttpServer;
/* handle runs on a thread of each connection. *port 0 becomes the port that was free. Bodies of more
 * than 64 MiB are refused (413).
 *   errors    ERR_NOT_FOUND libmicrohttpd is not there; ERR_UNAVAILABLE the port is taken */
Err *http_open(const char *address, int *port, void (*handle)(void *arg, HttpCall *call), void *arg,
               HttpServer **out);
void http_close(HttpServer *s);
/* {"error": {"code": ..., "message": ..., "hint": ...}} with a status that fits; frees e. */
void http_error(HttpCall *c, Err *e);

#endif
