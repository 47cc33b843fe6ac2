/* What a verb is doing, on standard error, when it takes long: after some seconds, then now and then.
 * One at a time, from one thread. */
#ifndef WEFT_CLI_WAITING_H
#define WEFT_CLI_WAITING_H

void waiting_begin(const char *what); /* "weft diff: values 1 to 50 of 200" */
/* The part that is under way, "running on" "cpu"; nothing where nothing was begun. `name` is kept. */
void waiting_now(const char *doing, const char *name);
void waiting_end(void);

#endif
