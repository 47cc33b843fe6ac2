/* Private to api: errors and handles. */
#ifndef WEFT_API_API_PRIV_H
#define WEFT_API_API_PRIV_H

#include "client/client.h"
#include "weft.h"

#define API __attribute__((visibility("default")))

/* The handles are the client's own objects under another name. */
#define CLIENT(c) ((Client *)(void *)(c))

WeftError *api_wrap(Err *e); /* takes e; NULL stays NULL */

#endif
