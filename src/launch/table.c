/* The engines by their numbers. */
#include "launch/launch_priv.h"

const char *launch_engine_name(LaunchEngine e) { return engine_of(e)->name; }

const Engine *engine_of(LaunchEngine e) {
  static const Engine *const all[] = {&engine_local, &engine_mpi, &engine_slurm, &engine_sky};
  return all[e];
}
