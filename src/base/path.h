/* path: the parts of a path; of files, and of names that have such parts ("params/dense/kernel"). */
#ifndef WEFT_BASE_PATH_H
#define WEFT_BASE_PATH_H

/* What follows the last '/': points into `path`; all of it where there is none. */
const char *base_name(const char *path);

#endif
