/* Private to client. */
#ifndef WEFT_CLIENT_CLIENT_PRIV_H
#define WEFT_CLIENT_CLIENT_PRIV_H

#include "client/client.h"
#include "pjrt_abi/pjrt_abi.h"

struct Client {
  const PJRT_Api *api;
  PJRT_Client *handle;
  PJRT_Device *const *devices;
  int n_devices;
  ClientJob job; /* n 0: there is none */
  char *platform;
};

#endif
