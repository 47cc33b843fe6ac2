/* libmicrohttpd by dlopen: a command that serves nothing does not need it, and a wheel need not
 * carry it. */
#include "cli/serve_http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

void http_error(HttpCall *c, Err *e) {
  c->status = e->code == ERR_INVALID || e->code == ERR_DATA_LOSS ? 400
              : e->code == ERR_NOT_FOUND                         ? 404
              : e->code == ERR_UNIMPLEMENTED                     ? 415
                                                                 : 500;
  c->answer.n = 0;
  buf_printf(&c->answer, "{\"error\": {\"code\": \"%s\", \"message\": ", err_code_name(e->code));
  buf_json_str(&c->answer, e->msg);
  if (e->hint) buf_cstr(&c->answer, ", \"hint\": "), buf_json_str(&c->answer, e->hint);
  buf_cstr(&c->answer, "}}\n");
  err_free(e);
}

#if __has_include(<microhttpd.h>)
#include <microhttpd.h>

enum { MOST_BODY = 64 << 20, SECONDS_IDLE = 30 };

#define FUNCTIONS(X)             \
  X(start_daemon)                \
  X(stop_daemon)                 \
  X(create_response_from_buffer) \
  X(add_response_header) X(queue_response) X(destroy_response) X(lookup_connection_value)
static struct {
  void *library;
#define X(name) __typeof__(&MHD_##name) name;
  FUNCTIONS(X)
#undef X
} mhd;

static Err *load(void) {
  if (mhd.library) return NULL;
  mhd.library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!mhd.library)
    return err_hint(err_new(ERR_NOT_FOUND, "serving needs libmicrohttpd: %s", dlerror()),
                    "apt-get install libmicrohttpd12");
#define X(name)                                                             \
  if (!(mhd.name = (__typeof__(mhd.name))dlsym(mhd.library, "MHD_" #name))) \
    return err_new(ERR_NOT_FOUND, "libmicrohttpd has no MHD_" #name);
  FUNCTIONS(X)
#undef X
  return NULL;
}

struct HttpServer {
  struct MHD_Daemon *daemon;
  void (*handle)(void *arg, HttpCall *call);
  void *arg;
};

typedef struct Request {
  Buf body;
  bool too_long;
} Request;

static enum MHD_Result reply(struct MHD_Connection *c, HttpCall *call) {
  struct MHD_Response *r =
      mhd.create_response_from_buffer(call->answer.n, call->answer.p, MHD_RESPMEM_MUST_FREE);
  if (!r) return buf_free(&call->answer), MHD_NO;
  mhd.add_response_header(r, "Content-Type", "application/json");
  enum MHD_Result ok = mhd.queue_response(c, (unsigned)call->status, r);
  mhd.destroy_response(r);
  return ok;
}

/* Called once for the header, for each piece of the body, and at the end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state) {
  (void)version;
  HttpServer *s = arg;
  Request *r = *state;
  if (!r) {
    *state = xcalloc(1, sizeof(Request));
    return MHD_YES;
  }
  if (*n) {
    if (r->body.n + *n > MOST_BODY) r->too_long = true;
    else buf_add(&r->body, data, *n);
    *n = 0;
    return MHD_YES;
  }
  const char *type = mhd.lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type");
  HttpCall call = {.method = method,
                   .path = url,
                   .type = type ? type : "",
                   .body = {r->body.p ? r->body.p : "", r->body.n},
                   .status = 200};
  if (r->too_long) {
    http_error(&call, err_new(ERR_INVALID, "a body of more than %d bytes", (int)MOST_BODY));
    call.status = 413;
  } else {
    s->handle(s->arg, &call);
  }
  return reply(c, &call);
}

static void on_end(void *arg, struct MHD_Connection *c, void **state,
                   enum MHD_RequestTerminationCode why) {
  (void)arg, (void)c, (void)why;
  Request *r = *state;
  if (!r) return;
  buf_free(&r->body);
  free(r);
  *state = NULL;
}

/* A listening socket, so that port 0 can be asked for which it became. */
static Err *listen_at(const char *address, int *port, int *out) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
  socklen_t n = sizeof a;
  if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
    return err_hint(err_new(ERR_INVALID, "'%s' is no address", address), "127.0.0.1, or 0.0.0.0");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 128) ||
      getsockname(fd, (struct sockaddr *)&a, &n))
    return err_new(ERR_UNAVAILABLE, "cannot listen at %s:%d: %m", address, *port);
  *port = ntohs(a.sin_port);
  *out = fd;
  return NULL;
}

Err *http_open(const char *address, int *port, void (*handle)(void *arg, HttpCall *call), void *arg,
               HttpServer **out) {
  TRY(load());
  int fd;
  TRY(listen_at(address, port, &fd));
  HttpServer *s = xcalloc(1, sizeof *s);
  *s = (HttpServer){.handle = handle, .arg = arg};
  s->daemon = mhd.start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, s,
      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
      MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SECONDS_IDLE, MHD_OPTION_END);
  if (!s->daemon) {
    free(s);
    return err_new(ERR_UNAVAILABLE, "cannot start the server");
  }
  *out = s;
  return NULL;
}

void http_close(HttpServer *s) {
  if (!s) return;
  mhd.stop_daemon(s->daemon);
  free(s);
}

#else
Err *http_open(const char *address, int *port, void (*handle)(void *arg, HttpCall *call), void *arg,
               HttpServer **out) {
  (void)address, (void)port, (void)handle, (void)arg, (void)out;
  return err_new(ERR_UNIMPLEMENTED, "this weft was built without libmicrohttpd's header");
}
void http_close(HttpServer *s) { (void)s; }
#endif
