/* system: what the operating system refuses, as an Err, and folders.
 *
 * Codes   those that absl gives an errno (ErrnoToStatusCode), so that "the file is there already" and "there is
 *         no such folder" are told apart from "you may not".
 */
#ifndef WEFT_BASE_SYSTEM_H
#define WEFT_BASE_SYSTEM_H

#include "base/base.h"

/* Of a call that has just failed: "MESSAGE: what errno says", with errno's code. */
Err *err_errno(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A folder and all above it; one that is there already is good. errors: as err_errno; EXISTS: a file is in
 * its place. */
Err *folder_make(const char *path);

/* Asks before long work whether its result can be written to `path`, so that the work is not lost; "-" is
 * standard output. Nothing is made. errors: as err_errno */
Err *file_may_write(const char *path);

/* One word of a command for a POSIX shell, in quotes where it needs them. */
void buf_shell(Buf *b, const char *word);

#endif
