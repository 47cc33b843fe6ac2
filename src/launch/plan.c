/* What was expected of a run: from the file of a plan, or from chips and their price. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "launch/launch_priv.h"

static double number(const cJSON *o, const char *key) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static void text(const cJSON *o, const char *key, char to[LAUNCH_NAME]) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  snprintf(to, LAUNCH_NAME, "%s", cJSON_IsString(v) ? v->valuestring : "");
}

static Err *from_json(const char *file, const cJSON *root, LaunchPlan *out) {
  const cJSON *choices = cJSON_GetObjectItemCaseSensitive(root, "choices");
  if (!cJSON_IsArray(choices))
    return err_hint(err_new(ERR_INVALID, "%s is no plan: it has no \"choices\"", file),
                    "weft plan MODEL ... --json > %s, or a folder of weft plan --emit", file);
  const cJSON *c = cJSON_GetArrayItem(choices, 0);
  if (!c)
    return err_new(ERR_INVALID, "%s is a plan without a choice: nothing met what was asked", file);
  double chips = number(c, "chips");
  if (!(chips >= 1 && chips < 1e7))
    return err_new(ERR_INVALID, "%s: a choice of %g chips", file, chips);
  *out = (LaunchPlan){.chips = (int)chips,
                      .step_s = number(c, "step_time_s"),
                      .steps = number(c, "steps"),
                      .seconds = number(c, "time_p50_s"),
                      .usd = number(c, "usd"),
                      .usd_hour = number(c, "usd_per_hour"),
                      .ratio = number(c, "measured_ratio")};
  double machine = number(c, "machine_chips");
  if (machine >= 1 && machine <= chips) out->machine_chips = (int)machine;
  if (!(out->ratio > 0)) out->ratio = 1;
  if (!(out->steps > 0)) out->steps = out->seconds = out->usd = NAN;
  text(root, "model", out->model);
  text(c, "chip", out->chip);
  const Chip *chip;
  TRY(err_wrap(chip_find(out->chip, &chip), "%s", file));
  return NULL;
}

Err *launch_plan_read(const char *path, LaunchPlan *out) {
  struct stat s;
  bool folder = !stat(path, &s) && S_ISDIR(s.st_mode);
  char *file = folder ? xasprintf("%s/plan.json", path) : xstrdup(path);
  char *script = xasprintf("%s/train.sh", path);
  Buf b = {0};
  Err *e = file_read(file, &b);
  if (!e) {
    cJSON *root = cJSON_ParseWithLength(b.p, b.n);
    e = root ? from_json(file, root, out)
             : err_hint(err_new(ERR_INVALID, "%s is not JSON", file),
                        "weft plan MODEL ... --json > %s", file);
    cJSON_Delete(root);
    buf_free(&b);
  }
  if (!e) out->script = folder && !stat(script, &s);
  free(file), free(script);
  return e;
}

void launch_plan_chips(const ChipRef *c, bool spot, LaunchPlan *out) {
  *out = (LaunchPlan){
      .chips = MAX(1, c->chips), .step_s = NAN, .steps = NAN, .seconds = NAN, .usd = NAN};
  snprintf(out->chip, LAUNCH_NAME, "%s", c->chip->name);
  if (c->server)
    out->machine_chips = MIN(out->chips, (int)server_num(c->server, "host_gpus", c->server->gpus));
  out->usd_hour =
      chip_rent(c->chip, out->chips, &(PriceAsk){.spot = spot, .server = c->server}).usd_hour;
}
