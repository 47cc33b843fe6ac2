/* Private to train/data*: the sets and what they share. */
#ifndef WEFT_TRAIN_DATA_PRIV_H
#define WEFT_TRAIN_DATA_PRIV_H

#include "base/npy.h"
#include "base/path.h"
#include "train/train.h"

typedef struct Images { /* (n, H, W, C) bytes and a label each; malloc'd, owned by the Data */
  uint8_t *train, *test, *train_labels, *test_labels;
  bool augment;
} Images;

/* Is example `index` of a set without a part for testing held out? One of each ten, drawn anew for
 * each: rows that come in turn (0, 1, ... 9, 0, ...) would all have the class of every tenth. */
bool data_held_out(int64_t index);
/* The number of a class by its name, in a list of lines; adds it where `grow`. -1: there is none. */
int data_class_of(Buf *labels, const char *name, bool grow);

/* Shifts a picture (H, W, C) by up to so many pixels and turns it by up to so many degrees, either way. */
void picture_warp(const Field *f, int64_t most, double degrees, uint64_t rand, uint8_t *picture);

Data *data_from_images(const char *name, Images im, int64_t n_train, int64_t n_test,
                       const int64_t shape[3], int64_t classes);

Err *data_open_idx(const char *name, const char *dir,
                   Data **out); /* dir NULL: the usual places for `name` */
Err *data_open_cifar(const char *path, bool augment, Data **out);
/* Any JPEG (picture.c), any PNG (png.c). */
Err *jpeg_read(const uint8_t *p, size_t n, Picture *out);
Err *png_read(const uint8_t *p, size_t n, Picture *out);
/* A JPEG of 32 x 32 into RGB; false: it is damaged, or of another size. */
bool cifar_decode(const uint8_t *p, size_t n, uint8_t *out);
Err *data_open_text(const char *path, bool tokens, const DataOpts *o, Data **out);
/* tar: a webdataset; else a folder of folders. */
Err *data_open_files(const char *path, bool tar, const DataOpts *o, Data **out);
Err *data_open_npz(const char *path, bool whole, Data **out);

/* ---- rows in memory: npz of any names, csv ---- */

typedef struct Part { /* of one field: training or test rows */
  char *rows;
  int64_t n;
} Part;
typedef struct Arrays { /* Data.impl */
  Part part[DATA_FIELDS][2];
} Arrays;
Data *data_of_rows(const char *kind, const char *path); /* without fields and rows */
Field *data_add_field(Data *d, Str name);
/* The whole numbers of rank 0, or of rank 2 for each pixel, are classes. */
void data_count_classes(Data *d);

typedef struct Columns { /* of a table */
  int *from;             /* [n] which holds each number of the network's */
  int n, label;          /* label: -1: none */
} Columns;
/* names: the table's, of n columns; NULL: it has none. like: what was learnt from; NULL: nothing yet. labelled: it must
 * have a label. Columns that nobody asks for by name are left out. columns_free in any case.
 *   errors    ERR_INVALID a name that `like` has and the table has not; another number of columns */
Err *columns_find(const char *const *names, int n, const Data *like, bool labelled, Columns *out);
/* Data.column_names; the caller frees it. */
char *columns_names(const char *const *names, const Columns *c);
void columns_free(Columns *c);

/* Arrays of any names; whole: those without a part for testing are all for testing. */
Err *data_open_arrays(const Npz *z, const char *path, bool whole, Data **out);
/* "FILE", or "FILE,TEST" */
Err *data_open_csv(const char *path, const DataOpts *o, Data **out);
/* mean and std of `pixels` pixels of so many channels */
void data_statistics(Data *d, const uint8_t *p, int64_t pixels, int64_t channels);
Err *data_open_synthetic(const DataOpts *o, Data **out);

#endif
