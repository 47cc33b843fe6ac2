/* chip: accelerators, the servers that hold them and their prices as data. Reads
 * data/chips/NAME.chip, data/servers/NAME.server and data/prices/CLOUD.csv.
 *
 * A chip file has one fact a line, `key = value unit  # source`; a blank line and a `#` line are
 * comments. Numbers are stored in base units (bytes, bytes/s, FLOP/s, Hz, W, s). Every line must
 * name its source. An unknown key is kept: a model may ask for it by name (chip_num). What all chips of
 * a kind share stands in data/chips/KIND.family, a file of facts like theirs: what a chip's own file
 * leaves out is taken from there. Errors name file and line.
 *
 * Where the files are: WEFT_DATA (a folder with chips/, servers/
 * and prices/), else the copies compiled into
 * the library, so that the plugin works alone. A file in WEFT_DATA adds a chip or replaces the
 * compiled-in one of the same name.
 *
 * Ownership   the catalogue is built once, on first use, and lives as long as the process;
 *             everything returned here is borrowed from it. Threads: any, after the first call
 *             returned.
 */
#ifndef WEFT_CHIP_CHIP_H
#define WEFT_CHIP_CHIP_H

#include "base/base.h"

typedef enum ChipKind { CHIP_TPU, CHIP_GPU } ChipKind;

typedef struct ChipFact {
  const char *key;
  const char *text;   /* the value as written, unit included */
  const char *source; /* why we believe it */
  double num;         /* in base units; NaN when the value is not a number */
  int line;
} ChipFact;

typedef struct Chip {
  const char *name;  /* "tpu-v5e", "A100-80GB" */
  const char *title; /* "TPU v5e" */
  const char *vendor;
  const char *file;
  ChipKind kind;
  int n_facts;
  ChipFact *facts;         /* its own in the file's order, then those of its kind */
  const ChipFact **by_key; /* the same, sorted; NULL: not yet */
  int n_aliases;
  const char **aliases;
  /* What everybody needs, per DEVICE (what the compiler calls one: a core on v2, v3, tpu7x; a chip
   * elsewhere). */
  int devices_per_chip;
  int cores_per_device;          /* 2 on v4 and v5p (megacore) */
  double clock;                  /* Hz */
  double peak_flops;             /* bf16 (or fp16, f32 where there is nothing faster), FLOP/s */
  double hbm_bytes;              /* capacity */
  double hbm_usable;             /* what a program may allocate */
  double hbm_bandwidth;          /* bytes/s */
  double power_idle, power_busy; /* W */
} Chip;

/* The catalogue, sorted: TPUs by generation, then GPUs. errors: the first bad file, with its line.
 */
Err *chip_list(const Chip *const **out, int *n);

/* By any name that clouds, SkyPilot or JAX use: "tpu-v3", "v5litepod", "TPU v5 lite", "A100-80GB",
 * "nvidia-tesla-t4". Case, '-', '_' and blanks do not matter. errors ERR_NOT_FOUND lists the
 * nearest names. */
Err *chip_find(const char *name, const Chip **out);

/* A chip with a count: "tpu-v3-8" (cores), "tpu-v5litepod-4" (chips), "A100-80GB:8", "T4"; a box of
 * TPUs: "v5e:4x4", "tpu7x-4x4x4" (slice.h); or servers: "a3-mega", "dgx-h100:2" (16 GPUs).
 * errors ERR_INVALID a slice that does not exist. */
typedef struct ChipSlice {
  int dims[3]; /* chips along x, y, z; at least 1. GPUs: in a row */
  int chips;   /* of one slice */
  int slices;  /* alike, joined by the data centre's network */
} ChipSlice;
typedef struct ChipRef {
  const Chip *chip;
  int devices;                 /* as JAX would list them; 0 when the name has no count */
  int chips;                   /* physical chips (boards for GPUs); 0 likewise */
  const struct Server *server; /* NULL: the name is no server's */
  ChipSlice slice;             /* how they lie: as named, else the fullest boxes */
} ChipRef;
/* "tpu-v5e-16", "H100:8", "a3-megagpu-8g:2", "H100:16@a3-mega". */
Err *chip_parse(const char *name, ChipRef *out);
/* How so many of them lie where nothing else is said. */
ChipSlice chip_slice_of(const Chip *c, int chips);

/* How a fact is known, from the word in its source: "read" (the text was opened), "recalled" (from
 * memory of it), "oracle" (asked of libtpu's compiler), "derived" (computed from other facts),
 * "fitted" (a coefficient of the time model), "measured" (on the hardware) or "guess"; NULL when the
 * source has none of them. */
const char *chip_how(const ChipFact *f);
const ChipFact *chip_fact(const Chip *c, const char *key); /* NULL when absent */
double chip_num(const Chip *c, const char *key, double dflt);
const char *chip_text(const Chip *c, const char *key); /* NULL when absent */

/* Reads one chip file from memory, for tests, fuzzing and `weft chips --check FILE`; the result is
 * malloc'd as a whole in `arena`. */
Err *chip_read(Arena *arena, const char *file, Str text, Chip **out);
/* What chip_read does not see: a name that another chip of the catalogue has, text where the others have a number. */
Err *chip_check(Chip *c);

/* ---- servers: the machines that hold GPUs, data/servers/NAME.server ---------------------------- */

/* What GPUs are joined by: a server, or a rack whose GPUs share one fabric. The file is like a
 * chip's; `like = OTHER` has facts that it does not give taken from another server's. Keys:
 *   name, title, aliases    clouds' names of the machine: "p5.48xlarge", "a3-megagpu-8g"
 *   chip, gpus              which GPU, and how many share the fast fabric
 *   host_gpus               of one host, where a rack has several; else all
 *   fabric                  nvswitch, mesh (each GPU linked with each) or pcie
 *   link                    one GPU's bytes/s into the fabric, one way
 *   nvls                    1: switches add up and copy (NVLink SHARP)
 *   nics, nic               of all GPUs of the server; one card's bytes/s, one way; none: 0
 * and what src/net asks for by name. */
typedef struct Server {
  const char *name, *title, *file;
  int n_aliases;
  const char **aliases;
  int n_facts;
  ChipFact *facts; /* of its own file */
  const struct Server *like;
  const Chip *chip;
  int gpus;
} Server;

/* Sorted by name. errors: the first bad file, with its line. */
Err *server_list(const Server *const **out, int *n);
/* By any of its names. errors ERR_NOT_FOUND lists those there are. */
Err *server_find(const char *name, const Server **out);
/* The one that a chip's file names (`server`); NULL: none. */
const Server *chip_server(const Chip *c);
const ChipFact *server_fact(const Server *s, const char *key); /* its own or `like`'s; NULL: none */
double server_num(const Server *s, const char *key, double dflt);
const char *server_text(const Server *s, const char *key); /* NULL: none */

/* SkyPilot's words for one of so many equal machines that hold the chips: "H100:8", "tpu-v5p-256:1". */
void chip_sky(const Chip *c, int chips, int machines, Buf *out);
/* A slice as clouds write it after the kind: "v5p-256", "v5litepod-16": cores on v2 to v5p, chips since. */
void chip_slice(const Chip *c, int chips, Buf *out);

/* ---- prices ---------------------------------------------------------------------------------- */

typedef struct Offer {
  const char *cloud, *instance, *region;
  const Chip *chip;
  int chips;        /* physical, in the instance */
  double usd_hour;  /* on demand, whole instance; NaN unknown */
  double spot_hour; /* NaN unknown */
  double vcpu, mem_gib;
  const char *date, *source, *note;
} Offer;

/* The catalogue seems to have taken a discounted price for the one on demand: not used. */
bool offer_is_suspect(const Offer *o);
/* Nobody can rent it any more. */
bool offer_is_retired(const Offer *o);
/* The price is of the accelerators alone; the machine that they are in costs more. */
bool offer_is_part(const Offer *o);
/* The machine is this server, all of it. */
bool offer_is_server(const Offer *o, const Server *s);

/* "as of 2026-07-20", or of a list without a date where it is from. */
void offer_when(const Offer *o, Buf *out);

/* All offers, cheapest on-demand price per chip first, suspect ones last. */
Err *chip_offers(const Offer **out, int *n);

typedef struct PriceAsk { /* all zero: any offer on demand */
  const char *clouds;     /* "gcp,aws"; NULL: any */
  const char *region; /* "us-central1", or what names begin with: "us", "europe-west"; NULL: any */
  bool spot;
  int least_chips;      /* machines of at least so many, where there are such; 0: any */
  const Server *server; /* machines that have one of its names; NULL: any */
} PriceAsk;

/* Are there such clouds, and a region whose name begins so, in the lists? errors ERR_NOT_FOUND with the
 * nearest, or all there are; ERR_INVALID no name at all. */
Err *price_ask_check(const PriceAsk *ask);

typedef struct Price {
  const Offer *offer; /* NULL: none */
  int machines;       /* of it */
  double usd_hour;    /* of all of them, NaN: no offer */
  double share;       /* of their chips that were asked for */
  bool spot;
} Price;

/* The cheapest whole machines that hold so many chips (half a chip is a device of two); of one price
 * the fewest. Offers that can be rented as they are come first: one of accelerators alone, or that is
 * retired, counts where there is no other, and so do several slices of a TPU. ask may be NULL. */
Price chip_rent(const Chip *c, double chips, const PriceAsk *ask);
/* "gcp tpu-v2-8 us-central1, 2026-06-18; 1/8 of it is used: 0.56 USD/h" */
void price_words(const Price *p, Buf *out);

/* Servers of a GPU whose whole machines count: what so many chips in them cost an hour. Those that another one
 * beats both in price and in each GPU's share of the network are left out; so are those that cannot be rented as
 * they are, where others can. Returns how many, at most `most`. */
typedef struct Rented {
  const Server *server;
  Price price;
} Rented;
int chip_rented(const Chip *c, double chips, const PriceAsk *ask, Rented *out, int most);

/* In which servers so many of the chips are timed and priced, one after the other: that which was named; of GPUs that
 * no machine on the lists holds all of, those of chip_rented; else NULL, the usual one. Returns how many, at least 1. */
enum { CHIP_SERVERS = 8 };
int chip_servers(const ChipRef *asked, int chips, const PriceAsk *ask, const Server **out);

/* Lowest listed price per chip and hour, spot or on demand, by the same order; NaN when none is listed.
 * *offer may be NULL. */
double chip_price(const Chip *c, bool spot, const Offer **offer);

#endif
